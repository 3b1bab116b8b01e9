package import DocumentModel
import DocumentStore
package import FirebaseExport
package import FixtureTree
import Glibc

/// Files of documents to be stored in one database, one after the other: in any format that `FixtureTree` reads, and
/// Firebase exports.
///
/// Each source is a stream of documents. To add a format, add a case to ``Source`` and to `AnyDocumentReader`.
package struct ImportFiles: Sendable {
  /// The source of a file's bytes.
  package enum Source: Sendable {
    /// A path in the file system; `-` is standard input.
    case file(String)
    /// Bytes in memory, with a name for errors.
    case text(name: String, [UInt8])
    /// A copy of a source that can be read only once.
    case copy(name: String, SpoolFile)
    /// The documents of a Firebase export.
    case export(ExportedDocuments)

    /// The name of the source in errors.
    var name: String {
      switch self {
      case .file(let path): path
      case .text(let name, _): name
      case .copy(let name, _): name
      case .export(let documents): documents.name
      }
    }

    /// The number of bytes, or `nil` if it is not known before the end.
    var bytes: Int? {
      switch self {
      case .file(let path):
        var file = stat()
        guard path != "-", stat(path, &file) == 0, file.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(file.st_size)
      case .text, .export: return nil
      case .copy(_, let copy): return copy.count
      }
    }
  }

  private let sources: [Source]
  /// The database of relative references in the files.
  package let database: DatabaseID
  private let options: ReadOptions
  private let meter = ReadMeter()

  /// Names the sources. Nothing is read yet.
  package init(_ sources: [Source], database: DatabaseID, options: ReadOptions = ReadOptions()) {
    self.sources = sources
    self.database = database
    self.options = options
  }

  /// Names the files. Nothing is read yet. The path `-` is standard input.
  package init(_ paths: [String], database: DatabaseID, options: ReadOptions = ReadOptions()) {
    self.init(paths.map { .file($0) }, database: database, options: options)
  }

  /// The part of the files that the current pass has read after `count` documents, from 0 to 1, or `nil` if it is not
  /// known.
  package func fraction(after count: Int) -> Double? {
    if let expectedCount { return expectedCount > 0 ? min(1, Double(count) / Double(expectedCount)) : nil }
    var total = 0
    for source in sources {
      guard let bytes = source.bytes else { return nil }
      total += bytes
    }
    return total == 0 ? nil : min(1, Double(meter.bytes) / Double(total))
  }

  /// Returns the same files, all of which can be read again: sources that can be read only once, such as standard input
  /// and pipes, are copied to temporary files. `progress` receives the number of bytes copied.
  /// - Throws: ``FixtureTreeError`` if a source cannot be read or copied.
  package func repeatable(progress: (Int) -> Void = { _ in }) throws(FixtureTreeError) -> ImportFiles {
    guard unrepeatable != nil else { return self }
    var copies: [Source] = []
    for source in sources {
      if case .file(let path) = source, source.bytes == nil {
        copies.append(.copy(name: path, try SpoolFile(copying: try ByteSource(file: path), progress: progress)))
      } else {
        copies.append(source)
      }
    }
    return ImportFiles(copies, database: database, options: options)
  }

  /// Documents of one file that were read together.
  package struct Batch: Sendable {
    /// The name of the file in errors.
    package var file: String
    /// Whether the documents have numbers of records instead of lines.
    var countsRecords: Bool
    /// The documents in the order of the file.
    package var documents: [FixtureDocument]
    /// Whether an earlier file, or an earlier line of this file, may contain a document of the batch.
    package var mayRepeat: Bool
    /// The references that were rewritten or kept since the previous batch.
    package var references = ReferenceCounts()
  }

  /// The number of documents in all sources, or `nil` if a source does not say it.
  package var expectedCount: Int? {
    var total = 0
    for source in sources {
      guard case .export(let documents) = source, let count = documents.expectedCount else { return nil }
      let (sum, isTooLarge) = total.addingReportingOverflow(count)
      if isTooLarge { return nil }
      total = sum
    }
    return total
  }

  /// Whether no source is named.
  package var isEmpty: Bool { sources.isEmpty }

  /// The first file that can be read only once, such as a pipe; `nil` if all files can be read again.
  package var unrepeatable: String? {
    for case .file(let path) in sources {
      var file = stat()
      // A file that `stat` cannot inspect fails when it is opened, with a better message.
      if path == "-" || (stat(path, &file) == 0 && file.st_mode & S_IFMT != S_IFREG) { return path }
    }
    return nil
  }

  /// Reads every document and passes them to `body` in batches. Returns facts that the user should know. Memory: one
  /// batch and that of the reader.
  /// - Throws: ``FixtureTreeError`` with file, line and path if a file is invalid, and any error of `body`.
  @discardableResult
  package func forEachBatch(
    documentsMax: Int, bytesMax: Int = 4 << 20, _ body: (Batch) throws -> Void
  ) throws -> ReadTally {
    var tally = ReadTally()
    meter.reset()
    for (index, source) in sources.enumerated() {
      var reader = try AnyDocumentReader(source, database: database, options: options, meter: meter)
      var order = DocumentOrder()
      var documents: [FixtureDocument] = []
      var bytes = 0
      var isAscending = true
      var (file, fileNumber) = (reader.file, reader.fileNumber)
      func pass() throws {
        var batch = Batch(
          file: file, countsRecords: reader.countsRecords, documents: documents,
          mayRepeat: index > 0 || reader.mayRepeat(isAscending))
        batch.references = reader.takeReferences()
        try body(batch)
        documents.removeAll()
        documents.reserveCapacity(documentsMax)
        (bytes, isAscending) = (0, true)
      }
      while let document = try reader.next() {
        if reader.fileNumber != fileNumber {
          if !documents.isEmpty { try pass() }
          (file, fileNumber) = (reader.file, reader.fileNumber)
        }
        bytes += document.fields.bytes.count + document.key.path.bytes.count + 64
        if !order.accepts(document.key) { isAscending = false }
        documents.append(document)
        if documents.count >= documentsMax || bytes >= bytesMax { try pass() }
      }
      if !documents.isEmpty { try pass() }
      tally.add(reader.tally)
    }
    return tally
  }

  /// Reads all files completely without storing documents. If it succeeds, they can be stored. Returns the number of
  /// documents.
  /// - Throws: ``FixtureTreeError`` for the first error in the files.
  package func check(progress: (Int) -> Void = { _ in }) throws -> Int {
    var count = 0
    try forEachBatch(documentsMax: 1000) { batch in
      for document in batch.documents { _ = try Self.item(document, of: batch) }
      count += batch.documents.count
      progress(count)
    }
    return count
  }

  /// Returns a document of a batch with its index entries.
  /// - Throws: ``FixtureTreeError`` if it cannot be stored.
  static func item(
    _ document: FixtureDocument, of batch: Batch, indexes: IndexCatalog = .none
  ) throws(FixtureTreeError) -> BulkLoader.Item {
    do throws(CommitError) {
      return try BulkLoader.Item(key: document.key, fields: document.fields, indexes: indexes)
    } catch {
      throw FixtureTreeError(
        file: batch.countsRecords ? "\(batch.file): record \(document.line)" : batch.file,
        line: batch.countsRecords ? 0 : document.line, column: 1, path: document.key.path.text,
        message: Status(error, database: nil).message)
    }
  }
}
