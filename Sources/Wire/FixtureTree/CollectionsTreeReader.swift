package import DocumentModel

/// A reader for the trees of common export tools, which mark collections with `__collections__`.
///
///     {"__collections__": {"users": {"u1": {"name": "Ann", "__collections__": {"habits": {}}}}}}
///
/// A typed value is `{"__datatype__": "timestamp", "value": {"_seconds": 1, "_nanoseconds": 0}}`. The other types
/// are `geopoint` with `_latitude` and `_longitude`, `documentReference` with a path, and `bytes` with base64. The
/// format cannot express a missing document: a document without fields exists. Numbers, duplicates, order and
/// memory use are as in ``FixtureTreeReader``.
package struct CollectionsTreeReader: ~Copyable {
  private var builder: DocumentBuilder
  private var frames: [Frame] = []
  private var isStarted = false
  private var failed: FixtureTreeError?

  /// An open object of the tree.
  private enum Frame {
    case root
    /// The object that is the value of `__collections__`.
    case collections
    case collection(pathCount: Int)
    case document(key: DocumentKey, pathCount: Int, line: Int)
  }

  /// Creates a reader at the start of a file. References without a database refer to `database`.
  package init(
    _ source: ByteSource, database: DatabaseID, bufferBytes: Int = JSONTokenizer.bufferBytesDefault,
    options: ReadOptions = ReadOptions()
  ) {
    builder = DocumentBuilder(
      source, database: database, .oneValue, bufferBytes: bufferBytes, options: options)
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
      if !isStarted {
        isStarted = true
        try builder.expectObject("a tree of collections")
        builder.keys.open()
        frames.append(.root)
      }
      while let frame = frames.popLast() {
        if let document = try step(frame) { return document }
      }
      guard try builder.next() == .end else { throw builder.failure("expected the end of the file") }
      return nil
    } catch {
      failed = error
      throw error
    }
  }

  private mutating func step(_ frame: Frame) throws(FixtureTreeError) -> FixtureDocument? {
    switch frame {
    case .root:
      guard try builder.next() == .key else {
        builder.keys.close()
        return nil
      }
      guard DocumentBuilder.isEqual(builder.tokens.text, "__collections__") else {
        throw builder.failure("the root can contain only \"__collections__\"; move fields into a document")
      }
      try builder.note(builder.tokens.text)
      frames.append(.root)
      try enterCollections()
    case .collections:
      guard try builder.next() == .key else {
        builder.keys.close()
        return nil
      }
      frames.append(.collections)
      try enterCollection()
    case .collection(let pathCount):
      guard try builder.next() == .key else {
        builder.keys.close()
        builder.leave(to: pathCount)
        return nil
      }
      frames.append(frame)
      try enterDocument()
    case .document(let key, let pathCount, let line):
      while try builder.next() == .key {
        if DocumentBuilder.isEqual(builder.tokens.text, "__collections__") {
          try builder.note(builder.tokens.text)
          frames.append(frame)
          try enterCollections()
          return nil
        }
        try builder.field(builder.tokens.text, .datatype)
      }
      defer {
        builder.keys.close()
        builder.leave(to: pathCount)
      }
      return try builder.closeDocument(key, line: line)
    }
    return nil
  }

  private mutating func enterCollections() throws(FixtureTreeError) {
    try builder.expectObject("\"__collections__\"")
    builder.keys.open()
    frames.append(.collections)
  }

  private mutating func enterCollection() throws(FixtureTreeError) {
    try builder.note(builder.tokens.text)
    let pathCount = builder.path.count
    try builder.enter(builder.tokens.text)
    _ = try builder.checkedPath()
    try builder.expectObject("a collection")
    builder.keys.open()
    frames.append(.collection(pathCount: pathCount))
  }

  private mutating func enterDocument() throws(FixtureTreeError) {
    try builder.note(builder.tokens.text)
    let pathCount = builder.path.count
    try builder.enter(builder.tokens.text)
    guard let key = DocumentKey(try builder.checkedPath()) else { throw builder.failure("expected a document") }
    let line = builder.tokens.line
    try builder.expectObject("a document")
    builder.keys.open()
    builder.openDocument()
    frames.append(.document(key: key, pathCount: pathCount, line: line))
  }
}
