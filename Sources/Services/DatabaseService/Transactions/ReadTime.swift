import DocumentModel
import DocumentStore

/// The moment that a read shows.
struct ReadTime {
  /// The version to read; `nil` to read the newest version of the snapshot.
  var version: Int64?
  /// The read time in the response.
  var timestamp: Timestamp
  /// The read-write transaction that must record what it reads.
  var transaction: TransactionID?
  /// Whether the read is part of a transaction of either kind.
  var isInTransaction = false
}

extension DocumentDatabase {
  /// Runs `body` on a snapshot, with the moment that `consistency` selects.
  /// - Throws: ``CommitError`` if the transaction is over or the moment cannot be read, and any error of `body`.
  func read<R>(_ consistency: ConsistencySelector, _ body: (inout SnapshotReader, ReadTime) throws -> R) throws -> R {
    switch consistency {
    case .latest:
      return try read { reader in
        try body(&reader, ReadTime(timestamp: Timestamp(uncheckedMicroseconds: try reader.lastVersion())))
      }
    case .readTime(let time):
      return try read(at: time) { reader, version in try body(&reader, ReadTime(version: version, timestamp: time)) }
    case .transaction(let id):
      let (mode, readVersion) = try transactions.use(id)
      return try read { reader in
        let last = try reader.lastVersion()
        if readVersion < last { try checkReadable(readVersion, &reader) }
        let readTime = ReadTime(
          version: readVersion < last ? readVersion : nil, timestamp: Timestamp(uncheckedMicroseconds: readVersion),
          transaction: mode == .readWrite ? id : nil, isInTransaction: true)
        return try body(&reader, readTime)
      }
    }
  }
}
