package import DocumentModel
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

extension FirestoreService {
  /// Returns the oldest time at which a database can be read. For administrators.
  /// - Throws: `NOT_FOUND` if the database is not served; `PERMISSION_DENIED` if the caller is not an administrator and
  ///   rules apply; ``StorageError`` if the read fails.
  package func oldestReadTime(in id: DatabaseID, as caller: Caller) throws -> Timestamp {
    let database = try access(to: id, as: caller, creates: false).administrator().database
    return Timestamp(uncheckedMicroseconds: try database.oldestVersion())
  }
}
