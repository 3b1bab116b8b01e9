package import DocumentModel
package import WireFormat

/// Writes documents as a fixture tree, which ``FixtureTreeReader`` reads back to the same documents, byte for byte.
///
/// Documents come in name order: a document before those of its sub-collections. The text depends on the documents
/// alone, so a second export is the same text. It grows in ``output``, which the caller takes away from time to time;
/// memory is bounded by that and by two documents.
///
/// A parent that is not among the documents is written with `$missing`. Fields go into `$fields` where one of them has
/// a name that the patterns give to a sub-collection. Maps and documents that fit one line stand on one.
package struct FixtureTreeWriter {
  /// The width that a line keeps to where it can, in bytes.
  package static let lineBytesMax = 118

  /// The text so far that was not taken.
  package private(set) var output: [UInt8] = []
  private let shape: CollectionShape
  private var values: FixtureValueWriter
  /// The open objects, outermost first: a collection, a document in it, a collection, …
  private var levels: [Level] = []
  /// The latest document, held back until it is known whether there are documents below it.
  private var pending: (key: DocumentKey, fields: EncodedFields)?
  /// Whether the innermost open object has a member already.
  private var hasMember = true

  private struct Level {
    let id: [UInt8]
    /// The node of the shape: of a collection or of a document, by the level's parity.
    let node: Int
  }

  /// Starts a tree of a database. `patterns` must cover every collection that will come:
  /// see ``CollectionShape/patterns(of:)``.
  /// - Throws: ``CollectionShape/InvalidPattern``.
  package init(database: DatabaseID, patterns: [String]) throws(CollectionShape.InvalidPattern) {
    shape = try CollectionShape(patterns)
    values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    appendHead(patterns)
  }

  /// Adds a document.
  ///
  /// It must come behind all earlier ones in name order, in a collection that the patterns cover.
  /// - Throws: ``WireError`` when its fields are damaged.
  package mutating func write(_ key: DocumentKey, _ fields: EncodedFields) throws(WireError) {
    if let last = pending {
      precondition(last.key < key, "documents are exported in name order")
      try flush(hasChildren: key.path.isAtOrBelow(last.key.path))
    }
    pending = (key, fields)
  }

  /// Ends the tree. Nothing may be written after it.
  /// - Throws: ``WireError`` when the fields of the last document are damaged.
  package mutating func finish() throws(WireError) {
    try flush(hasChildren: false)
    closeLevels(to: 0)
    output.append(contentsOf: "\n}\n".utf8)
  }

  /// Hands over the text so far and forgets it.
  package mutating func takeOutput() -> [UInt8] {
    defer { output.removeAll() }
    return output
  }

  // MARK: Pieces

  private mutating func appendHead(_ patterns: [String]) {
    output.append(contentsOf: "{\n  \"$collections\": [".utf8)
    // One line where they fit, else a line each.
    let inlineBytes = patterns.reduce(20) { $0 + $1.utf8.count + 4 }
    let isInline = inlineBytes <= Self.lineBytesMax
    for (index, pattern) in patterns.enumerated() {
      if index > 0 { output.append(contentsOf: (isInline ? ", " : ",").utf8) }
      if !isInline { output.append(contentsOf: "\n    ".utf8) }
      JSONStringText.append(pattern, to: &output)
    }
    output.append(contentsOf: (isInline ? "]" : "\n  ]").utf8)
  }

  /// Writes the document held back, and goes to where it stands.
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

  /// Whether a field has a name that a sub-collection of such a document has.
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

  /// The shape's node of a child of the innermost open object.
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

  /// Starts a member of the innermost open object on a line of its own.
  private mutating func startMember() {
    startMember(indent: 2 * (levels.count + 1))
  }

  private mutating func startMember(indent: Int) {
    if hasMember { output.append(UInt8(ascii: ",")) }
    values.appendLine(indent: indent, to: &output)
    hasMember = true
  }

  /// Where the current line starts, in bytes from the start of ``output``.
  private var lineStart: Int {
    (output.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
  }
}
