package import KeyValue
package import LMDBEngine
package import LogEngine

/// The data files of a ``Replica``.
package struct ReplicaFiles: Sendable {
  /// The stores whose data files exist.
  package let existing: [StoreName]
  private let opener: @Sendable (StoreName) throws(StorageError) -> any MarkedStore

  /// Describes files. `opener` opens the data file of a store with ``LMDBOptions/acceptsOpenLog``, and creates it and
  /// its folders if they do not exist.
  package init(
    existing: [StoreName], opener: @escaping @Sendable (StoreName) throws(StorageError) -> any MarkedStore
  ) {
    self.existing = existing
    self.opener = opener
  }

  /// Describes files on the disk. `options` returns those of a store, after creating its folder.
  package static func onDisk(
    existing: [StoreName], options: @escaping @Sendable (StoreName) throws(StorageError) -> LMDBOptions
  ) -> ReplicaFiles {
    ReplicaFiles(existing: existing) { (store) throws(StorageError) in
      var options = try options(store)
      options.acceptsOpenLog = true
      return try LMDBStore.open(options)
    }
  }

  /// Opens the data file of a store.
  /// - Throws: ``StorageError`` if it cannot be opened or created.
  package func open(_ store: StoreName) throws(StorageError) -> any MarkedStore { try opener(store) }
}
