package import DocumentModel
import DocumentStore
package import FixtureTree
import Glibc

/// Files of documents to be stored in one database, one after the other, in any format that `FixtureTree` reads.
package struct ImportFiles: Sendable {
  /// The source of a file's bytes.
  package enum Source: Sendable {
    /// A path in the file system; `-` is standard input.
    case file(String)
    /// Bytes in memory, with a name for errors.
    case text(name: String, [UInt8])

    /// The name of the source in errors.
    var name: String {
      switch self {
      case .file(let path): path
      case .text(let name, _): name
      }
    }

    func open() throws(FixtureTreeError) -> ByteSource {
      switch self {
      case .file(let path): try ByteSource(file: path)
      case .text(let name, let bytes): ByteSource(bytes, name: name)
      }
    }
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
  }

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
      var reader = try FixtureReader(try source.open(), database: database)
      let mayRepeat = index > 0 || reader.format == .documentLines
      var documents: [FixtureDocument] = []
      var bytes = 0
      while let document = try reader.next() {
        bytes += document.fields.bytes.count + document.key.path.bytes.count + 64
        documents.append(document)
        if documents.count >= documentsMax || bytes >= bytesMax {
          try body(Batch(file: source.name, documents: documents, mayRepeat: mayRepeat))
          documents.removeAll()
          documents.reserveCapacity(documentsMax)
          bytes = 0
        }
      }
      if !documents.isEmpty { try body(Batch(file: source.name, documents: documents, mayRepeat: mayRepeat)) }
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
