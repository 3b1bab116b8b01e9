package import DocumentModel

/// A reader for fixture trees: collection → ID → fields, nested to any depth.
///
///     {
///       "$collections": ["users", "users/*/habits"],
///       "users": {"u1": {"name": "Ann", "habits": {"Running": {"goal": {"$double": 3}}}}}
///     }
///
/// - `$collections` comes first and lists the maps that are collections (see ``CollectionShape``). The caller can
///   pass a shape instead; a list in the file overrides it.
/// - Integers become integer values. Numbers with a fraction or an exponent become doubles. `-0` is the integer 0.
///   An integer that does not fit 64 bits is rejected, not rounded.
/// - `{"$timestamp": "2025-03-27T14:30:00Z"}` is truncated to microseconds.
/// - `{"$ref": "users/u1"}` is a path in the target database or a full `projects/…/documents/…` name.
/// - `{"$bytes": "base64"}` and `{"$geo": [45.46, 9.19]}` are bytes and a geo point.
/// - `{"$double": 1}` takes a number or `"NaN"`, `"Infinity"`, `"-Infinity"`, `"-0"`. `{"$vector": [1, 2]}` takes
///   an array of the same.
/// - A key that begins with `$` is written with one more `$`.
/// - `$fields` holds the fields of a document separately, for a field and a subcollection with the same name.
///   `"$missing": true` marks a document that does not exist but has documents below it.
///
/// Documents come one at a time, each after the documents of its subcollections. Memory does not grow with the
/// file: it holds the read buffer, the fields of the open documents, and hashes of the IDs of the open collections
/// (``KeyTable``).
package struct FixtureTreeReader: ~Copyable {
  private var builder: DocumentBuilder
  private var shape: CollectionShape?
  private var frames: [Frame] = []
  private var isStarted = false
  private var failed: FixtureTreeError?

  /// An open object of the tree.
  private enum Frame {
    case root
    case collection(node: Int, pathCount: Int)
    case document(OpenDocument)
  }

  /// A document whose closing brace was not read yet.
  private struct OpenDocument {
    let key: DocumentKey
    let node: Int
    /// The length of the path to restore at the end of the document.
    let pathCount: Int
    let line: Int
    var isMissing = false
    var hasFields = false
  }

  /// Separate name spaces: a field (0), a subcollection and a control key of a document may have the same name.
  private static let collectionSpace: UInt64 = 1
  private static let controlSpace: UInt64 = 2

  /// Creates a reader at the start of a file. References without a database refer to `database`. `shape` applies if
  /// the file has no `$collections`.
  package init(
    _ source: ByteSource, database: DatabaseID, shape: CollectionShape? = nil,
    bufferBytes: Int = JSONTokenizer.bufferBytesDefault, options: ReadOptions = ReadOptions()
  ) {
    builder = DocumentBuilder(
      source, database: database, .oneValue, bufferBytes: bufferBytes, options: options)
    self.shape = shape
  }

  /// The current size of all buffers, in bytes.
  package var bufferedBytes: Int { builder.bufferedBytes }
  /// The facts about the part of the file that was read.
  package var tally: ReadTally { builder.tally }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the file violates the format or the rules for writes. Later calls throw it
  ///   again.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    if let failed { throw failed }
    do throws(FixtureTreeError) {
      if !isStarted { try start() }
      while let frame = frames.popLast() {
        switch frame {
        case .root:
          try stepInRoot()
        case .collection(let node, let pathCount):
          try stepInCollection(node: node, pathCount: pathCount)
        case .document(let open):
          if let document = try finish(open) { return document }
        }
      }
      guard try builder.next() == .end else { throw builder.failure("expected the end of the file") }
      return nil
    } catch {
      failed = error
      throw error
    }
  }

  // MARK: The root

  private mutating func start() throws(FixtureTreeError) {
    isStarted = true
    try builder.expectObject("a fixture tree")
    builder.keys.open()
    frames.append(.root)
  }

  private mutating func stepInRoot() throws(FixtureTreeError) {
    guard try builder.next() == .key else { return builder.keys.close() }
    let key = builder.tokens.text
    if DocumentBuilder.isEqual(key, "$collections") {
      try builder.note(key)
      try readShape()
      frames.append(.root)
      return
    }
    guard let shape else { throw try lacksShape() }
    let id = try builder.unescaped(key)
    guard let node = shape.collection(id, in: CollectionShape.root) else {
      let patterns = (shape.patterns + [String(decoding: id, as: UTF8.self)]).map(Self.jsonText)
      throw builder.failure(
        "\(FixtureTreeError.quote(id)) is not among the collections; if it is one, write "
          + "\"$collections\": [\(patterns.joined(separator: ", "))],")
    }
    frames.append(.root)
    try enterCollection(id, node: node)
  }

  private mutating func readShape() throws(FixtureTreeError) {
    guard frames.isEmpty, acceptsShape else { throw builder.failure("\"$collections\" must be the first key") }
    let form = "\"$collections\" must be an array of patterns such as \"users/*/habits\""
    guard try builder.next() == .arrayStart else { throw builder.failure(form) }
    var patterns: [String] = []
    while true {
      let token = try builder.next()
      if token == .arrayEnd { break }
      guard token == .string else { throw builder.failure(form) }
      patterns.append(String(decoding: builder.tokens.text, as: UTF8.self))
      do throws(CollectionShape.InvalidPattern) {
        // Compiled one by one, so that the error is located at its pattern. The list is short.
        _ = try CollectionShape([patterns[patterns.count - 1]])
      } catch {
        throw builder.failure("\(Self.jsonText(error.pattern)) is not a collection pattern: \(error.description)")
      }
    }
    do throws(CollectionShape.InvalidPattern) {
      shape = try CollectionShape(patterns)
    } catch {
      throw builder.failure(error.description)
    }
    acceptsShape = false
  }

  /// Whether `$collections` is still allowed, because no collection was read yet.
  private var acceptsShape = true

  /// The maximum number of collections in the line that the error for a tree without a list suggests.
  private static let guessedCollectionsMax = 50

  /// Returns the error for a tree without a list of collections, with the line to add. Reads the rest of the file
  /// to find the keys of the root.
  private mutating func lacksShape() throws(FixtureTreeError) -> FixtureTreeError {
    var error = builder.failure("")
    var ids: [String] = []
    do throws(FixtureTreeError) {
      while ids.count < Self.guessedCollectionsMax {
        ids.append(String(decoding: try builder.unescaped(builder.tokens.text), as: UTF8.self))
        let token = try builder.next()
        guard token == .objectStart else {
          error.message =
            "the file is not a fixture tree, because \(Self.jsonText(ids[ids.count - 1])) is not a map of documents; "
            + "if each object of the file is a document, name their collection: --collection users"
          return error
        }
        try builder.skipValue(token)
        guard try builder.next() == .key else { break }
      }
    } catch {
      // The rest has another mistake. It is reported after this one is fixed.
    }
    let list = ids.map(Self.jsonText).joined(separator: ", ")
    error.message =
      "the tree does not say which maps are collections; add this line at the top: \"$collections\": [\(list)], "
      + "with one more pattern for each subcollection, such as \(Self.jsonText((ids.first ?? "users") + "/*/…"))"
    return error
  }

  private static func jsonText(_ text: String) -> String {
    var out: [UInt8] = []
    JSONStringText.append(text, to: &out)
    return String(decoding: out, as: UTF8.self)
  }

  // MARK: Collections

  /// Enters a collection whose key was just read.
  private mutating func enterCollection(_ id: UnsafeRawBufferPointer, node: Int) throws(FixtureTreeError) {
    acceptsShape = false
    try builder.note(id, space: Self.collectionSpace)
    let pathCount = builder.path.count
    try builder.enter(id)
    _ = try builder.checkedPath()
    let isObject = try builder.next() == .objectStart
    guard isObject else {
      let isDocument = pathCount > 0
      throw builder.failure(
        "a collection must be an object of documents by id"
          + (isDocument ? "; if this is a field, move it into \"$fields\" of its document" : ""))
    }
    builder.keys.open()
    frames.append(.collection(node: node, pathCount: pathCount))
  }

  private mutating func stepInCollection(node: Int, pathCount: Int) throws(FixtureTreeError) {
    guard try builder.next() == .key else {
      builder.keys.close()
      builder.leave(to: pathCount)
      return
    }
    frames.append(.collection(node: node, pathCount: pathCount))
    let id = try builder.unescaped(builder.tokens.text)
    let before = builder.path.count
    try builder.note(id)
    try builder.enter(id)
    guard let shape, let key = DocumentKey(try builder.checkedPath()) else {
      throw builder.failure("expected a document")
    }
    let document = OpenDocument(
      key: key, node: shape.document(id, in: node), pathCount: before, line: builder.tokens.line)
    try builder.expectObject("a document")
    builder.keys.open()
    builder.openDocument()
    frames.append(.document(document))
  }

  // MARK: Documents

  /// Continues a document up to its end or its next subcollection. Returns the document at its end, unless it is
  /// missing.
  private mutating func finish(_ document: OpenDocument) throws(FixtureTreeError) -> FixtureDocument? {
    var open = document
    while try builder.next() == .key {
      var key = builder.tokens.text
      if key.first == UInt8(ascii: "$") {
        if DocumentBuilder.isEqual(key, "$fields") {
          try builder.note(key, space: Self.controlSpace)
          try readFieldsApart(&open)
          continue
        }
        if DocumentBuilder.isEqual(key, "$missing") {
          try builder.note(key, space: Self.controlSpace)
          let token = try builder.next()
          guard token == .true || token == .false else { throw builder.failure("\"$missing\" must be true") }
          open.isMissing = token == .true
          continue
        }
        key = try builder.unescaped(key)
      }
      if let shape, !shape.hasNoCollections(open.node), let node = shape.collection(key, in: open.node) {
        frames.append(.document(open))
        try enterCollection(key, node: node)
        return nil
      }
      open.hasFields = true
      try builder.field(key, .fixture)
    }
    defer {
      builder.keys.close()
      builder.leave(to: open.pathCount)
    }
    if open.isMissing {
      guard !open.hasFields else {
        throw builder.failure("a document with \"$missing\" does not exist and has no fields; remove one of the two")
      }
      builder.dropDocument()
      return nil
    }
    return try builder.closeDocument(open.key, line: open.line)
  }

  private mutating func readFieldsApart(_ open: inout OpenDocument) throws(FixtureTreeError) {
    try builder.expectObject("\"$fields\"")
    while try builder.next() == .key {
      open.hasFields = true
      try builder.field(try builder.unescaped(builder.tokens.text), .fixture)
    }
  }
}
