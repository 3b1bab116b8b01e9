package import DocumentModel

/// Reads the documents of a file in any of the formats, one by one.
package struct FixtureReader: ~Copyable {
  /// How a file holds its documents.
  package enum Format: Equatable, Sendable {
    /// ``FixtureTreeReader``.
    case fixtureTree
    /// ``CollectionsTreeReader``.
    case collectionsTree
    /// ``DocumentLinesReader``.
    case documentLines
  }

  /// The format that is being read.
  package let format: Format
  private var reader: AnyReader

  /// How much of a file is looked at to find its format, in bytes.
  static let peekedBytesMax = 64 << 10

  /// Starts at the front of a file for a database.
  ///
  /// The format is `format`, or what the name's ending says (`.ndjson`, `.jsonl`), or what the first key says:
  /// `__collections__`, or `path` or `name` with a text, else a fixture tree. `shape` is for fixture trees without
  /// `$collections`.
  /// - Throws: ``FixtureTreeError`` when the file cannot be read.
  package init(
    _ source: ByteSource, database: DatabaseID, shape: CollectionShape? = nil, format: Format? = nil
  ) throws(FixtureTreeError) {
    let found: Format
    if let known = format ?? Self.format(ofName: source.name) {
      found = known
    } else {
      found = Self.format(ofText: try source.peek(Self.peekedBytesMax))
    }
    self.format = found
    switch found {
    case .fixtureTree: reader = .tree(FixtureTreeReader(source, database: database, shape: shape))
    case .collectionsTree: reader = .collections(CollectionsTreeReader(source, database: database))
    case .documentLines: reader = .lines(DocumentLinesReader(source, database: database))
    }
  }

  /// The next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` for whatever breaks the format or the rules for writes; again at every later call.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    try reader.next()
  }

  static func format(ofName name: String) -> Format? {
    [".ndjson", ".jsonl"].contains { name.utf8.suffix($0.utf8.count).elementsEqual($0.utf8) } ? .documentLines : nil
  }

  /// The format by the first key of a text; broken text counts as a fixture tree, whose reader says what is wrong.
  static func format(ofText bytes: [UInt8]) -> Format {
    var tokens = JSONTokenizer(ByteSource(bytes), .manyValues, bufferBytes: 4096)
    guard (try? tokens.next()) == .objectStart, (try? tokens.next()) == .key else { return .fixtureTree }
    if DocumentBuilder.isEqual(tokens.text, "__collections__") { return .collectionsTree }
    let isLine = DocumentBuilder.isEqual(tokens.text, "path") || DocumentBuilder.isEqual(tokens.text, "name")
    return isLine && (try? tokens.next()) == .string ? .documentLines : .fixtureTree
  }
}

/// The reader of one format.
private enum AnyReader: ~Copyable {
  case tree(FixtureTreeReader)
  case collections(CollectionsTreeReader)
  case lines(DocumentLinesReader)

  mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    // A payload is changed by taking it out; it goes back before an error goes on.
    let result: Result<FixtureDocument?, FixtureTreeError>
    switch consume self {
    case .tree(var reader):
      result = Result { () throws(FixtureTreeError) in try reader.next() }
      self = .tree(reader)
    case .collections(var reader):
      result = Result { () throws(FixtureTreeError) in try reader.next() }
      self = .collections(reader)
    case .lines(var reader):
      result = Result { () throws(FixtureTreeError) in try reader.next() }
      self = .lines(reader)
    }
    return try result.get()
  }
}
