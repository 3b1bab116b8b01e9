package import DocumentModel
import DocumentStore
package import FixtureTree
import Glibc

/// Files of documents that go into one database, one after the other. Any format that `FixtureTree` reads.
package struct ImportFiles: Sendable {
  /// Where the bytes of one file are.
  package enum Source: Sendable {
    /// In the file system; `-` is standard input.
    case file(String)
    /// Here, under the name that errors carry.
    case text(name: String, [UInt8])

    /// What errors call it.
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

  /// The files.
  private let sources: [Source]
  /// The database that paths in references mean.
  package let database: DatabaseID

  /// Joins the parts; nothing is read yet.
  package init(_ sources: [Source], database: DatabaseID) {
    self.sources = sources
    self.database = database
  }

  /// Joins the parts; nothing is read yet. The path `-` is standard input.
  package init(_ paths: [String], database: DatabaseID) {
    self.init(paths.map { .file($0) }, database: database)
  }

  /// Documents of one file that were read together.
  package struct Batch: Sendable {
    /// The name of the file, for errors.
    package var file: String
    /// The documents in the order of the file.
    package var documents: [FixtureDocument]
    /// Whether an earlier file, or an earlier line of this one, may hold a document of the batch.
    package var mayRepeat: Bool
  }

  /// The first file that can be read only once, such as a pipe; `nil` where all can be read again.
  package var unrepeatable: String? {
    for case .file(let path) in sources {
      var file = stat()
      // What cannot be looked at fails when it is opened, with a better text.
      if path == "-" || (stat(path, &file) == 0 && file.st_mode & S_IFMT != S_IFREG) { return path }
    }
    return nil
  }

  /// Reads every document and lends them in batches. Memory: one batch and the reader's.
  /// - Throws: ``FixtureTreeError`` with file, line and path, and what `body` throws.
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

  /// Reads all files to their ends and keeps nothing: what passes can be stored. Returns the number of documents.
  /// - Throws: ``FixtureTreeError`` for the first thing that is wrong.
  package func check(progress: (Int) -> Void = { _ in }) throws -> Int {
    var count = 0
    try forEachBatch(documentsMax: 1000) { batch in
      for document in batch.documents { _ = try Self.item(document, file: batch.file) }
      count += batch.documents.count
      progress(count)
    }
    return count
  }

  /// A document with its index entries.
  /// - Throws: ``FixtureTreeError`` when it cannot be stored.
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
