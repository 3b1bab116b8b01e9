import DocumentModel
import PipelineExpressions
import WireFormat

/// Writes the fields of rows in the form of stored documents.
enum FieldWriter {
  /// The tags of the entries of a document and of a map value.
  static let documentTag: UInt8 = 0x12
  static let mapTag: UInt8 = 0x0A

  /// Appends fields with those of a tree replaced, or only those of the tree if `base` is `nil`. An absent value
  /// removes its field. A map that would have no fields is left out, unless it was there before. The fields are inside
  /// `depth` maps.
  static func write(
    _ nodes: [FieldTree.Node], over base: EncodedMap?, tag: UInt8 = documentTag, depth: Int = 0,
    to out: inout [UInt8], _ value: (Int) throws -> ExpressionValue
  ) throws {
    var rest = Entries(base)
    try rest.advance()
    for node in nodes {
      let existing = try node.name.withRawBytes { name in try rest.take(name, copyingOthersTo: &out) }
      let start = out.count
      let isWritten: Bool
      if let leaf = node.leaf {
        let value = try value(leaf)
        if case .absent = value { continue }
        try entry(node.name, tag, to: &out) { try value.append(to: &$0, depth: depth) }
        isWritten = true
      } else {
        let inner = try existing?.fields
        var count = 0
        try entry(node.name, tag, to: &out) { out in
          let map = ProtobufWriter.beginMessage(6, to: &out)
          let content = out.count
          try write(node.children, over: inner, tag: mapTag, depth: depth + 1, to: &out, value)
          count = out.count - content
          ProtobufWriter.endMessage(map, in: &out)
        }
        isWritten = count > 0 || inner != nil
      }
      guard !isWritten else { continue }
      out.removeLast(out.count - start)
      if let existing { entry(node.name, tag, to: &out) { $0.append(raw: existing.bytes) } }
    }
    try rest.copyAll(to: &out)
  }

  /// Appends the fields of a map without those of a tree.
  static func remove(
    _ nodes: [FieldTree.Node], from base: EncodedMap, tag: UInt8 = documentTag, to out: inout [UInt8]
  ) throws {
    var rest = Entries(base)
    try rest.advance()
    for node in nodes {
      guard let existing = try node.name.withRawBytes({ name in try rest.take(name, copyingOthersTo: &out) }) else {
        continue
      }
      if node.leaf != nil { continue }
      guard let inner = try existing.fields else {
        entry(node.name, tag, to: &out) { $0.append(raw: existing.bytes) }
        continue
      }
      try entry(node.name, tag, to: &out) { out in
        let map = ProtobufWriter.beginMessage(6, to: &out)
        try remove(node.children, from: inner, tag: mapTag, to: &out)
        ProtobufWriter.endMessage(map, in: &out)
      }
    }
    try rest.copyAll(to: &out)
  }

  /// Appends the fields of a map value as those of a document. Of fields that `base` has too, those of the map are
  /// taken if `overwrites`. Names and times, which a row keeps outside its fields, are passed to `metadata`.
  static func merge(
    _ map: EncodedMap, into base: EncodedMap?, overwrites: Bool, to out: inout [UInt8],
    metadata: (UnsafeRawBufferPointer, EncodedValue) throws -> Void
  ) throws {
    var rest = Entries(base)
    try rest.advance()
    var iterator = map.makeIterator()
    while let (key, value) = try iterator.next() {
      if key.first == UInt8(ascii: "_"), isMetadata(key) {
        try metadata(key, value)
        continue
      }
      let existing = try rest.take(key, copyingOthersTo: &out)
      let kept = overwrites ? value : existing ?? value
      entry(key, documentTag, to: &out) { $0.append(raw: kept.bytes) }
    }
    try rest.copyAll(to: &out)
  }

  private static func isMetadata(_ key: UnsafeRawBufferPointer) -> Bool {
    ["__name__", "__create_time__", "__update_time__"].contains { key.elementsEqual($0.utf8) }
  }

  /// Appends an entry whose value `body` writes.
  static func entry(
    _ key: [UInt8], _ tag: UInt8, to out: inout [UInt8], _ body: (inout [UInt8]) throws -> Void
  ) rethrows {
    try key.withUnsafeBytes { try entry($0, tag, to: &out, body) }
  }

  private static func entry(
    _ key: UnsafeRawBufferPointer, _ tag: UInt8, to out: inout [UInt8], _ body: (inout [UInt8]) throws -> Void
  ) rethrows {
    out.append(tag)
    out.append(0)
    let start = out.count
    ProtobufWriter.bytes(1, key, to: &out)
    let value = ProtobufWriter.beginMessage(2, to: &out)
    try body(&out)
    ProtobufWriter.endMessage(value, in: &out)
    ProtobufWriter.endMessage(start, in: &out)
  }

  /// The entries of a map that were not copied or taken yet.
  private struct Entries {
    private let map: EncodedMap?
    private var iterator: EncodedMap.Iterator?
    private var current: EncodedMap.Entry?
    /// The start of the current entry, in bytes from the start of the map.
    private var start = 0

    init(_ map: EncodedMap?) {
      self.map = map
      iterator = map?.makeIterator()
    }

    mutating func advance() throws {
      start = iterator?.position ?? 0
      current = try iterator?.next()
    }

    /// Copies the entries before `name`, and takes the entry with this name, if it exists.
    mutating func take(
      _ name: UnsafeRawBufferPointer, copyingOthersTo out: inout [UInt8]
    ) throws -> EncodedValue? {
      while let entry = current {
        switch EncodedMap.compare(entry.key, name) {
        case .less:
          copy(to: &out)
          try advance()
        case .equal:
          try advance()
          return entry.value
        case .greater: return nil
        }
      }
      return nil
    }

    mutating func copyAll(to out: inout [UInt8]) throws {
      guard current != nil, let map else { return }
      out.append(raw: UnsafeRawBufferPointer(rebasing: map.bytes[start...]))
      current = nil
    }

    private func copy(to out: inout [UInt8]) {
      guard let map, let end = iterator?.position else { return }
      out.append(raw: UnsafeRawBufferPointer(rebasing: map.bytes[start..<end]))
    }
  }
}
