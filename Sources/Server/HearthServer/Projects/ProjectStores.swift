import Accounts
import DocumentModel
import DocumentStore
import Glibc
import KeyValue
import LMDBEngine

/// Opens the stores of one project: files of a data directory, stores in memory, or the replicas of a cluster's owner.
struct ProjectStores: Sendable {
  /// Opens the store of a database that the server serves, and creates it if it does not exist. Returns `nil` for a database
  /// that cannot exist here.
  let database: @Sendable (DatabaseID) throws(StorageError) -> (any KeyValueStore)?
  /// Opens the store of the accounts.
  let accounts: @Sendable () throws(StorageError) -> any KeyValueStore
  /// Opens the store of the metadata of files.
  let filesMetadata: @Sendable () throws(StorageError) -> any KeyValueStore
  /// Returns the mark of the last commit with a file of a database that is not served any more; see
  /// ``DocumentDatabase/lastMark(in:)``.
  let lastMark: @Sendable (DatabaseID) throws(StorageError) -> UInt64
  /// The versions of all commits are above this one, in microseconds since 1970. `nil` is no bound.
  var floor: Int64?
  /// The number of this node in its cluster, or 0.
  var node: UInt16 = 0
  /// If another node writes to the stores: waits for its commits.
  var freshness: (any FreshnessGate)?

  /// Whether the store of the accounts can be opened and was initialized, which its first writer does.
  func hasAccounts() -> Bool {
    guard let store = try? accounts() else { return false }
    return (try? AccountStore.isInitialized(store)) ?? false
  }

  private static let inMemoryMetadataBytesMax = 512 << 20

  /// The stores of a server alone: files of its data directory or, without one, in memory.
  static func local(_ configuration: HearthConfiguration, _ directory: DataDirectory?) -> ProjectStores {
    let mapBytes = configuration.mapBytes
    guard let directory else {
      return ProjectStores(
        database: { _ throws(StorageError) in try LMDBStore.open(.inMemory(mapBytes: mapBytes)) },
        accounts: { () throws(StorageError) in try LMDBStore.open(.inMemory(mapBytes: mapBytes)) },
        filesMetadata: { () throws(StorageError) in
          try LMDBStore.open(.inMemory(mapBytes: min(mapBytes, inMemoryMetadataBytesMax)))
        },
        // A database that does not exist has no commits.
        lastMark: { _ throws(StorageError) in 0 })
    }
    let usesCommitLog = configuration.usesCommitLog
    let project = configuration.project ?? "demo"
    let owner = configuration.filesOwner
    return ProjectStores(
      database: { id throws(StorageError) in
        try StoredDatabase.open(
          LMDBOptions(path: try directory.makeFile(of: id), mapBytes: mapBytes), withLog: usesCommitLog)
      },
      accounts: { () throws(StorageError) in
        try LMDBStore.open(LMDBOptions(path: try directory.makeAccountsFile(of: project), mapBytes: mapBytes))
      },
      filesMetadata: { () throws(StorageError) in
        try LMDBStore.open(
          LMDBOptions(path: DataDirectory.filesFile(of: owner, in: directory.path), mapBytes: mapBytes))
      },
      lastMark: { id throws(StorageError) in
        guard access(DataDirectory.file(of: id, in: directory.path), F_OK) == 0 else { return 0 }
        let options = LMDBOptions(path: DataDirectory.file(of: id, in: directory.path))
        return try DocumentDatabase.lastMark(in: StoredDatabase.openReadOnly(options))
      })
  }
}
