package import DocumentModel

/// A reader for the documents of a file in any of the formats, one document at a time.
package struct FixtureReader: ~Copyable {
  /// The format of a file.
  package enum Format: Equatable, Sendable {
    /// The format of ``FixtureTreeReader``.
    case fixtureTree
    /// The format of ``CollectionsTreeReader``.
    case collectionsTree
    /// The format of ``DocumentLinesReader``.
    case documentLines
  }

  /// The format of the file.
  package let format: Format
  private var reader: AnyReader

  /// The number of bytes to inspect for the format.
  static let peekedBytesMax = 64 << 10

  /// Creates a reader at the start of a file. References without a database refer to `database`.
  ///
  /// The format is `format` if given. Otherwise the file name decides (`.ndjson`, `.jsonl`), then the first key:
  /// `__collections__`, or `path` or `name` with a string. Any other file is a fixture tree. `shape` is for fixture
  /// trees without `$collections`.
  /// - Throws: ``FixtureTreeError`` if the file cannot be read.
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

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the file violates the format or the rules for writes. Later calls throw it
  ///   again.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    try reader.next()
  }

  static func format(ofName name: String) -> Format? {
    [".ndjson", ".jsonl"].contains { name.utf8.suffix($0.utf8.count).elementsEqual($0.utf8) } ? .documentLines : nil
  }

  /// Returns the format that the first key of a text shows. Malformed text is a fixture tree, whose reader reports
  /// the mistake.
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
    // A payload can be changed only after it is moved out, so it is moved back before an error is thrown.
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
