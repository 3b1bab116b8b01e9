package import DocumentModel
package import DocumentStore

/// The moment a read is to show (`consistency_selector`).
package enum ConsistencySelector: Hashable, Sendable {
  /// The newest state.
  case latest
  /// The state a transaction reads.
  case transaction(TransactionID)
  /// The state at a time.
  case readTime(Timestamp)
}

/// What a new transaction is to be (`TransactionOptions`).
package enum TransactionMode: Hashable, Sendable {
  /// Reads and writes, at the newest state; `retrying` names the failed attempt this one follows.
  case readWrite(retrying: TransactionID?)
  /// Reads only, at a time or at the newest state.
  case readOnly(Timestamp?)
}

/// The moment a read was pinned to.
package struct ReadTime {
  /// The version to read at; `nil` where the snapshot shows it as it is.
  package var version: Int64?
  /// What the answer says it shows.
  package var readTime: Timestamp
  /// The read-write transaction that must remember what it saw.
  package var transaction: TransactionID?
  /// Whether the read is one of a transaction, of either kind.
  var isInTransaction = false
}

extension DocumentDatabase {
  /// Runs `body` on a snapshot, with the moment that `consistency` pins the read to.
  /// - Throws: what `body` throws, or ``CommitError`` when the transaction is over or the moment cannot be read.
  func read<R>(_ consistency: ConsistencySelector, _ body: (inout SnapshotReader, ReadTime) throws -> R) throws -> R {
    switch consistency {
    case .latest:
      return try read { reader in
        try body(&reader, ReadTime(readTime: Timestamp(uncheckedMicroseconds: try reader.lastVersion())))
      }
    case .readTime(let time):
      return try read(at: time) { reader, version in try body(&reader, ReadTime(version: version, readTime: time)) }
    case .transaction(let id):
      let (mode, readVersion) = try transactions.use(id)
      return try read { reader in
        let last = try reader.lastVersion()
        if readVersion < last { try checkReadable(readVersion, &reader) }
        let moment = ReadTime(
          version: readVersion < last ? readVersion : nil, readTime: Timestamp(uncheckedMicroseconds: readVersion),
          transaction: mode == .readWrite ? id : nil, isInTransaction: true)
        return try body(&reader, moment)
      }
    }
  }

  /// The document at a moment. Its fields are valid as long as the reader's snapshot.
  func document(_ key: DocumentKey, at moment: ReadTime, _ reader: inout SnapshotReader) throws -> StoredDocument? {
    guard let version = moment.version else { return try reader.document(key) }
    guard let row = try reader.collection(key.collection) else { return nil }
    return try reader.document(key.id, in: row.number, at: version)
  }
}
