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
    /// The documents of a Firebase export.
    case export(ExportedDocuments)
  }

  private let sources: [Source]
  /// The database of relative references in the files.
  package let database: DatabaseID

  /// Names the sources. Nothing is read yet.
  package init(_ sources: [Source], database: DatabaseID) {
    self.sources = sources
    self.database = database
  }

  /// Names the files. Nothing is read yet. The path `-` is standard input.
  package init(_ paths: [String], database: DatabaseID) {
    self.init(paths.map { .file($0) }, database: database)
  }

  /// Documents of one file that were read together.
  package struct Batch: Sendable {
    /// The name of the file in errors.
    package var file: String
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

  /// Reads every document and passes them to `body` in batches. Memory: one batch and that of the reader.
  /// - Throws: ``FixtureTreeError`` with file, line and path if a file is invalid, and any error of `body`.
  package func forEachBatch(
    documentsMax: Int, bytesMax: Int = 4 << 20, _ body: (Batch) throws -> Void
  ) throws {
    for (index, source) in sources.enumerated() {
      var reader = try AnyDocumentReader(source, database: database)
      var order = DocumentOrder()
      var documents: [FixtureDocument] = []
      var bytes = 0
      var isAscending = true
      func pass() throws {
        var batch = Batch(
          file: reader.file, documents: documents, mayRepeat: index > 0 || reader.mayRepeat(isAscending))
        batch.references = reader.takeReferences()
        try body(batch)
        documents.removeAll()
        documents.reserveCapacity(documentsMax)
        (bytes, isAscending) = (0, true)
      }
      while let document = try reader.next() {
        bytes += document.fields.bytes.count + document.key.path.bytes.count + 64
        if !order.accepts(document.key) { isAscending = false }
        documents.append(document)
        if documents.count >= documentsMax || bytes >= bytesMax { try pass() }
      }
      if !documents.isEmpty { try pass() }
    }
  }

  /// Reads all files completely without storing documents. If it succeeds, they can be stored. Returns the number of
  /// documents.
  /// - Throws: ``FixtureTreeError`` for the first error in the files.
  package func check(progress: (Int) -> Void = { _ in }) throws -> Int {
    var count = 0
    try forEachBatch(documentsMax: 1000) { batch in
      for document in batch.documents { _ = try Self.item(document, file: batch.file) }
      count += batch.documents.count
      progress(count)
    }
    return count
  }

  /// Returns a document with its index entries.
  /// - Throws: ``FixtureTreeError`` if it cannot be stored.
  static func item(
    _ document: FixtureDocument, file: String, indexes: IndexCatalog = .none
  ) throws(FixtureTreeError) -> BulkLoader.Item {
    do throws(CommitError) {
      return try BulkLoader.Item(key: document.key, fields: document.fields, indexes: indexes)
    } catch {
      throw FixtureTreeError(
        file: file, line: document.line, column: 1, path: document.key.path.text,
        message: Status(error, database: nil).message)
    }
  }
}
