package import DocumentModel
package import WireFormat

/// A writer for fixture trees. ``FixtureTreeReader`` reads the text back to the same documents, byte for byte.
///
/// Documents are written in name order, so a document comes before those of its subcollections. The text depends
/// only on the documents: a second export produces the same text. The text accumulates in ``output`` until the
/// caller takes it. Memory is that text and two documents.
///
/// A parent that is not among the documents is written with `$missing`. A document's fields are written to
/// `$fields` if the patterns give a subcollection the name of one of them. Maps and documents that fit on one line
/// are written on one line.
package struct FixtureTreeWriter {
  /// The preferred length of a line, in bytes.
  package static let lineBytesMax = 118

  /// The text that was not taken yet.
  package private(set) var output: [UInt8] = []
  private let shape: CollectionShape
  private var values: FixtureValueWriter
  /// The open objects, outermost first: a collection, a document in it, a collection in that, and so on.
  private var levels: [Level] = []
  /// The latest document, kept until it is known whether documents below it follow.
  private var pending: (key: DocumentKey, fields: EncodedFields)?
  /// Whether the innermost open object already has a member.
  private var hasMember = true

  private struct Level {
    let id: [UInt8]
    /// The shape's node: of a collection at even levels, of a document at odd levels.
    let node: Int
  }

  /// Starts a tree for a database. `patterns` must cover every collection that will be written: see
  /// ``CollectionShape/patterns(of:)``.
  /// - Throws: ``CollectionShape/InvalidPattern`` if a pattern is invalid.
  package init(database: DatabaseID, patterns: [String]) throws(CollectionShape.InvalidPattern) {
    shape = try CollectionShape(patterns)
    values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    appendHead(patterns)
  }

  /// Adds a document.
  ///
  /// Its name must come after those of all earlier documents, and the patterns must cover its collection.
  /// - Throws: ``WireError`` if the fields of the previous document are damaged.
  package mutating func write(_ key: DocumentKey, _ fields: EncodedFields) throws(WireError) {
    if let last = pending {
      precondition(last.key < key, "documents are exported in name order")
      try flush(hasChildren: key.path.isAtOrBelow(last.key.path))
    }
    pending = (key, fields)
  }

  /// Ends the tree. Nothing may be written after it.
  /// - Throws: ``WireError`` if the fields of the last document are damaged.
  package mutating func finish() throws(WireError) {
    try flush(hasChildren: false)
    closeLevels(to: 0)
    output.append(contentsOf: "\n}\n".utf8)
  }

  /// Returns the text that was not taken yet, and clears it.
  package mutating func takeOutput() -> [UInt8] {
    defer { output.removeAll() }
    return output
  }

  // MARK: Pieces

  private mutating func appendHead(_ patterns: [String]) {
    output.append(contentsOf: "{\n  \"$collections\": [".utf8)
    // On one line if they fit, else on one line each.
    let inlineBytes = patterns.reduce(20) { $0 + $1.utf8.count + 4 }
    let isInline = inlineBytes <= Self.lineBytesMax
    for (index, pattern) in patterns.enumerated() {
      if index > 0 { output.append(contentsOf: (isInline ? ", " : ",").utf8) }
      if !isInline { output.append(contentsOf: "\n    ".utf8) }
      JSONStringText.append(pattern, to: &output)
    }
    output.append(contentsOf: (isInline ? "]" : "\n  ]").utf8)
  }

  /// Writes the pending document after opening and closing the levels around it.
  private mutating func flush(hasChildren: Bool) throws(WireError) {
    guard let document = pending else { return }
    pending = nil
    let segments = document.key.path.segments
    var common = 0
    while common < levels.count, common < segments.count - 1, levels[common].id.elementsEqual(segments[common]) {
      common += 1
    }
    closeLevels(to: common)
    for index in common..<segments.count - 1 {
      openLevel(segments[index])
      if !index.isMultiple(of: 2) {
        startMember()
        output.append(contentsOf: "\"$missing\": true".utf8)
      }
    }
    try write(document.fields, id: segments[segments.count - 1], hasChildren: hasChildren)
  }

  private mutating func write(
    _ fields: EncodedFields, id: ArraySlice<UInt8>, hasChildren: Bool
  ) throws(WireError) {
    let node = childNode(id)
    let isApart = try sharesName(fields, with: node)
    if hasChildren {
      openLevel(id)
    } else {
      startMember()
      values.appendKey(id, to: &output)
      if try values.appendInline(fields, isApart: isApart, lineStart: lineStart, to: &output) { return }
      output.append(UInt8(ascii: "{"))
      hasMember = false
    }
    let indent = 2 * (levels.count + (hasChildren ? 1 : 2))
    if isApart {
      startMember(indent: indent)
      output.append(contentsOf: "\"$fields\": ".utf8)
      try values.append(fields, indent: indent, to: &output)
    } else {
      try values.appendMembers(fields, indent: indent, hasMember: &hasMember, to: &output)
    }
    if !hasChildren { closeObject(indent: indent - 2) }
  }

  /// Returns whether a field has the name of a possible subcollection of the document.
  private func sharesName(_ fields: EncodedFields, with node: Int) throws(WireError) -> Bool {
    if shape.hasNoCollections(node) { return false }
    return try fields.withMap { (map) throws(WireError) in
      var iterator = map.makeIterator()
      while let entry = try iterator.next() {
        if shape.collection(entry.key, in: node) != nil { return true }
      }
      return false
    }
  }

  /// Returns the shape's node for a child of the innermost open object.
  private func childNode(_ id: ArraySlice<UInt8>) -> Int {
    let node: Int? = id.withUnsafeBytes { bytes in
      guard let level = levels.last else { return shape.collection(bytes, in: CollectionShape.root) }
      return levels.count.isMultiple(of: 2)
        ? shape.collection(bytes, in: level.node) : shape.document(bytes, in: level.node)
    }
    guard let node else { preconditionFailure("the patterns cover every collection that is exported") }
    return node
  }

  private mutating func openLevel(_ id: ArraySlice<UInt8>) {
    let node = childNode(id)
    startMember()
    values.appendKey(id, to: &output)
    output.append(UInt8(ascii: "{"))
    levels.append(Level(id: Array(id), node: node))
    hasMember = false
  }

  private mutating func closeLevels(to count: Int) {
    while levels.count > count {
      closeObject(indent: 2 * levels.count)
      levels.removeLast()
    }
  }

  private mutating func closeObject(indent: Int) {
    if hasMember { values.appendLine(indent: indent, to: &output) }
    output.append(UInt8(ascii: "}"))
    hasMember = true
  }

  /// Starts a member of the innermost open object on a new line.
  private mutating func startMember() {
    startMember(indent: 2 * (levels.count + 1))
  }

  private mutating func startMember(indent: Int) {
    if hasMember { output.append(UInt8(ascii: ",")) }
    values.appendLine(indent: indent, to: &output)
    hasMember = true
  }

  /// The offset of the current line in ``output``.
  private var lineStart: Int {
    (output.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
  }
}
