import Dispatch
import DocumentModel
package import DocumentStore
import FixtureTree
import KeyValue

/// What an import did.
package struct ImportOutcome: Equatable, Sendable {
  /// Documents read.
  package var documents = 0
  /// Those of them that were there already, with the same fields.
  package var unchanged = 0

  /// Nothing yet.
  package init(documents: Int = 0, unchanged: Int = 0) {
    self.documents = documents
    self.unchanged = unchanged
  }
}

extension DocumentDatabase {
  /// Whether nothing was ever stored, so that ``load(_:progress:)`` may be used.
  package func isEmpty() throws -> Bool {
    try read { reader in try DatabaseContents.isEmpty(reader.snapshot) }
  }

  /// Fills a database that is empty and that nobody uses yet.
  ///
  /// One thread reads files and works out index entries while the calling one stores. After an error the database
  /// holds a part of the files: throw it away. `progress` is told the documents stored so far.
  /// - Throws: `FixtureTreeError` for what is wrong in a file, `StorageError` when the engine fails.
  package func load(_ files: ImportFiles, progress: (Int) -> Void = { _ in }) throws -> ImportOutcome {
    let loader = try makeLoader()
    let indexes = loader.indexes
    let queue = ImportQueue()
    DispatchQueue(label: "hearth.import").async {
      do {
        try files.forEachBatch(documentsMax: Self.loadBatchDocumentsMax, bytesMax: Self.loadBatchBytesMax) { batch in
          var items: [BulkLoader.Item] = []
          items.reserveCapacity(batch.documents.count)
          for document in batch.documents {
            items.append(try ImportFiles.item(document, file: batch.file, indexes: indexes))
          }
          try queue.put(ImportQueue.Batch(items: items, mayReplace: batch.mayRepeat))
        }
        queue.finish(nil)
      } catch { queue.finish(error) }
    }
    defer { queue.close() }
    var outcome = ImportOutcome()
    while let batch = try queue.take() {
      try loader.load(batch.items, mayReplace: batch.mayReplace)
      outcome.documents += batch.items.count
      progress(outcome.documents)
    }
    return outcome
  }

  /// Stores documents in a database that is in use, in commits of ``applyBatchDocumentsMax`` documents.
  ///
  /// Check the files first (``ImportFiles/check(progress:)``): what is applied before an error stays. Running it again
  /// goes on where it ended, since a document that is there with the same fields is left as it is.
  /// - Throws: `FixtureTreeError`, or ``Status`` for a commit that failed.
  package func apply(_ files: ImportFiles, progress: (Int) -> Void = { _ in }) throws -> ImportOutcome {
    let pending = InFlightCommits()
    var read = 0
    defer { pending.waitForAll() }
    try files.forEachBatch(documentsMax: Self.applyBatchDocumentsMax) { batch in
      try pending.begin()
      let writes = batch.documents.map { Write(.update($0.fields, mask: nil), key: $0.key) }
      commit(CommitRequest(writes)) { [id] result in
        pending.end(result.mapError { Status($0, database: id) })
      }
      read += batch.documents.count
      progress(read)
    }
    return ImportOutcome(documents: read, unchanged: try pending.finish())
  }

  /// Documents of one write transaction of a load: enough to make its cost small, few enough to keep memory so.
  private static var loadBatchDocumentsMax: Int { 20_000 }
  private static var loadBatchBytesMax: Int { 16 << 20 }
  /// Documents of one commit.
  private static var applyBatchDocumentsMax: Int { 500 }
}
