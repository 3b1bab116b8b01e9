import Compression
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
    /// Objects without paths, in arrays or one after another: a format of ``RecordsReader``.
    case records
    /// An object of arrays: a format of ``RecordsReader``.
    case recordsByCollection
    /// The format of ``CSVReader``.
    case csv
  }

  /// The format of the file.
  package let format: Format
  private var reader: AnyReader

  /// The number of bytes to inspect for the format.
  static let peekedBytesMax = 64 << 10

  /// Creates a reader at the start of a file, which can be compressed with gzip or zstd. References without a database
  /// refer to `database`.
  ///
  /// The format is `format` if given. Otherwise the file name decides (`.csv`, `.tsv`, `.ndjson`, `.jsonl`), then the
  /// first bytes: see ``format(ofText:_:)``. `shape` is for fixture trees without `$collections`. `types` are those of
  /// ``inferTypes(_:options:)``.
  /// - Throws: ``FixtureTreeError`` if the file cannot be read, or if the options do not suit its format.
  package init(
    _ source: ByteSource, database: DatabaseID, shape: CollectionShape? = nil, format: Format? = nil,
    options: ReadOptions = ReadOptions(), types: [CSVType]? = nil
  ) throws(FixtureTreeError) {
    let source = try source.decompressed()
    let found = if let format { format } else { try Self.format(of: source, options) }
    if let option = options.csvOption, found != .csv {
      throw FixtureTreeError(
        file: source.name,
        message: "is not CSV, and \(option) applies to CSV only; leave it out, or import the file alone"
      )
    }
    reader = try Self.reader(source, found, database, shape, options, types)
    self.format = found
  }

  private static func reader(
    _ source: ByteSource, _ format: Format, _ database: DatabaseID, _ shape: CollectionShape?, _ options: ReadOptions,
    _ types: [CSVType]?
  ) throws(FixtureTreeError) -> AnyReader {
    switch format {
    case .fixtureTree:
      return .tree(FixtureTreeReader(source, database: database, shape: shape, options: options))
    case .collectionsTree:
      return .collections(CollectionsTreeReader(source, database: database, options: options))
    case .documentLines: return .lines(DocumentLinesReader(source, database: database, options: options))
    case .records, .recordsByCollection:
      let isByCollection = format == .recordsByCollection
      return .records(RecordsReader(source, database: database, options: options, isByCollection: isByCollection))
    case .csv: return .csv(try CSVReader(source, database: database, options: options, types: types))
    }
  }

  /// Whether a document can occur twice in the file without an error. The later one replaces the earlier one.
  package var mayRepeat: Bool { format != .fixtureTree && format != .collectionsTree }

  /// The facts about the part of the file that was read.
  package var tally: ReadTally { reader.tally }

  /// Returns the types of the columns of a CSV file, or `nil` if the file has another format. Cost: reads the file.
  /// - Throws: ``FixtureTreeError`` if the file cannot be read.
  package static func inferTypes(
    _ source: ByteSource, options: ReadOptions
  ) throws(FixtureTreeError) -> [CSVType]? {
    let source = try source.decompressed()
    return try format(of: source, options) == .csv ? try CSVReader.inferTypes(source, options: options) : nil
  }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the file violates the format or the rules for writes. Later calls throw it
  ///   again.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    try reader.next()
  }

  /// Returns whether a file's name, without the ending of a compressed file, ends with a text.
  static func isName(_ name: String, endingWith ending: String) -> Bool {
    let compression = CompressionFormat(nameOfFile: name)?.suffix.utf8.count ?? 0
    return name.utf8.dropLast(compression).suffix(ending.utf8.count).elementsEqual(ending.utf8)
  }

  private static func format(of source: ByteSource, _ options: ReadOptions) throws(FixtureTreeError) -> Format {
    if isName(source.name, endingWith: ".csv") || isName(source.name, endingWith: ".tsv") { return .csv }
    let head = try source.peek(peekedBytesMax)
    // Archives in files are unpacked before their documents are read.
    guard !isArchive(head) else {
      throw FixtureTreeError(
        file: source.name, message: "is an archive, which can be imported only as a file: save it, and name the file")
    }
    if [".ndjson", ".jsonl"].contains(where: { isName(source.name, endingWith: $0) }) {
      guard options.collection != nil else { return .documentLines }
      try checkHasNoPaths(head, source.name)
      return .records
    }
    let found = format(ofText: head, options)
    if found == .records || found == .recordsByCollection, options.collection != nil {
      try checkHasNoPaths(head, source.name)
    }
    return found
  }

  /// Returns whether bytes begin a zip or tar archive.
  private static func isArchive(_ head: [UInt8]) -> Bool {
    head.starts(with: [0x50, 0x4B, 3, 4]) || head.count >= 512 && head[257..<262].elementsEqual("ustar".utf8)
  }

  /// Returns the format that the first bytes of a text show. Malformed text is a fixture tree, whose reader reports the
  /// mistake.
  ///
  /// - An array contains records. An object whose first member is an array of objects has records by collection.
  /// - Without a collection, the first key shows the others: `__collections__`, or `path` or `name` with a string.
  /// - With a collection, any other object is a record, and text that does not begin like JSON is CSV.
  static func format(ofText bytes: [UInt8], _ options: ReadOptions = ReadOptions()) -> Format {
    var tokens = JSONTokenizer(ByteSource(bytes), .manyValues, bufferBytes: 4096)
    let hasCollection = options.collection != nil
    let first = try? tokens.next()
    if first == .arrayStart { return .records }
    guard first == .objectStart else {
      let start = bytes.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) }
      let isCSV = hasCollection && start != nil && start != UInt8(ascii: "{")
      return isCSV ? .csv : .fixtureTree
    }
    let second = try? tokens.next()
    guard second == .key else { return hasCollection && second == .objectEnd ? .records : .fixtureTree }
    if DocumentBuilder.isEqual(tokens.text, "__collections__"), !hasCollection { return .collectionsTree }
    if DocumentBuilder.isEqual(tokens.text, "$collections"), !hasCollection { return .fixtureTree }
    let isName = DocumentBuilder.isEqual(tokens.text, "path") || DocumentBuilder.isEqual(tokens.text, "name")
    let value = try? tokens.next()
    if isName, value == .string, !hasCollection { return .documentLines }
    if value == .arrayStart, let element = try? tokens.next(), element == .objectStart || element == .arrayEnd {
      return hasCollection && isFollowed(&tokens) ? .records : .recordsByCollection
    }
    return hasCollection ? .records : .fixtureTree
  }

  /// Returns whether another value follows the object that was begun, as in NDJSON, within the bytes at hand.
  private static func isFollowed(_ tokens: inout JSONTokenizer) -> Bool {
    while let token = try? tokens.next() {
      if token == .end { return false }
      if tokens.depth == 0 { return (try? tokens.next()) == .objectStart }
    }
    return false
  }

  /// Rejects a collection for a file whose documents have paths.
  private static func checkHasNoPaths(_ head: [UInt8], _ name: String) throws(FixtureTreeError) {
    var tokens = JSONTokenizer(ByteSource(head), .manyValues, bufferBytes: 4096)
    guard (try? tokens.next()) == .objectStart, (try? tokens.next()) == .key else { return }
    let isTree =
      DocumentBuilder.isEqual(tokens.text, "$collections") || DocumentBuilder.isEqual(tokens.text, "__collections__")
    var isLine = DocumentBuilder.isEqual(tokens.text, "path") || DocumentBuilder.isEqual(tokens.text, "name")
    if isLine {
      isLine =
        (try? tokens.next()) == .string && (try? tokens.next()) == .key
        && DocumentBuilder.isEqual(tokens.text, "fields") && (try? tokens.next()) == .objectStart
    }
    guard isTree || isLine else { return }
    throw FixtureTreeError(file: name, message: "the file contains the paths of its documents; leave out --collection")
  }
}

/// The reader of one format.
private enum AnyReader: ~Copyable {
  case tree(FixtureTreeReader)
  case collections(CollectionsTreeReader)
  case lines(DocumentLinesReader)
  case records(RecordsReader)
  case csv(CSVReader)

  var tally: ReadTally {
    switch self {
    case .tree(let reader): reader.tally
    case .collections(let reader): reader.tally
    case .lines(let reader): reader.tally
    case .records(let reader): reader.tally
    case .csv(let reader): reader.tally
    }
  }

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
    case .records(var reader):
      result = Result { () throws(FixtureTreeError) in try reader.next() }
      self = .records(reader)
    case .csv(var reader):
      result = Result { () throws(FixtureTreeError) in try reader.next() }
      self = .csv(reader)
    }
    return try result.get()
  }
}
