import DocumentModel

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
