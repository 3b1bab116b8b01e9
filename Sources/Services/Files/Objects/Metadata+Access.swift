import ContentSharing
import KeyValue

extension KeyValueSnapshot {
  /// Returns the value of a key in the metadata store. It is valid until the snapshot ends or the store is written.
  func read(_ key: [UInt8]) throws(FilesError) -> UnsafeRawBufferPointer? {
    do throws(StorageError) {
      return try withKey(key) { (key) throws(StorageError) in try value(for: key) }
    } catch { throw FilesError(error) }
  }

  /// Returns the object of a name, or `nil` if it does not exist. With a generation, also finds replaced and
  /// deleted versions.
  func object(_ name: ObjectName, generation: Int64? = nil) throws(FilesError) -> StoredObject? {
    if let record = try read(FilesKeySpace.object(name)) {
      guard let object = ObjectRecord.decode(record, name) else { throw .damaged(name) }
      if generation == nil || object.generation == generation { return object }
    }
    guard let generation, let record = try read(FilesKeySpace.version(name, generation)) else { return nil }
    guard let object = ObjectRecord.decode(record, name) else { throw .damaged(name) }
    return object
  }

  /// Returns the number of objects that refer to content.
  func holders(of digest: ContentDigest) throws(FilesError) -> Int {
    try read(FilesKeySpace.content(digest)).map { Int($0.fieldNumber) } ?? 0
  }
}

extension KeyValueTransaction {
  func write(_ key: [UInt8], _ value: [UInt8]) throws(FilesError) {
    do throws(StorageError) {
      try withKey(key) { (key) throws(StorageError) in
        try withKey(value) { (value) throws(StorageError) in try put(key, value) }
      }
    } catch { throw FilesError(error) }
  }

  func erase(_ key: [UInt8]) throws(FilesError) {
    do throws(StorageError) {
      _ = try withKey(key) { (key) throws(StorageError) in try remove(key) }
    } catch { throw FilesError(error) }
  }

  /// Adds `change` (1 or -1) to the number of objects that refer to content, and returns the new number. Also counts the
  /// bytes of the object.
  func count(_ content: ContentSummary, by change: Int) throws(FilesError) -> Int {
    // Before ``FileStore/recover()`` there may be no sum.
    if let use = try storedUse() { try setUse(use + change * content.size) }
    let digest = content.digest
    let count = try holders(of: digest) + change
    let key = FilesKeySpace.content(digest)
    if count > 0 {
      try write(key, (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) })
    } else {
      try erase(key)
    }
    return count
  }
}

/// Passes the bytes of an array to a closure with typed throws, which `withUnsafeBytes` does not support.
private func withKey<R>(
  _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(StorageError) -> R
) throws(StorageError) -> R {
  var result: Result<R, StorageError>?
  key.withUnsafeBytes { bytes in
    do throws(StorageError) { result = .success(try body(bytes)) } catch { result = .failure(error) }
  }
  guard let result else { throw .rolledBack }
  return try result.get()
}
