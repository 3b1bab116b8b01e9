import Basics
package import KeyValue

// The bytes of all objects of a store, as the quota of the project counts them. Each object counts with its size, also
// an old version, and also if objects share content. The sum is a row of the metadata, so each transaction changes it
// together with the objects. Uploads count when they become objects.

extension KeyValueSnapshot {
  /// Returns the stored bytes of all objects, or `nil` if an older release wrote the store.
  func storedUse() throws(FilesError) -> Int? { try read(FilesKeySpace.use).map { Int($0.fieldNumber) } }

  /// Returns the bytes of all objects. Cost: one lookup, or a read of all metadata if an older release wrote the store.
  func use() throws(FilesError) -> Int {
    if let stored = try storedUse() { return stored }
    return try countedUse()
  }

  /// Returns the bytes of all objects. Cost: reads all metadata.
  func countedUse() throws(FilesError) -> Int {
    var sum = try pendingCommit()?.object.content.size ?? 0
    let scan = try MetadataCursor(self)
    for table in [FilesKeySpace.Table.objects, .versions] {
      let wanted = FilesKeySpace.all(table)
      var isFound = try scan.seek(wanted)
      while isFound, scan.key.starts(with: wanted) {
        let name = table == .objects ? FilesKeySpace.objectName(scan.key) : FilesKeySpace.versionName(scan.key)
        if let name, let object = ObjectRecord.decode(scan.value, name) { sum += object.content.size }
        isFound = try scan.next()
      }
    }
    return sum
  }
}

extension KeyValueTransaction {
  /// Stores the bytes of all objects.
  func setUse(_ bytes: Int) throws(FilesError) {
    let bytes = max(0, bytes)
    try write(FilesKeySpace.use, (0..<8).map { UInt8(truncatingIfNeeded: bytes >> (56 - 8 * $0)) })
  }
}

extension FileStore {
  /// Returns the bytes of all objects in a metadata store, as quotas count them. Cost: one lookup, or a read of all
  /// metadata if an older release wrote the store.
  /// - Throws: ``FilesError`` if the read fails.
  package static func use(in metadata: any KeyValueStore) throws(FilesError) -> Int {
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw FilesError(error) }
    defer { snapshot.end() }
    return try snapshot.use()
  }

  /// Counts the objects if an older release wrote the store.
  func recoverUse() throws(FilesError) {
    let snapshot = try snapshot()
    let stored: Int?
    do throws(FilesError) { stored = try snapshot.storedUse() } catch {
      snapshot.end()
      throw error
    }
    snapshot.end()
    if stored == nil {
      try change { (transaction, _, _) throws(FilesError) in try transaction.setUse(transaction.use()) }
    }
    noteUse()
  }

  /// Checks that an object fits into the quota. Call it before the transaction writes anything.
  /// - Parameters:
  ///   - before: the object that it replaces.
  ///   - parts: other objects that the transaction removes.
  /// - Throws: ``FilesError/overQuota(_:)`` if it does not fit.
  func requireRoom(
    forBytes size: Int, insteadOf before: StoredObject?, removing parts: [StoredObject] = [],
    _ transaction: any KeyValueTransaction
  ) throws(FilesError) {
    guard let quota = configuration.quota, quota.limit != nil else { return }
    var growth = size - parts.reduce(0) { $0 + $1.content.size }
    if let before, try bucket(before.name.bucket, transaction)?.keepsVersions != true { growth -= before.content.size }
    let use = try transaction.use()
    do throws(QuotaError) { try quota.check(growthFrom: use, to: use + growth) } catch { throw .overQuota(error) }
  }

  /// Sets the quota to the stored bytes. Call it under the writer's lock, after a transaction.
  func noteUse() {
    guard let quota = configuration.quota, let snapshot = try? snapshot() else { return }
    defer { snapshot.end() }
    // If the read fails, the next transaction sets the quota, and each check uses the store.
    if let use = try? snapshot.storedUse() { quota.set(use) }
  }
}
