package import DocumentModel
package import KeyValue

/// Fills a fresh database: documents and index entries only, since nobody can ask for a time before it.
///
/// Documents come in any order; whether one may come again is said per batch. Not for a database that is in use:
/// nothing is logged.
/// Cost: one write transaction a batch.
package final class BulkLoader {
  /// A document to load, with its index entries worked out: make it on another thread than the one that loads.
  package struct Item: Sendable {
    let key: DocumentKey
    let fields: EncodedFields
    let index: IndexChanges

    /// Creates an item for a database with `indexes`. Cost: linear in the fields.
    /// - Throws: ``CommitError`` when the document is larger than one may be, or its bytes are no fields.
    package init(key: DocumentKey, fields: EncodedFields, indexes: IndexCatalog = .none) throws(CommitError) {
      self.key = key
      self.fields = fields
      index = try CommitPlan.index(key, from: nil, to: fields, .standard, indexes)
    }
  }

  /// The indexes that items are to be made for.
  package let indexes: IndexCatalog
  private let store: any KeyValueStore
  private let version: Int64
  private var writer: CommitWriter
  private var puts = SortedPuts()

  /// Starts a load; `version` is the create and update version of every document.
  init(store: any KeyValueStore, version: Int64) throws(StorageError) {
    self.store = store
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    self.version = max(version, try reader.lastVersion())
    indexes = try IndexCatalog(&reader)
    writer = CommitWriter(indexCache: IndexCatalogCache())
  }

  /// Stores a batch in one write transaction.
  ///
  /// `mayReplace` says that a document of the batch may be there already; the later one stands. It costs two lookups
  /// a document. Without it no key may come twice in all batches, as the readers of fixture trees see to in one file.
  /// - Throws: ``StorageError`` when the engine fails; nothing of the batch is written then.
  package func load(_ items: [Item], mayReplace: Bool = false) throws(StorageError) {
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        try writer.begin(transaction)
        for item in items {
          if mayReplace {
            let index = try replacing(item, transaction)
            try writer.load(item.key, item.fields, index: index, version: version, transaction)
          } else {
            try writer.stage(item.key, item.fields, index: item.index, version: version, into: &puts, transaction)
          }
        }
        try puts.write(transaction)
        try writer.finish(transaction)
      }
    } catch {
      writer.forgetCatalog()
      puts = SortedPuts()
      throw error
    }
  }

  /// The index entries of an item that may take the place of a stored document.
  private func replacing(
    _ item: Item, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> IndexChanges {
    var reader = SnapshotReader(transaction)
    guard let stored = try reader.document(item.key) else { return item.index }
    do throws(CommitError) {
      return try CommitPlan.index(
        item.key, from: EncodedFields(canonical: Array(stored.fields)), to: item.fields, .standard, indexes)
    } catch {
      throw .corruption(path: "documents", detail: "\(item.key): \(error)")
    }
  }
}
