package import DocumentModel
package import KeyValueStore

/// Fills a fresh database: documents and index entries only, since nobody can ask for a time before it.
///
/// Documents come in any order; no key may come twice, which the
/// readers of fixture files see to. Not for a database that is in use: nothing is compared or logged.
/// Cost: one write transaction a batch.
package final class BulkLoader {
  /// A document to load, with its index entries worked out: make it on another thread than the one that loads.
  package struct Item: Sendable {
    let key: DocumentKey
    let fields: EncodedFields
    let index: IndexChanges

    /// Creates an item. Cost: linear in the fields.
    /// - Throws: ``CommitError`` when the document is larger than one may be, or its bytes are no fields.
    package init(key: DocumentKey, fields: EncodedFields) throws(CommitError) {
      self.key = key
      self.fields = fields
      index = try CommitPlan.index(key, from: nil, to: fields)
    }
  }

  private let store: any KeyValueStore
  private let version: Int64
  private var writer = CommitWriter()

  /// Starts a load; `version` is the create and update version of every document.
  init(store: any KeyValueStore, version: Int64) throws(StorageError) {
    self.store = store
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = DocumentReader(snapshot)
    self.version = max(version, try reader.lastVersion())
  }

  /// Stores a batch in one write transaction.
  /// - Throws: ``StorageError`` when the engine fails; nothing of the batch is written then.
  package func load(_ items: [Item]) throws(StorageError) {
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        try writer.begin(transaction)
        for item in items {
          try writer.load(item.key, item.fields, index: item.index, version: version, transaction)
        }
        try writer.finish(transaction)
      }
    } catch {
      writer.forgetCatalog()
      throw error
    }
  }
}
