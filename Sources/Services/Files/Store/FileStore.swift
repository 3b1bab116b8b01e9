import Glibc
package import KeyValue
import Synchronization
import WireFormat

/// Objects in buckets: their metadata in a key-value store, their content in files.
///
/// Reads answer on the caller's thread and are short. What writes waits for the disk: call it on a worker. A write is
/// part of one transaction of the metadata store: content is on disk before it, and is removed after it, so that what a
/// crash leaves is content that no object holds, which ``sweep()`` removes.
package final class FileStore: Sendable {
  /// How a store is set up.
  package struct Configuration: Sendable {
    /// Whether a bucket is there as soon as somebody names it: emulator mode.
    package var makesBuckets = false
    /// Buckets that are always there.
    package var buckets: [String] = []
    /// How many uploads may be under way that come in parts. When as many are, the one that was longest without a part
    /// is given up for a new one; but none before ``UploadRecord/restSeconds``: then no other begins.
    package var uploadsMax = 10_000
    /// How many of those may be one owner's, in the same way; see ``UploadRecord/owner``.
    package var uploadsOfOwnerMax = 1000
    /// The time of day, in microseconds since 1970.
    package var now: @Sendable () -> Int64
    /// Whether a number is that of the last commit of documents in a database that came with a file; see
    /// ``StagedFileCommit``.
    package var wasCommitted: @Sendable (_ database: String, _ number: UInt64) throws(FilesError) -> Bool = {
      (_, _) throws(FilesError) in false
    }

    /// Serves no buckets.
    package init(now: @escaping @Sendable () -> Int64) { self.now = now }
  }

  /// Judges a write in its transaction: the object before, `nil` for none, and after.
  package typealias WriteCheck = @Sendable (_ before: StoredObject?, _ after: StoredObject?) throws(FilesError) -> Void

  let metadata: any KeyValueStore
  /// Where the content is.
  package let contents: ContentDirectory
  let configuration: Configuration
  /// Held while the metadata are written and content that nobody holds is removed; the generation that was given last.
  let writer = Mutex<Int64>(0)
  /// New objects that wait to be written together.
  let waiting = Mutex<[NewObject]>([])
  /// Content that has its file and is about to get its object, and how often: it is not to be removed.
  let arriving = Mutex<[ContentDigest: Int]>([:])
  let uploads = OpenUploads()

  /// Puts a store together; see ``sweep()``.
  package init(metadata: any KeyValueStore, contents: ContentDirectory, configuration: Configuration) {
    self.metadata = metadata
    self.contents = contents
    self.configuration = configuration
  }

  /// The time of day, in microseconds since 1970.
  package var now: Int64 { configuration.now() }

  // MARK: - Reading

  /// The object of a name, also in a bucket that is not there; `nil` where there is none. With a generation also a
  /// version that was replaced or deleted.
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

  /// The object of a name and its content, open for reading; the descriptor is the caller's.
  package func open(
    _ name: ObjectName, generation: Int64? = nil
  ) throws(FilesError) -> (object: StoredObject, descriptor: Int32)? {
    // Content that is replaced between the two looks is gone; the object that replaced it is found then.
    for _ in 0..<8 {
      guard let object = try object(name, generation: generation) else { return nil }
      if let descriptor = try contents.open(object.content.digest) { return (object, descriptor) }
    }
    throw .damaged(name)
  }

  func snapshot() throws(FilesError) -> any KeyValueSnapshot {
    do throws(StorageError) { return try metadata.snapshot() } catch { throw .storage(error) }
  }

  // MARK: - Writing

  /// Makes a file for content that is to become an object.
  package func makeIncoming() throws(FilesError) -> IncomingContent {
    try contents.makeIncoming(Self.randomID())
  }

  /// Makes an object of content that has arrived, or replaces the one of the name.
  ///
  /// Cost: a sync of the content and its name, which runs beside others, and a commit that is shared by all who wait.
  /// - Parameter removing: goes in the same moment where it is still the object of its name, also from a bucket that
  ///   keeps versions.
  /// - Throws: ``FilesError/conditionNotMet(_:)``, ``FilesError/checksumMismatch(kind:declared:found:)`` and what the
  ///   judge throws, and nothing has changed then.
  package func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ attributes: ObjectAttributes,
    declared: DeclaredChecksums = DeclaredChecksums(), conditions: ObjectConditions = ObjectConditions(),
    componentCount: Int = 0, removing parts: [StoredObject] = [], ending upload: UploadRecord? = nil,
    check: @escaping WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    try attributes.check()
    let content = try incoming.finish()
    try declared.check(content)
    // Looked at again when it is written; here it saves the disk some work.
    try conditions.check(object(name))
    return try write(incoming, content) { [self] (transaction, last, unheld) throws(FilesError) in
      let isNewBucket = try lacksBucket(name.bucket, transaction)
      let (object, before) = try makeObject(
        name, content, attributes, conditions: conditions, componentCount: componentCount, transaction, &last)
      try check(before, object)
      if isNewBucket { try makeBucket(name.bucket, transaction) }
      try hold(object, insteadOf: before, transaction, &unheld)
      for part in parts {
        guard let live = try transaction.object(part.name), live.generation == part.generation else { continue }
        try transaction.erase(FilesKeySpace.object(part.name))
        try drop(live, transaction, &unheld)
      }
      if let upload {
        let record = upload.ended(.finished(generation: object.generation), received: content.size)
        try transaction.write(FilesKeySpace.upload(upload.id), record.encoded)
      }
      return object
    }
  }

  /// An object that is to take a name, and the one that has it.
  func makeObject(
    _ name: ObjectName, _ content: ContentSummary, _ attributes: ObjectAttributes, conditions: ObjectConditions,
    componentCount: Int = 0, _ transaction: any KeyValueTransaction, _ last: inout Int64
  ) throws(FilesError) -> (object: StoredObject, before: StoredObject?) {
    let before = try transaction.object(name)
    try conditions.check(before)
    let now = configuration.now()
    let object = StoredObject(
      name: name, generation: max(now, last + 1, (before?.generation ?? 0) + 1), created: now, updated: now,
      content: content, componentCount: componentCount, attributes: attributes)
    last = object.generation
    return (object, before)
  }

  /// Changes what is said of an object.
  /// - Throws: ``FilesError/noSuchObject(_:)``, ``FilesError/conditionNotMet(_:)``, and what the closures throw.
  package func update(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(),
    check: WriteCheck = { _, _ throws(FilesError) in },
    _ body: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try change { (transaction, _, _) throws(FilesError) in
      let before = try transaction.object(name, generation: generation)
      try conditions.check(before)
      guard let before else {
        try check(nil, nil)
        throw .noSuchObject(name)
      }
      var object = before
      try body(&object.attributes)
      try object.attributes.check()
      object.metageneration += 1
      object.updated = max(configuration.now(), before.updated + 1)
      try check(before, object)
      let isLive = object.deleted == nil
      try transaction.write(
        isLive ? FilesKeySpace.object(name) : FilesKeySpace.version(name, object.generation),
        ObjectRecord.encode(object))
      return object
    }
  }

  /// Removes an object. Where its bucket keeps versions it stays as one, unless its generation is named.
  /// - Throws: ``FilesError/noSuchObject(_:)``, ``FilesError/conditionNotMet(_:)``, and what the judge throws.
  package func delete(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(),
    check: WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) {
    try change { (transaction, _, unheld) throws(FilesError) in
      let object = try transaction.object(name, generation: generation)
      try check(object, nil)
      try conditions.check(object)
      guard let object else { throw .noSuchObject(name) }
      let isLive = object.deleted == nil
      try transaction.erase(isLive ? FilesKeySpace.object(name) : FilesKeySpace.version(name, object.generation))
      if generation == nil {
        try retire(object, transaction, &unheld)
      } else {
        try drop(object, transaction, &unheld)
      }
    }
  }

  /// Gives an object's content to another name too, with the attributes that `body` makes of its own. No byte moves.
  /// - Throws: ``FilesError/noSuchObject(_:)`` for a missing source, ``FilesError/conditionNotMet(_:)``.
  package func copy(
    _ source: ObjectName, generation: Int64? = nil, sourceConditions: ObjectConditions = ObjectConditions(),
    to name: ObjectName, conditions: ObjectConditions = ObjectConditions(),
    _ body: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try change { (transaction, last, unheld) throws(FilesError) in
      try requireBucket(name.bucket, transaction)
      guard let found = try transaction.object(source, generation: generation) else { throw .noSuchObject(source) }
      try sourceConditions.check(found)
      let before = try transaction.object(name)
      try conditions.check(before)
      var object = duplicate(found, as: name, insteadOf: before, &last)
      try body(&object.attributes)
      try object.attributes.check()
      try hold(object, insteadOf: before, transaction, &unheld)
      return object
    }
  }

  /// Gives an object another name in its bucket, in one step. No byte moves.
  /// - Throws: ``FilesError/noSuchObject(_:)`` for a missing source, ``FilesError/conditionNotMet(_:)``.
  package func move(
    _ source: ObjectName, sourceConditions: ObjectConditions = ObjectConditions(), to name: ObjectName,
    conditions: ObjectConditions = ObjectConditions()
  ) throws(FilesError) -> StoredObject {
    guard source != name else { throw .invalid("An object cannot be moved to its own name.") }
    return try change { (transaction, last, unheld) throws(FilesError) in
      guard let found = try transaction.object(source) else { throw .noSuchObject(source) }
      try sourceConditions.check(found)
      let before = try transaction.object(name)
      try conditions.check(before)
      let object = duplicate(found, as: name, insteadOf: before, &last)
      try hold(object, insteadOf: before, transaction, &unheld)
      try transaction.erase(FilesKeySpace.object(source))
      try retire(found, transaction, &unheld)
      return object
    }
  }

  /// A new object of the content of another.
  private func duplicate(
    _ object: StoredObject, as name: ObjectName, insteadOf before: StoredObject?, _ last: inout Int64
  ) -> StoredObject {
    let now = configuration.now()
    last = max(now, last + 1, (before?.generation ?? 0) + 1)
    return StoredObject(
      name: name, generation: last, created: now, updated: now, content: object.content,
      componentCount: object.componentCount, attributes: object.attributes)
  }

  /// Writes an object, which holds its content from now on, and lets go of what the one before held.
  private func hold(
    _ object: StoredObject, insteadOf before: StoredObject?, _ transaction: any KeyValueTransaction,
    _ unheld: inout [ContentDigest]
  ) throws(FilesError) {
    try transaction.write(FilesKeySpace.object(object.name), ObjectRecord.encode(object))
    _ = try transaction.count(object.content.digest, by: 1)
    if let before { try retire(before, transaction, &unheld) }
  }

  /// An object is not that of its name any more: it becomes a version where its bucket keeps them, else it is gone.
  func retire(
    _ object: StoredObject, _ transaction: any KeyValueTransaction, _ unheld: inout [ContentDigest]
  ) throws(FilesError) {
    guard try bucket(object.name.bucket, transaction)?.keepsVersions ?? false else {
      return try drop(object, transaction, &unheld)
    }
    var version = object
    version.deleted = configuration.now()
    try transaction.write(FilesKeySpace.version(object.name, object.generation), ObjectRecord.encode(version))
  }

  /// An object is gone, and holds its content no more.
  private func drop(
    _ object: StoredObject, _ transaction: any KeyValueTransaction, _ unheld: inout [ContentDigest]
  ) throws(FilesError) {
    if try transaction.count(object.content.digest, by: -1) == 0 { unheld.append(object.content.digest) }
  }

  /// Runs one write transaction; `body` is given the last generation, and names content that nobody holds after it.
  func change<R>(
    _ body: (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) -> R
  ) throws(FilesError) -> R {
    try exclusively { (last) throws(FilesError) in try transact(&last, body) }
  }

  /// Runs what writes with the writer's lock, after what was left between its steps has been ended.
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

  /// Runs one write transaction, under the writer's lock.
  func transact<R>(
    _ last: inout Int64,
    _ body: (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) -> R
  ) throws(FilesError) -> R {
    var outcome: Result<R, FilesError>?
    var unheld: [ContentDigest] = []
    do throws(StorageError) {
      try metadata.write { (transaction) throws(StorageError) in
        do throws(FilesError) {
          outcome = .success(try body(transaction, &last, &unheld))
        } catch {
          outcome = .failure(error)
          throw .rolledBack
        }
      }
    } catch {
      if error != .rolledBack { outcome = .failure(FilesError(error)) }
    }
    removeUnheld(unheld)
    guard let outcome else { throw .storage(.rolledBack) }
    return try outcome.get()
  }

  /// Removes content if it is still true that nobody holds it, nor is about to. Under the writer's lock.
  func removeUnheld(_ digests: [ContentDigest]) {
    guard !digests.isEmpty, let snapshot = try? snapshot() else { return }
    defer { snapshot.end() }
    for digest in digests {
      // What cannot be told is kept; the next sweep looks again.
      guard let holders = try? snapshot.holders(of: digest), holders == 0 else { continue }
      arriving.withLock { arriving in
        if arriving[digest] == nil { contents.remove(digest) }
      }
    }
  }

  // MARK: - After a crash

  /// Removes arriving content of no upload, and uploads that are too old to go on, and ends what was left between its
  /// steps. Call before anybody writes.
  package func recover() throws(FilesError) {
    try exclusively { (_) throws(FilesError) in }
    try removeOldUploads()
    let active = try activeUploads()
    contents.removeIncoming(except: Set(active.map(\.id)))
    for upload in active { uploads.know(upload.id, upload.owner, now: now) }
  }

  /// Removes what a crash left behind: content that no object holds.
  ///
  /// Runs beside reads and writes. Cost: a look at every file.
  /// - Returns: how many files were removed.
  package func sweep() throws(FilesError) -> Int {
    var removed = 0
    for part in UInt8.min...UInt8.max {
      // The lock keeps content from getting a name between the two looks.
      writer.withLock { _ in
        let digests = contents.digests(part: part)
        removeUnheld(digests)
        if !digests.isEmpty { removed += digests.count - contents.digests(part: part).count }
      }
    }
    return removed
  }

  /// Removes what was left because somebody was copying it; call now and then. Cost: nothing unless that happened.
  package func maintain() throws(FilesError) {
    if contents.takeLeftovers() { _ = try sweep() }
  }

  /// How many files there are. Cost: reads all metadata.
  package func statistics() throws(FilesError) -> FilesStatistics { try FilesStatistics(metadata, contents) }

  /// 32 digits that nobody can guess.
  package static func randomID() -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    var generator = SystemRandomNumberGenerator()
    for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
    return Hexadecimal.text(bytes)
  }
}
