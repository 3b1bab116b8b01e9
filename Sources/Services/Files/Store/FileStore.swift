package import Basics
package import ContentSharing
import Glibc
package import KeyValue
import Synchronization
import WireFormat

/// The store of files: buckets and objects, with their metadata in a key-value store and their content in files.
///
/// Reads run on the caller's thread and are short. Writes wait for the disk: call them on a worker thread. Each
/// write is part of one transaction of the metadata store. Content reaches the disk before the transaction and is
/// removed after it. So a crash can only leave content to which no object refers, and ``sweep()`` removes that.
package final class FileStore: Sendable {
  /// The configuration of a store.
  package struct Configuration: Sendable {
    /// Whether a bucket is created when it is first named, as in emulator mode.
    package var makesBuckets = false
    /// The names of buckets that always exist.
    package var buckets: [String] = []
    /// The most concurrent uploads. At the limit, a new upload replaces the upload with the longest idle time. If
    /// that has been idle for less than ``UploadRecord/restSeconds``, the new upload is rejected.
    package var uploadsMax = 10_000
    /// The most concurrent uploads of one owner, with the same replacement; see ``UploadRecord/owner``.
    package var uploadsOfOwnerMax = 1000
    /// The limit of the bytes of all objects, or `nil` for none.
    package var quota: Quota?
    /// The place in which all nodes of a cluster find the content, or `nil` if it is only in the directory. With one, the
    /// directory is a cache, see ``ContentCache``.
    package var shared: (any SharedContent)?
    /// The size of that cache in bytes. Content that is being read, or not yet shared, may exceed it.
    package var cacheBytesMax = 16 << 30
    /// The time since the machine started, in seconds, by which removals from the shared content wait.
    package var bootSeconds: @Sendable () -> Int64 = { SecondsSinceBoot.now }
    /// The clock, in microseconds since 1970.
    package var now: @Sendable () -> Int64
    /// Returns whether `number` is that of the database's last commit with a file; see ``StagedFileCommit``.
    package var wasCommitted: @Sendable (_ database: String, _ number: UInt64) throws(FilesError) -> Bool = {
      (_, _) throws(FilesError) in false
    }

    /// For tests: called when an object begins to wait for the writer.
    package var objectWaits: (@Sendable () -> Void)?

    /// Creates a configuration without buckets.
    package init(now: @escaping @Sendable () -> Int64) { self.now = now }
  }

  /// A check of a write in its transaction. `before` and `after` are the object before and after the write, or
  /// `nil`.
  package typealias WriteCheck = @Sendable (_ before: StoredObject?, _ after: StoredObject?) throws(FilesError) -> Void

  let metadata: any KeyValueStore
  package let contents: ContentDirectory
  let configuration: Configuration
  /// Locked while metadata are written and unreferenced content is removed. Contains the last assigned generation.
  let writer = Mutex<Int64>(0)
  /// The objects that wait to be written together.
  let waiting = Mutex<[NewObject]>([])
  /// The number of objects about to refer to a content that has its file already. Such content must not be removed.
  let arriving = Mutex<[ContentDigest: Int]>([:])
  let uploads = OpenUploads()
  /// The cache of shared content, or `nil` without shared content.
  let cache: ContentCache?

  /// Creates a store. Call ``recover()`` before the first write.
  package init(metadata: any KeyValueStore, contents: ContentDirectory, configuration: Configuration) {
    self.metadata = metadata
    self.contents = contents
    self.configuration = configuration
    cache = configuration.shared.map { ContentCache($0, contents, bytesMax: configuration.cacheBytesMax) }
  }

  /// The current time, in microseconds since 1970.
  package var now: Int64 { configuration.now() }

  // MARK: - Reading

  /// Returns an object, or `nil` if it or its bucket does not exist. With a generation, also finds replaced and
  /// deleted versions.
  /// - Throws: ``FilesError/storage(_:)`` if the read fails; ``FilesError/damaged(_:)`` if the record is not valid.
  package func object(_ name: ObjectName, generation: Int64? = nil) throws(FilesError) -> StoredObject? {
    while true {
      let snapshot = try self.snapshot()
      defer { snapshot.end() }
      let stored = try snapshot.object(name, generation: generation)
      switch try answer(snapshot, isAbout: { $0 == name }) {
      case .asStored: return stored
      case .replaced(let object): return generation == nil || generation == object.generation ? object : stored
      case .passed: continue
      }
    }
  }

  /// Returns an object with a descriptor of its content, which the caller must close, or `nil` if it does not
  /// exist.
  /// - Parameter waits: whether to fetch content that is only in the shared content, which may take long.
  /// - Throws: ``FilesError/damaged(_:)`` if the content is missing; ``FilesError/notCached`` if the content is not on this
  ///   node and `waits` is `false`; ``FilesError`` if the read fails.
  package func open(
    _ name: ObjectName, generation: Int64? = nil, waits: Bool = true
  ) throws(FilesError) -> (object: StoredObject, descriptor: Int32)? {
    // If the object is replaced between the two steps, its content may be gone. The next round finds the new
    // object.
    var missing: Int64?
    for _ in 0..<8 {
      guard let object = try object(name, generation: generation) else { return nil }
      // The shared content was asked already.
      if missing == object.generation { break }
      if let descriptor = try openContent(object.content, waits: waits) { return (object, descriptor) }
      if cache != nil { missing = object.generation }
    }
    throw .damaged(name)
  }

  func snapshot() throws(FilesError) -> any KeyValueSnapshot {
    do throws(StorageError) { return try metadata.snapshot() } catch { throw FilesError(error) }
  }

  // MARK: - Writing

  /// Creates a file for the content of a new object.
  /// - Throws: ``FilesError/full`` or ``FilesError/system(operation:path:code:)`` if the file cannot be created.
  package func makeIncoming() throws(FilesError) -> IncomingContent {
    try contents.makeIncoming(Self.randomID())
  }

  /// Stores received content as an object, replacing an existing object of that name.
  ///
  /// Cost: a sync of the content and its name, concurrent with others, and a commit that all waiting writes share.
  /// - Parameters:
  ///   - parts: objects to delete in the same transaction if they have not been replaced. No version of them is
  ///     kept.
  ///   - upload: the upload that the object finishes.
  ///   - check: authorizes the write inside the transaction.
  /// - Throws: ``FilesError/conditionNotMet(_:)``, ``FilesError/checksumMismatch(kind:declared:found:)``,
  ///   ``FilesError/noSuchBucket(_:)``, ``FilesError/overQuota(_:)`` or ``FilesError/invalid(_:)``; ``FilesError`` if
  ///   the write fails; the errors of `check`. Then nothing has changed.
  package func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ attributes: ObjectAttributes,
    declared: DeclaredChecksums = DeclaredChecksums(), conditions: ObjectConditions = ObjectConditions(),
    componentCount: Int = 0, removing parts: [StoredObject] = [], ending upload: UploadRecord? = nil,
    check: @escaping WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    try attributes.check()
    try requireAccepted(bytes: incoming.size)
    let content = try incoming.finish()
    try declared.check(content)
    if conditions != ObjectConditions() {
      // The write checks the conditions again. Checking them here can save the disk the work. A caller that may not write
      // the object must not learn whether they are met.
      let before = try object(name)
      var last: Int64 = 0
      try check(before, makeObject(name, content, attributes, insteadOf: before, after: &last))
      try conditions.check(before)
    }
    return try write(incoming, content) { [self] (transaction, last, unreferenced) throws(FilesError) in
      let before = try transaction.object(name)
      let object = makeObject(
        name, content, attributes, insteadOf: before, componentCount: componentCount, after: &last)
      try check(before, object)
      let isNewBucket = try lacksBucket(name.bucket, transaction)
      try conditions.check(before)
      try requireRoom(forBytes: content.size, insteadOf: before, removing: parts, transaction)
      if isNewBucket { try makeBucket(name.bucket, transaction) }
      try hold(object, insteadOf: before, transaction, &unreferenced)
      for part in parts {
        guard let live = try transaction.object(part.name), live.generation == part.generation else { continue }
        try transaction.erase(FilesKeySpace.object(part.name))
        try drop(live, transaction, &unreferenced)
      }
      if let upload {
        let record = upload.ended(.finished(generation: object.generation), received: content.size)
        try transaction.write(FilesKeySpace.upload(upload.id), record.encoded)
      }
      return object
    }
  }

  /// Returns a new object, whose generation is above `last`.
  func makeObject(
    _ name: ObjectName, _ content: ContentSummary, _ attributes: ObjectAttributes, insteadOf before: StoredObject?,
    componentCount: Int = 0, after last: inout Int64
  ) -> StoredObject {
    let now = configuration.now()
    last = max(now, last + 1, (before?.generation ?? 0) + 1)
    return StoredObject(
      name: name, generation: last, created: now, updated: now, content: content, componentCount: componentCount,
      attributes: attributes)
  }

  /// Changes the attributes of an object.
  /// - Throws: ``FilesError/noSuchObject(_:)`` or ``FilesError/conditionNotMet(_:)``; ``FilesError`` if the write
  ///   fails; the errors of the closures.
  package func update(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(),
    check: WriteCheck = { _, _ throws(FilesError) in },
    _ body: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try change { (transaction, _, _) throws(FilesError) in
      // Authorize first: other errors tell the caller something about the object.
      guard let before = try transaction.object(name, generation: generation) else {
        try check(nil, nil)
        try conditions.check(nil)
        throw .noSuchObject(name)
      }
      var object = before
      object.metageneration += 1
      object.updated = max(configuration.now(), before.updated + 1)
      do throws(FilesError) {
        try body(&object.attributes)
        try object.attributes.check()
      } catch {
        try check(before, object)
        throw error
      }
      try check(before, object)
      try conditions.check(before)
      let isLive = object.deleted == nil
      try transaction.write(
        isLive ? FilesKeySpace.object(name) : FilesKeySpace.version(name, object.generation),
        ObjectRecord.encode(object))
      return object
    }
  }

  /// Deletes an object. If its bucket keeps versions, the object becomes a version, unless `generation` is given.
  /// - Throws: ``FilesError/noSuchObject(_:)`` or ``FilesError/conditionNotMet(_:)``; ``FilesError`` if the write
  ///   fails; the errors of `check`.
  package func delete(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(),
    check: WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) {
    try change { (transaction, _, unreferenced) throws(FilesError) in
      let object = try transaction.object(name, generation: generation)
      try check(object, nil)
      try conditions.check(object)
      guard let object else { throw .noSuchObject(name) }
      let isLive = object.deleted == nil
      try transaction.erase(isLive ? FilesKeySpace.object(name) : FilesKeySpace.version(name, object.generation))
      if generation == nil {
        try retire(object, transaction, &unreferenced)
      } else {
        try drop(object, transaction, &unreferenced)
      }
    }
  }

  /// Copies an object. `body` changes the attributes of the copy. The content is shared, so no bytes are copied.
  /// - Throws: ``FilesError/noSuchObject(_:)`` if the source does not exist; ``FilesError/noSuchBucket(_:)``,
  ///   ``FilesError/conditionNotMet(_:)`` or ``FilesError/invalid(_:)``; ``FilesError`` if the write fails; the
  ///   errors of `body`.
  package func copy(
    _ source: ObjectName, generation: Int64? = nil, sourceConditions: ObjectConditions = ObjectConditions(),
    to name: ObjectName, conditions: ObjectConditions = ObjectConditions(),
    _ body: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try change { (transaction, last, unreferenced) throws(FilesError) in
      try requireBucket(name.bucket, transaction)
      guard let found = try transaction.object(source, generation: generation) else { throw .noSuchObject(source) }
      try sourceConditions.check(found)
      let before = try transaction.object(name)
      try conditions.check(before)
      var object = duplicate(found, as: name, insteadOf: before, &last)
      try body(&object.attributes)
      try object.attributes.check()
      try requireRoom(forBytes: object.content.size, insteadOf: before, transaction)
      try hold(object, insteadOf: before, transaction, &unreferenced)
      return object
    }
  }

  /// Renames an object within its bucket, atomically. No bytes are copied.
  /// - Throws: ``FilesError/noSuchObject(_:)`` if the source does not exist; ``FilesError/conditionNotMet(_:)``;
  ///   ``FilesError/invalid(_:)`` if both names are the same; ``FilesError`` if the write fails.
  package func move(
    _ source: ObjectName, sourceConditions: ObjectConditions = ObjectConditions(), to name: ObjectName,
    conditions: ObjectConditions = ObjectConditions()
  ) throws(FilesError) -> StoredObject {
    guard source != name else { throw .invalid("An object cannot be moved to its own name.") }
    return try change { (transaction, last, unreferenced) throws(FilesError) in
      guard let found = try transaction.object(source) else { throw .noSuchObject(source) }
      try sourceConditions.check(found)
      let before = try transaction.object(name)
      try conditions.check(before)
      let object = duplicate(found, as: name, insteadOf: before, &last)
      try hold(object, insteadOf: before, transaction, &unreferenced)
      try transaction.erase(FilesKeySpace.object(source))
      try retire(found, transaction, &unreferenced)
      return object
    }
  }

  /// Returns a new object with the content of another.
  private func duplicate(
    _ object: StoredObject, as name: ObjectName, insteadOf before: StoredObject?, _ last: inout Int64
  ) -> StoredObject {
    let now = configuration.now()
    last = max(now, last + 1, (before?.generation ?? 0) + 1)
    return StoredObject(
      name: name, generation: last, created: now, updated: now, content: object.content,
      componentCount: object.componentCount, attributes: object.attributes)
  }

  /// Writes an object with a reference to its content, and retires the object that it replaces.
  private func hold(
    _ object: StoredObject, insteadOf before: StoredObject?, _ transaction: any KeyValueTransaction,
    _ unreferenced: inout [ContentDigest]
  ) throws(FilesError) {
    try transaction.write(FilesKeySpace.object(object.name), ObjectRecord.encode(object))
    _ = try transaction.count(object.content, by: 1)
    if let before { try retire(before, transaction, &unreferenced) }
  }

  /// Retires an object that was replaced or deleted: keeps it as a version if its bucket keeps versions, else drops
  /// it.
  func retire(
    _ object: StoredObject, _ transaction: any KeyValueTransaction, _ unreferenced: inout [ContentDigest]
  ) throws(FilesError) {
    guard try bucket(object.name.bucket, transaction)?.keepsVersions ?? false else {
      return try drop(object, transaction, &unreferenced)
    }
    var version = object
    version.deleted = configuration.now()
    try transaction.write(FilesKeySpace.version(object.name, object.generation), ObjectRecord.encode(version))
  }

  /// Releases the content reference of an object that is gone.
  private func drop(
    _ object: StoredObject, _ transaction: any KeyValueTransaction, _ unreferenced: inout [ContentDigest]
  ) throws(FilesError) {
    if try transaction.count(object.content, by: -1) == 0 { unreferenced.append(object.content.digest) }
  }

  /// Runs one write transaction. `body` gets the last generation, and appends content to which no object refers any
  /// longer.
  func change<R>(
    _ body: (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) -> R
  ) throws(FilesError) -> R {
    try exclusively { (last) throws(FilesError) in try transact(&last, body) }
  }

  /// Runs `body` under the writer's lock, after settling an interrupted commit.
  func exclusively<R>(_ body: (inout Int64) throws(FilesError) -> R) throws(FilesError) -> R {
    var outcome: Result<R, FilesError>?
    writer.withLock { last in
      do throws(FilesError) {
        try settle(&last)
        outcome = .success(try body(&last))
      } catch { outcome = .failure(error) }
    }
    guard let outcome else { throw .storage(.rolledBack) }
    return try outcome.get()
  }

  /// Runs one write transaction. Call under the writer's lock.
  func transact<R>(
    _ last: inout Int64,
    _ body: (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) -> R
  ) throws(FilesError) -> R {
    var outcome: Result<R, FilesError>?
    var unreferenced: [ContentDigest] = []
    do throws(StorageError) {
      try metadata.write { (transaction) throws(StorageError) in
        do throws(FilesError) {
          outcome = .success(try body(transaction, &last, &unreferenced))
        } catch {
          outcome = .failure(error)
          throw .rolledBack
        }
      }
    } catch {
      if error != .rolledBack { outcome = .failure(FilesError(error)) }
    }
    noteUse()
    removeUnheld(unreferenced)
    guard let outcome else { throw .storage(.rolledBack) }
    return try outcome.get()
  }

  /// Removes those contents to which no object refers or is about to. Call under the writer's lock.
  func removeUnheld(_ digests: [ContentDigest]) {
    guard !digests.isEmpty, let snapshot = try? snapshot() else { return }
    defer { snapshot.end() }
    for digest in digests {
      // If the references cannot be read, the content stays until the next sweep.
      guard let holders = try? snapshot.holders(of: digest), holders == 0 else { continue }
      arriving.withLock { arriving in
        if arriving[digest] == nil { contents.remove(digest) }
      }
    }
  }

  // MARK: - After a crash

  /// Removes incoming content without an upload and expired uploads, and settles an interrupted commit. Call it
  /// before the first write.
  /// - Throws: ``FilesError`` if the store fails.
  package func recover() throws(FilesError) {
    try exclusively { (_) throws(FilesError) in }
    try recoverUse()
    try removeOldUploads()
    let active = try activeUploads()
    contents.removeIncoming(except: Set(active.map(\.id)))
    // In a cluster, the bytes of other uploads may be on other nodes.
    for upload in active where cache == nil || contents.hasIncoming(upload.id) {
      uploads.know(upload.id, upload.owner, now: now)
    }
  }

  /// Removes content to which no object refers, such as a crash leaves behind.
  ///
  /// Runs concurrently with reads and writes. Cost: one lookup per content file.
  /// - Returns: the number of removed files.
  /// - Throws: ``FilesError`` if the store fails.
  package func sweep() throws(FilesError) -> Int {
    var removed = 0
    for part in UInt8.min...UInt8.max {
      // The lock keeps new content from appearing between the two listings.
      writer.withLock { _ in
        let digests = contents.digests(part: part)
        removeUnheld(digests)
        if !digests.isEmpty { removed += digests.count - contents.digests(part: part).count }
      }
    }
    return removed
  }

  /// Removes content that was kept because it was being copied. Call it periodically. Cost: nothing if there is
  /// none.
  /// - Throws: ``FilesError`` if the store fails.
  package func maintain() throws(FilesError) {
    if contents.takeLeftovers() { _ = try sweep() }
  }

  /// Counts the files. Cost: reads all metadata.
  /// - Throws: ``FilesError`` if the store fails.
  package func statistics() throws(FilesError) -> FilesStatistics { try FilesStatistics(metadata, contents) }

  /// Returns a random ID of 32 hexadecimal digits.
  package static func randomID() -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    var generator = SystemRandomNumberGenerator()
    for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
    return Hexadecimal.text(bytes)
  }
}
