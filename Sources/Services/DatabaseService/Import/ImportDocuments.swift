import Dispatch
import DocumentModel
package import DocumentStore
package import FirebaseExport
package import FixtureTree
import KeyValue

/// The outcome of an import.
package struct ImportOutcome: Equatable, Sendable {
  /// The number of documents read.
  package var documents = 0
  /// The number of these documents that already existed with the same fields.
  package var unchanged = 0
  /// The references of an export that were rewritten or kept.
  package var references = ReferenceCounts()
  /// The facts about the files that the user should know.
  package var tally = ReadTally()

  package init(documents: Int = 0, unchanged: Int = 0, tally: ReadTally = ReadTally()) {
    self.documents = documents
    self.unchanged = unchanged
    self.tally = tally
  }
}

extension DocumentDatabase {
  /// Whether nothing has ever been stored, so that ``load(_:progress:)`` may be used.
  /// - Throws: ``StorageError`` if the read fails.
  package func isEmpty() throws -> Bool {
    try read { reader in try DatabaseContents.isEmpty(reader.snapshot) }
  }

  /// Fills a database that is empty and not yet in use.
  ///
  /// One thread reads files and computes index entries while the calling thread stores them. After an error the
  /// database contains a part of the files: delete it. `progress` receives the number of documents stored so far.
  /// - Throws: ``FixtureTreeError`` if a file is invalid, ``StorageError`` if the engine fails.
  package func load(_ files: ImportFiles, progress: (Int) -> Void = { _ in }) throws -> ImportOutcome {
    let loader = try makeLoader()
    let indexes = loader.indexes
    let queue = ImportQueue()
    DispatchQueue(label: "hearth.import").async {
      do {
        let tally = try files.forEachBatch(
          documentsMax: Self.loadBatchDocumentsMax, bytesMax: Self.loadBatchBytesMax
        ) { batch in
          var items: [BulkLoader.Item] = []
          items.reserveCapacity(batch.documents.count)
          for document in batch.documents {
            items.append(try ImportFiles.item(document, of: batch, indexes: indexes))
          }
          try queue.put(ImportQueue.Batch(items: items, mayReplace: batch.mayRepeat, references: batch.references))
        }
        queue.finish(.success(tally))
      } catch { queue.finish(.failure(error)) }
    }
    defer { queue.close() }
    var outcome = ImportOutcome()
    while true {
      switch queue.take() {
      case .batch(let batch):
        try loader.load(batch.items, mayReplace: batch.mayReplace)
        outcome.documents += batch.items.count
        outcome.references += batch.references
        progress(outcome.documents)
      case .end(let result):
        outcome.tally = try result.get()
        return outcome
      }
    }
  }

  /// Stores documents in a database in use, in commits of ``applyBatchDocumentsMax`` documents.
  ///
  /// Check the files first (``ImportFiles/check(progress:)``): documents applied before an error stay. A second run
  /// continues where the first one ended, because documents with the same fields are left as they are.
  /// - Throws: ``FixtureTreeError`` if a file is invalid, ``Status`` if a commit failed.
  package func apply(_ files: ImportFiles, progress: (Int) -> Void = { _ in }) throws -> ImportOutcome {
    let pending = InFlightCommits()
    var read = ImportOutcome()
    defer { pending.waitForAll() }
    let tally = try files.forEachBatch(documentsMax: Self.applyBatchDocumentsMax) { batch in
      try pending.begin()
      let writes = batch.documents.map { Write(.update($0.fields, mask: nil), key: $0.key) }
      commit(CommitRequest(writes)) { [id] result in
        pending.end(result.mapError { Status($0, database: id) })
      }
      read.documents += batch.documents.count
      read.references += batch.references
      progress(read.documents)
    }
    read.unchanged = try pending.finish()
    read.tally = tally
    return read
  }

  /// The maximum number of documents in one write transaction of a load. It keeps both the cost of transactions and
  /// memory small.
  private static var loadBatchDocumentsMax: Int { 20_000 }
  private static var loadBatchBytesMax: Int { 16 << 20 }
  /// The maximum number of documents in one commit.
  private static var applyBatchDocumentsMax: Int { 500 }
}
