import DocumentModel
import FirebaseExport
import FixtureTree

/// A reader for the documents of one source, in the format that the source has.
struct AnyDocumentReader: ~Copyable {
  private var fixture: FixtureReader?
  private let export: ExportReader?
  private let name: String
  /// Whether a document may occur twice. The readers of trees reject that.
  private let hasRepeats: Bool

  /// Opens a source. References without a database, and those to an export's own database, refer to `database`. `meter`
  /// counts the bytes that are read.
  /// - Throws: ``FixtureTreeError`` if the source cannot be opened.
  init(
    _ source: ImportFiles.Source, database: DatabaseID, options: ReadOptions, meter: ReadMeter
  ) throws(FixtureTreeError) {
    name = source.name
    if case .export(let documents) = source {
      hasRepeats = true
      fixture = nil
      export = documents.makeReader(database: database)
      return
    }
    let types = options.infersTypes ? try FixtureReader.inferTypes(try Self.open(source), options: options) : nil
    let reader = try FixtureReader(
      try Self.open(source, meter: meter), database: database, options: options, types: types)
    hasRepeats = reader.mayRepeat
    fixture = consume reader
    export = nil
  }

  private static func open(
    _ source: ImportFiles.Source, meter: ReadMeter? = nil
  ) throws(FixtureTreeError) -> ByteSource {
    switch source {
    case .file(let path): try ByteSource(file: path, meter: meter)
    case .text(let name, let bytes): ByteSource(bytes, name: name)
    case .copy(_, let copy): copy.open(meter: meter)
    case .export(let documents): ByteSource([], name: documents.name)
    }
  }

  /// The name of the current file in errors.
  var file: String { export?.file ?? name }
  /// A number that differs for each file of an export.
  var fileNumber: Int { export?.fileCount ?? 0 }
  /// Whether ``FixtureDocument/line`` is the number of a record.
  var countsRecords: Bool { export != nil }

  /// Returns whether documents that were read since the last batch may have been read before. `isAscending` says
  /// whether each of them comes after all earlier ones.
  func mayRepeat(_ isAscending: Bool) -> Bool { hasRepeats && !isAscending }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the source violates its format or the rules for writes.
  mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    if let export { return try export.nextDocument() }
    return try fixture?.next() ?? nil
  }

  /// The facts about the source that its user should know.
  var tally: ReadTally {
    mutating get { fixture?.tally ?? ReadTally() }
  }

  /// Returns the counts of references since the last call.
  func takeReferences() -> ReferenceCounts { export?.takeReferences() ?? ReferenceCounts() }
}

/// Detects documents that come after all earlier ones, and so cannot be repeated. Managed exports and those of Hearth
/// are in such an order, those of the emulator are not.
///
/// The order is that of the path's bytes, except that `/` comes first. For IDs without numbers of the form `__id7__`
/// that is name order.
struct DocumentOrder {
  private var greatest: [UInt8] = []

  /// Returns whether a document comes after all earlier ones. Cost: one pass over the common prefix.
  mutating func accepts(_ key: DocumentKey) -> Bool {
    let path = key.path.bytes
    guard Self.precedes(greatest, path) else { return false }
    greatest = path
    return true
  }

  private static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    for (left, right) in zip(a, b) where left != right {
      if left == UInt8(ascii: "/") { return true }
      return right != UInt8(ascii: "/") && left < right
    }
    return a.count < b.count
  }
}
