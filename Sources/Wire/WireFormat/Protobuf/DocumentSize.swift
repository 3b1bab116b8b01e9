package import DocumentModel

/// The size of a document, as the service counts it against ``Limits/documentBytesMax``.
///
/// Source: firestore-api.md, section 12.
package enum DocumentSize {
  /// Returns the size of a document in bytes: its name, its fields and 32 bytes. Cost: one pass over the fields.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged, or ``WireError/model(_:)`` with
  ///   ``ModelError/tooDeep(field:)`` if they are nested deeper than ``Limits/nestingDepthMax``.
  package static func bytes(key: DocumentKey, fields: EncodedFields) throws(WireError) -> Int {
    let name = key.path.bytes.withRawBytes { nameBytes(path: $0) }
    return try fields.withMap { (map) throws(WireError) in
      var total = name + 32
      var iterator = map.makeIterator()
      while let entry = try iterator.next() {
        guard let size = try bytes(entry.value, depth: 0) else {
          throw .model(.tooDeep(field: String(decoding: entry.key, as: UTF8.self)))
        }
        total += entry.key.count + 1 + size
      }
      return total
    }
  }

  /// Returns the size of a value, or `nil` if it is nested too deeply.
  private static func bytes(_ value: EncodedValue, depth: Int) throws(WireError) -> Int? {
    switch try value.content {
    case .null, .boolean: return 1
    case .integer, .double, .timestamp: return 8
    case .geoPoint: return 16
    case .string(let text): return text.count + 1
    case .bytes(let bytes): return bytes.count
    case .reference(let name): return referenceBytes(name)
    case .array(let array):
      guard depth < Limits.nestingDepthMax else { return nil }
      var total = 0
      var iterator = array.makeIterator()
      while let element = try iterator.next() {
        guard let size = try bytes(element, depth: depth + 1) else { return nil }
        total += size
      }
      return total
    case .map(let map):
      guard depth < Limits.nestingDepthMax else { return nil }
      if let components = try map.vectorComponents { return 8 * (try components.count) }
      var total = 0
      var iterator = map.makeIterator()
      while let entry = try iterator.next() {
        guard let size = try bytes(entry.value, depth: depth + 1) else { return nil }
        total += entry.key.count + 1 + size
      }
      return total
    }
  }

  /// Returns the size of a document name, given its path below the documents root.
  private static func nameBytes(path: some Collection<UInt8>) -> Int {
    var total = 16
    for segment in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      total += ResourceID.number(segment) == nil ? segment.count + 1 : 8
    }
    return total
  }

  /// Returns the size of a reference, which counts only the path after `projects/{p}/databases/{d}/documents/`.
  private static func referenceBytes(_ name: UnsafeRawBufferPointer) -> Int {
    var slashes = 0
    for (offset, byte) in name.enumerated() where byte == UInt8(ascii: "/") {
      slashes += 1
      if slashes == 5 { return nameBytes(path: name[(offset + 1)...]) }
    }
    return nameBytes(path: name)
  }
}
