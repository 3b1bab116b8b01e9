import KeyValue

extension FileStore {
  /// Returns a bucket, or `nil` if it does not exist. A configured bucket exists without a record.
  /// - Throws: ``FilesError/storage(_:)`` if the read fails.
  package func bucket(_ name: String) throws(FilesError) -> Bucket? {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    return try bucket(name, snapshot)
  }

  func bucket(_ name: String, _ snapshot: some KeyValueSnapshot) throws(FilesError) -> Bucket? {
    if let record = try snapshot.read(FilesKeySpace.bucket(name)) { return Bucket(name: name, record: record) }
    return isGiven(name) ? Bucket(name: name, created: 0) : nil
  }

  private func isGiven(_ name: String) -> Bool {
    configuration.buckets.contains { $0.utf8.elementsEqual(name.utf8) }
      || configuration.makesBuckets && (name.hasSuffix(".appspot.com") || name.hasSuffix(".firebasestorage.app"))
  }

  /// Returns whether a bucket must be created for an object that is about to be written.
  /// - Throws: ``FilesError/noSuchBucket(_:)`` if only administrators create buckets.
  func lacksBucket(_ name: String, _ transaction: any KeyValueTransaction) throws(FilesError) -> Bool {
    if try transaction.read(FilesKeySpace.bucket(name)) != nil { return false }
    guard configuration.makesBuckets || isGiven(name) else { throw .noSuchBucket(name) }
    return true
  }

  /// Creates a bucket that does not exist.
  func makeBucket(_ name: String, _ transaction: any KeyValueTransaction) throws(FilesError) {
    try transaction.write(FilesKeySpace.bucket(name), Bucket(name: name, created: configuration.now()).encoded)
  }

  /// Creates a bucket if it does not exist.
  /// - Throws: ``FilesError/noSuchBucket(_:)`` if only administrators create buckets.
  func requireBucket(_ name: String, _ transaction: any KeyValueTransaction) throws(FilesError) {
    if try lacksBucket(name, transaction) { try makeBucket(name, transaction) }
  }

  /// Creates a bucket. `body` sets its properties.
  /// - Throws: ``FilesError/bucketExists(_:)``, ``FilesError/invalidBucket(_:)``, or ``FilesError/invalid(_:)`` if
  ///   a limit is exceeded; ``FilesError/storage(_:)`` if the write fails; the errors of `body`.
  package func makeBucket(
    _ name: String, _ body: (inout Bucket) throws(FilesError) -> Void = { _ throws(FilesError) in }
  ) throws(FilesError) -> Bucket {
    guard ObjectName.isBucket(name) else { throw .invalidBucket(name) }
    return try change { (transaction, _, _) throws(FilesError) in
      guard try transaction.read(FilesKeySpace.bucket(name)) == nil else { throw .bucketExists(name) }
      var bucket = Bucket(name: name, created: configuration.now())
      try body(&bucket)
      try bucket.check()
      try transaction.write(FilesKeySpace.bucket(name), bucket.encoded)
      return bucket
    }
  }

  /// Changes the properties of a bucket.
  /// - Throws: ``FilesError/noSuchBucket(_:)``, ``FilesError/conditionNotMet(_:)``, or ``FilesError/invalid(_:)``
  ///   if a limit is exceeded; ``FilesError/storage(_:)`` if the write fails; the errors of `body`.
  package func updateBucket(
    _ name: String, conditions: ObjectConditions = ObjectConditions(), _ body: (inout Bucket) throws(FilesError) -> Void
  ) throws(FilesError) -> Bucket {
    try change { (transaction, _, _) throws(FilesError) in
      guard var bucket = try bucket(name, transaction) else { throw .noSuchBucket(name) }
      try conditions.check(bucket)
      try body(&bucket)
      try bucket.check()
      bucket.metageneration += 1
      bucket.updated = max(configuration.now(), bucket.updated + 1)
      try transaction.write(FilesKeySpace.bucket(name), bucket.encoded)
      return bucket
    }
  }

  /// Deletes an empty bucket.
  /// - Throws: ``FilesError/noSuchBucket(_:)``, ``FilesError/bucketNotEmpty(_:)`` or
  ///   ``FilesError/conditionNotMet(_:)``; ``FilesError/storage(_:)`` if the write fails.
  package func deleteBucket(_ name: String, conditions: ObjectConditions = ObjectConditions()) throws(FilesError) {
    try change { (transaction, _, _) throws(FilesError) in
      guard let bucket = try bucket(name, transaction) else { throw .noSuchBucket(name) }
      try conditions.check(bucket)
      for prefix in [FilesKeySpace.objects(of: name), FilesKeySpace.versions(of: name)] {
        let first = try MetadataCursor(transaction).first(atOrAfter: prefix)
        if let first, first.starts(with: prefix) { throw .bucketNotEmpty(name) }
      }
      try transaction.erase(FilesKeySpace.bucket(name))
    }
  }

  /// Returns at most `max` created buckets by name: those with the prefix, beginning at the name `start`.
  /// - Throws: ``FilesError/storage(_:)`` if the read fails.
  package func buckets(prefix: String = "", from start: String = "", max: Int) throws(FilesError) -> [Bucket] {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    let scan = try MetadataCursor(snapshot)
    var buckets: [Bucket] = []
    let begin = FilesKeySpace.bucket(start.utf8.lexicographicallyPrecedes(prefix.utf8) ? prefix : start)
    let wanted = FilesKeySpace.bucket(prefix)
    var isFound = try scan.seek(begin)
    while isFound, buckets.count < max, scan.key.starts(with: wanted) {
      let name = String(decoding: scan.key.dropFirst(), as: UTF8.self)
      buckets.append(Bucket(name: name, record: scan.value))
      isFound = try scan.next()
    }
    return buckets
  }
}

/// A cursor over the metadata store that throws ``FilesError``.
struct MetadataCursor {
  private let cursor: any KeyValueCursor

  init(_ snapshot: any KeyValueSnapshot) throws(FilesError) {
    do throws(StorageError) { cursor = try snapshot.makeCursor() } catch { throw FilesError(error) }
  }

  var key: UnsafeRawBufferPointer { cursor.key }
  var value: UnsafeRawBufferPointer { cursor.value }

  func seek(_ key: [UInt8]) throws(FilesError) -> Bool {
    var result: Result<Bool, StorageError> = .success(false)
    key.withUnsafeBytes { key in
      do throws(StorageError) { result = .success(try cursor.seek(atOrAfter: key)) } catch { result = .failure(error) }
    }
    do throws(StorageError) { return try result.get() } catch { throw FilesError(error) }
  }

  func next() throws(FilesError) -> Bool {
    do throws(StorageError) { return try cursor.next() } catch { throw FilesError(error) }
  }

  func first(atOrAfter key: [UInt8]) throws(FilesError) -> [UInt8]? {
    try seek(key) ? Array(cursor.key) : nil
  }
}
