package import Basics
import DocumentModel
import KeyEncoding
package import KeyValue
import Synchronization

/// The bytes of the documents of one database, as the quota of its project counts them.
///
/// Each document counts with its path, its encoded fields and ``overheadBytes``. Index entries and past states do not
/// count. The sum is stored with each commit, so no start has to count the documents. The object outlives the open
/// database, so that closing a database that is idle does not change the sum of its project.
package final class DocumentUse: Sendable {
  /// The bytes of each document besides its path and fields.
  package static let overheadBytes = 32

  private let quota: Quota
  /// The part of ``quota`` that this database uses.
  private let counted = Atomic(0)

  /// Creates the use of an empty database.
  package init(_ quota: Quota) { self.quota = quota }

  /// The bytes that the quota counts.
  package var bytes: Int { counted.load(ordering: .relaxed) }

  /// Counts these bytes instead of those so far. Call it only from the writer's thread, or before the first commit.
  func set(_ bytes: Int) { quota.change(by: bytes - counted.exchange(bytes, ordering: .relaxed)) }

  /// Takes bytes for a commit that is not durable yet.
  /// - Throws: the error of the quota if too few are left.
  func take(_ bytes: Int) throws(QuotaError) {
    guard quota.take(bytes) else { throw quota.error }
    counted.wrappingAdd(bytes, ordering: .relaxed)
  }

  /// Returns the bytes of a document, or 0 if it does not exist. Both arguments are in bytes.
  static func bytes(path: Int, fields: Int?) -> Int {
    guard let fields else { return 0 }
    return path + fields + overheadBytes
  }

  // MARK: In the store

  /// Returns the stored bytes of all documents, or `nil` if they must be counted. Cost: three lookups.
  /// - Throws: ``StorageError`` if the read fails.
  package static func stored(_ reader: inout SnapshotReader) throws(StorageError) -> Int? {
    do throws(StorageError) {
      let last = try reader.lastVersion()
      let version = try reader.meta(.documentBytesVersion)
      guard version != 0, Int64(bitPattern: version) == last else { return nil }
      return Int(try reader.meta(.documentBytes))
    } catch {
      // A damaged number is counted again.
      guard case .corruption = error else { throw error }
      return nil
    }
  }

  /// Returns the bytes of all documents in a store. Cost: three lookups, or a read of the keys of all documents if an
  /// older release wrote the store.
  /// - Throws: ``StorageError`` if the read fails.
  package static func bytes(in store: any KeyValueStore) throws(StorageError) -> Int {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    if let stored = try stored(&reader) { return stored }
    return try count(snapshot) ?? 0
  }

  /// Stores the bytes of all documents as of a version.
  static func store(
    _ bytes: Int, version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    try transaction.put(.documentBytes, UInt64(max(0, bytes)))
    try transaction.put(.documentBytesVersion, UInt64(bitPattern: version))
  }

  /// Returns the bytes of all documents in a snapshot, or `nil` if `isStopped` became true. Cost: reads the key and the
  /// length of each document.
  /// - Throws: ``StorageError`` if the read fails.
  package static func count(
    _ snapshot: any KeyValueSnapshot, isStopped: () -> Bool = { false }
  ) throws(StorageError) -> Int? {
    let rows = try DatabaseContents.cursor(.documents, snapshot)
    var reader = SnapshotReader(snapshot)
    var collection: (number: UInt64, pathBytes: Int) = (0, 0)
    var id: [UInt8] = []
    var (sum, count) = (0, 0)
    while var suffix = try rows.suffix() {
      id.removeAll(keepingCapacity: true)
      guard let number = OrderedCode.takeNumber(&suffix), OrderedCode.decode(lastID: suffix, into: &id) else {
        throw .corruption(path: "documents", detail: "a key has no collection number or document ID")
      }
      if number != collection.number || count == 0 {
        collection = (number, try reader.collectionPath(number).bytes.count)
      }
      sum += bytes(
        path: collection.pathBytes + 1 + id.count, fields: max(0, rows.cursor.value.count - StoredDocument.headerBytes))
      count += 1
      if count.isMultiple(of: 4096), isStopped() { return nil }
      rows.consume()
    }
    return sum
  }
}

/// The change of a ``DocumentUse`` by one write transaction.
struct DocumentUseChange {
  /// The bytes before the transaction, or `nil` if they are not known yet.
  private var before: Int?
  private var growth = 0
  /// The bytes that were taken from the quota.
  private var taken = 0
  /// The growth by earlier transactions during which the bytes were not known.
  private(set) var uncounted = 0

  /// Starts a transaction.
  mutating func begin(_ bytes: Int?) { (before, growth, taken) = (bytes, 0, 0) }

  /// Adds the growth of a commit. The bytes that a commit frees are available to others only when it is durable.
  /// - Throws: the error of the quota if it refuses the growth.
  mutating func add(_ bytes: Int, _ use: DocumentUse?) throws(QuotaError) {
    if bytes > 0, let use {
      try use.take(bytes)
      taken += bytes
    }
    growth += bytes
  }

  /// Adds the growth of a load, which no quota limits.
  mutating func add(_ bytes: Int) { growth += bytes }

  /// The bytes after the transaction, or `nil` if they are not known.
  var bytes: Int? { before.map { $0 + growth } }

  /// Ends a transaction that is durable.
  mutating func commit(_ use: DocumentUse?) {
    if let bytes {
      use?.set(bytes)
    } else {
      uncounted += growth
      use?.set(uncounted)
    }
    begin(nil)
  }

  /// Ends a transaction that was rolled back.
  mutating func rollBack(_ use: DocumentUse?) {
    if taken > 0, let use { use.set(use.bytes - taken) }
    begin(nil)
  }
}
