package import DatabaseService
package import Files

/// Calls for buckets, which only administrators make.
extension StorageService {
  /// Returns a bucket.
  /// - Throws: ``FilesError/noSuchBucket(_:)``; the errors of the conditions; ``FilesError/denied(_:)`` if the caller
  ///   is not an administrator; ``FilesError`` if the read fails.
  package func getBucket(
    _ name: String, conditions: ObjectConditions = ObjectConditions(), as caller: Caller
  ) throws(FilesError) -> Bucket {
    guard let bucket = try files(as: caller).administrator().bucket(name) else { throw .noSuchBucket(name) }
    try conditions.check(bucket, isRead: true)
    return bucket
  }

  /// Returns at most `max` buckets in the order of their names, from the name `start`.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; ``FilesError`` if the read fails.
  package func listBuckets(
    prefix: String = "", from start: String = "", max: Int, as caller: Caller
  ) throws(FilesError) -> [Bucket] {
    try files(as: caller).administrator().buckets(prefix: prefix, from: start, max: max)
  }

  /// Creates a bucket. `change` sets its metadata. Waits for the disk.
  /// - Throws: ``FilesError/bucketExists(_:)`` or ``FilesError/invalidBucket(_:)``; ``FilesError/denied(_:)`` if the
  ///   caller is not an administrator; ``FilesError`` if the write fails.
  package func insertBucket(
    _ name: String, as caller: Caller, _ change: (inout Bucket) -> Void = { _ in }
  ) throws(FilesError) -> Bucket {
    try files(as: caller).administrator().makeBucket(name, change)
  }

  /// Changes the metadata of a bucket. Waits for the disk.
  /// - Throws: ``FilesError/noSuchBucket(_:)`` or ``FilesError/conditionNotMet(_:)``; ``FilesError/denied(_:)`` if the
  ///   caller is not an administrator; ``FilesError`` if the write fails.
  package func patchBucket(
    _ name: String, conditions: ObjectConditions = ObjectConditions(), as caller: Caller,
    _ change: (inout Bucket) -> Void
  ) throws(FilesError) -> Bucket {
    try files(as: caller).administrator().updateBucket(name, conditions: conditions, change)
  }

  /// Deletes an empty bucket. Waits for the disk.
  /// - Throws: ``FilesError/noSuchBucket(_:)``, ``FilesError/bucketNotEmpty(_:)`` or
  ///   ``FilesError/conditionNotMet(_:)``; ``FilesError/denied(_:)`` if the caller is not an administrator;
  ///   ``FilesError`` if the write fails.
  package func deleteBucket(
    _ name: String, conditions: ObjectConditions = ObjectConditions(), as caller: Caller
  ) throws(FilesError) {
    try files(as: caller).administrator().deleteBucket(name, conditions: conditions)
  }
}
