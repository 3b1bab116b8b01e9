package import DocumentModel
package import KeyValue

/// Fills a new database. It writes documents and index entries only, because no read goes back before the load.
///
/// Documents may come in any order; each batch says whether a document may occur again. Do not use it on a database
/// in use: nothing is logged, so listeners and past reads miss the documents. Cost: one write transaction per batch.
package final class BulkLoader {
  /// A document to load, with its index entries. Create items on another thread than the loading one.
  package struct Item: Sendable {
    let key: DocumentKey
    let fields: EncodedFields
    let index: IndexChanges

    /// Creates an item for a database with `indexes`. Cost: linear in the fields.
    /// - Throws: ``CommitError`` if the document exceeds the size limit, or its bytes are not valid fields.
    package init(key: DocumentKey, fields: EncodedFields, indexes: IndexCatalog = .none) throws(CommitError) {
      self.key = key
      self.fields = fields
      index = try CommitPlan.index(key, from: nil, to: fields, .standard, indexes)
    }
  }

  /// The indexes for which items must be created.
  package let indexes: IndexCatalog
  private let store: any KeyValueStore
  private let version: Int64
  private var writer: CommitWriter
  private var puts = SortedPuts()
  /// Whether there were commits before the load.
  private let hasLog: Bool
  private var isBegun = false

  /// Starts a load. Every document gets `version` as its create and update version, or a version after the last commit
  /// if that is later.
  init(store: any KeyValueStore, version: Int64) throws(StorageError) {
    self.store = store
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    let lastVersion = try reader.lastVersion()
    hasLog = lastVersion > Int64(bitPattern: try reader.meta(.created))
    self.version = max(version, hasLog ? lastVersion + 1 : lastVersion)
    indexes = try IndexCatalog(&reader)
    writer = CommitWriter(indexCache: IndexCatalogCache())
  }

  /// Stores a batch in one write transaction.
  ///
  /// Set `mayReplace` if a document of the batch may already be stored, or may occur twice in the batch; the later one
  /// replaces it. That costs two lookups per document. Otherwise, no key may occur twice in all batches, which the
  /// readers of fixture trees ensure within a file.
  /// - Throws: ``StorageError`` if the engine fails. Nothing of the batch is written then.
  package func load(_ items: [Item], mayReplace: Bool = false) throws(StorageError) {
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        if !isBegun { try beginLog(transaction) }
        try writer.begin(transaction)
        var staged = Set<DocumentKey>()
        for item in items {
          if mayReplace {
            // Staged entries are not visible to lookups.
            if !staged.insert(item.key).inserted {
              try puts.write(transaction)
              staged = [item.key]
            }
            if let (index, storedFieldsBytes) = try replacing(item, transaction) {
              try writer.load(
                item.key, item.fields, insteadOf: storedFieldsBytes, index: index, version: version, transaction)
              continue
            }
          }
          try writer.stage(item.key, item.fields, index: item.index, version: version, into: &puts, transaction)
        }
        try puts.write(transaction)
        try writer.finish(transaction)
      }
      isBegun = true
    } catch {
      writer.rollBack()
      puts = SortedPuts()
      throw error
    }
  }

  /// Lets the log begin after the load, because it does not contain the loaded documents.
  private func beginLog(_ transaction: any KeyValueTransaction) throws(StorageError) {
    let bits = UInt64(bitPattern: version)
    try transaction.put(.changeLogFrom, bits)
    guard hasLog else { return }
    // The database is empty, so it has no history.
    for table in [Table.changeLog, .collectionChanges] { try transaction.removeAll(of: table) }
    try transaction.put(.historyFrom, bits)
    try transaction.put(.changeLogCount, 0)
  }

  /// Returns the index entries of an item that replaces a stored document, with the bytes of its fields, or `nil` if the
  /// document does not exist.
  private func replacing(
    _ item: Item, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> (index: IndexChanges, storedFieldsBytes: Int)? {
    var reader = SnapshotReader(transaction)
    guard let stored = try reader.document(item.key) else { return nil }
    do throws(CommitError) {
      let index = try CommitPlan.index(
        item.key, from: EncodedFields(canonical: Array(stored.fields)), to: item.fields, .standard, indexes)
      return (index, stored.fields.count)
    } catch {
      throw .corruption(path: "documents", detail: "\(item.key): \(error)")
    }
  }
}
