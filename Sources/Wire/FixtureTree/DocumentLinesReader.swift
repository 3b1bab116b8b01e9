package import DocumentModel

/// A reader for NDJSON: one document per line, in either of two forms, which can be mixed.
///
///     {"path": "users/u1", "fields": {"name": "Ann", "since": {"$timestamp": "2025-03-27T14:30:00Z"}}}
///     {"name": "projects/p/databases/(default)/documents/users/u1", "fields": {"name": {"stringValue": "Ann"}}}
///
/// With `path`, values are written as in a fixture tree. With `name`, values have the form of the REST API. The
/// document goes to the target database whatever database the name contains, but references keep theirs. `path` or
/// `name` must come before `fields`. `createTime` and `updateTime` are skipped. If two lines have the same
/// document, the later one wins. A document can span several lines. Memory: the read buffer and one document.
package struct DocumentLinesReader: ~Copyable {
  private var builder: DocumentBuilder
  private var failed: FixtureTreeError?

  /// Creates a reader at the start of a file. References without a database refer to `database`.
  package init(
    _ source: ByteSource, database: DatabaseID, bufferBytes: Int = JSONTokenizer.bufferBytesDefault,
    options: ReadOptions = ReadOptions()
  ) {
    builder = DocumentBuilder(
      source, database: database, .manyValues, bufferBytes: bufferBytes, options: options)
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
      return try document()
    } catch {
      failed = error
      throw error
    }
  }

  private mutating func document() throws(FixtureTreeError) -> FixtureDocument? {
    builder.setPath([])
    let token = try builder.next()
    if token == .end { return nil }
    guard token == .objectStart else { throw builder.failure("every line must be an object") }
    let line = builder.tokens.line
    var key: DocumentKey?
    var notation = DocumentBuilder.Notation.fixture
    builder.openDocument()
    builder.keys.open()
    while try builder.next() == .key {
      try builder.note(builder.tokens.text)
      if DocumentBuilder.isEqual(builder.tokens.text, "path") {
        builder.setPath(try builder.expectString("\"path\""))
        key = try documentKey(key)
      } else if DocumentBuilder.isEqual(builder.tokens.text, "name") {
        notation = .wire
        builder.setPath(try documentPath(ofName: try builder.expectString("\"name\"")))
        key = try documentKey(key)
      } else if DocumentBuilder.isEqual(builder.tokens.text, "fields") {
        guard key != nil else { throw builder.failure("\"path\" or \"name\" must come before \"fields\"") }
        try builder.expectObject("\"fields\"")
        try fields(notation)
      } else if DocumentBuilder.isEqual(builder.tokens.text, "createTime")
        || DocumentBuilder.isEqual(builder.tokens.text, "updateTime")
      {
        try builder.skipValue(try builder.next())
      } else {
        throw builder.failure(
          "unknown key \(FixtureTreeError.quote(builder.tokens.text)); a line has \"path\" or \"name\", and "
            + "\"fields\" for the document's fields; for lines without paths, give --collection")
      }
    }
    builder.keys.close()
    guard let key else {
      throw builder.failure("the line lacks \"path\" or \"name\"; for lines without paths, give --collection")
    }
    return try builder.closeDocument(key, line: line)
  }

  private mutating func fields(_ notation: DocumentBuilder.Notation) throws(FixtureTreeError) {
    builder.keys.open()
    while try builder.next() == .key {
      let text = builder.tokens.text
      try builder.field(notation == .fixture ? try builder.unescaped(text) : text, notation)
    }
    builder.keys.close()
  }

  private func documentKey(_ earlier: DocumentKey?) throws(FixtureTreeError) -> DocumentKey {
    guard earlier == nil else { throw builder.failure("a line can have only one of \"path\" and \"name\"") }
    guard let key = DocumentKey(try builder.checkedPath()) else {
      throw builder.failure(
        "the path is not that of a document; write pairs of collection and document ids, such as \"users/u1\"")
    }
    return key
  }

  private func documentPath(ofName name: UnsafeRawBufferPointer) throws(FixtureTreeError) -> [UInt8] {
    do throws(ModelError) {
      return try ResourceName.document(name).1.path.bytes
    } catch {
      throw builder.failure("\(error.description) For lines without paths, give --collection.")
    }
  }
}
