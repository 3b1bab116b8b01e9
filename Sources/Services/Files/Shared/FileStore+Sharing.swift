import ContentSharing
import Glibc
import KeyValue
import Synchronization

// The order of an upload: its file gets its name, a copy of it becomes durable in the shared content, and then a
// transaction refers to it. So another node can serve each object that was acknowledged.
extension FileStore {
  /// Checks that content of a size can be stored.
  /// - Throws: ``FilesError/tooLarge(bytesMax:)`` if the shared content does not accept it.
  package func requireAccepted(bytes: Int) throws(FilesError) {
    guard let cache, bytes > cache.shared.bytesMax else { return }
    throw .tooLarge(bytesMax: cache.shared.bytesMax)
  }

  /// The size of the largest content, in bytes, or `nil` if nothing limits it.
  package var contentBytesMax: Int? {
    cache.flatMap { $0.shared.bytesMax < .max ? $0.shared.bytesMax : nil }
  }

  /// Opens content. Fetches it if it is not on this node and `waits` is true. Returns `nil` if it is missing.
  func openContent(_ content: ContentSummary, waits: Bool) throws(FilesError) -> Int32? {
    guard let cache else { return try contents.open(content.digest) }
    if let descriptor = try cache.open(content) { return descriptor }
    guard waits else { throw .notCached }
    try requireSharedIdentity(cache)
    let descriptor = try cache.fetch(content)
    trimLater(cache)
    return descriptor
  }

  // MARK: Writing

  /// Runs `body` while the file of a content stays in the directory.
  func holding<R>(_ digest: ContentDigest, _ body: () throws(FilesError) -> R) throws(FilesError) -> R {
    arriving.withLock { $0[digest, default: 0] += 1 }
    defer {
      writer.withLock { _ in
        leave([digest])
        removeUnheld([digest])
      }
    }
    return try body()
  }

  /// Publishes content, first on this node and then in the shared content, and writes the object that refers to it.
  func write(
    _ incoming: IncomingContent, _ content: ContentSummary, _ body: @escaping NewObject.Body, _ cache: ContentCache
  ) throws(FilesError) -> StoredObject {
    let digest = content.digest
    return try holding(digest) { () throws(FilesError) in
      let isUnshared = contents.isMarkedShared(digest) == false
      try contents.publish(incoming, as: digest)
      cache.added(content.size)
      let object = try withCopies(of: content, from: contents.file(of: digest), isUnshared: isUnshared, cache) {
        (cover) throws(FilesError) in
        contents.markShared(digest)
        arriving.withLock { $0[digest, default: 0] += 1 }
        return try write(
          NewObject(digest) { (transaction, last, unreferenced) throws(FilesError) in
            try cover.check(transaction)
            return try body(transaction, &last, &unreferenced)
          })
      }
      trimLater(cache)
      return object
    }
  }

  /// Runs `body`, whose transaction refers to content, with a cover of the content. Runs it again with another one if
  /// the transaction finds that the cover is not enough.
  /// - Parameter isUnshared: whether the directory had a file of the content that was never shared, or `nil` to look.
  func withCopies<R>(
    of content: ContentSummary, from path: String, isUnshared: Bool? = nil, _ cache: ContentCache,
    _ body: (ContentCover) throws(FilesError) -> R
  ) throws(FilesError) -> R {
    try requireSharedIdentity(cache)
    let isUnshared = isUnshared ?? (contents.isMarkedShared(content.digest) == false)
    let isReferred = try isReferred(content.digest)
    var needsCopy = isUnshared || !isReferred || cache.isSuspect(content.digest)
    for _ in 0..<3 {
      let cover = ContentCover(
        content.digest, begun: needsCopy ? try cache.publish(content, fromFile: path) : nil)
      do throws(FilesError) { return try body(cover) } catch {
        guard cover.isMissing else { throw error }
        needsCopy = true
      }
    }
    throw .sharedContent("\(cache.shared.place) is too slow")
  }

  func isReferred(_ digest: ContentDigest) throws(FilesError) -> Bool {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    return try snapshot.holders(of: digest) > 0
  }

  // MARK: The identity of the place

  /// Checks once that the shared content is that of these files. The first check claims the place: it stores a random number
  /// in the metadata, and so on all nodes, and then in the place. A place that other files claimed is refused, because the
  /// sweeps of the one would remove the content of the other.
  /// - Throws: ``FilesError/sharedContent(_:)`` if it is another one, or cannot be reached.
  func requireSharedIdentity(_ cache: ContentCache) throws(FilesError) {
    if cache.isIdentified { return }
    var record = try sharedRecord()
    if record == nil {
      record = try change { (transaction, _, _) throws(FilesError) in
        if let earlier = try transaction.read(FilesKeySpace.shared) { return Array(earlier) }
        let new = (0..<8).map { _ in UInt8.random(in: 0...255) } + [0]
        try transaction.write(FilesKeySpace.shared, new)
        return new
      }
    }
    guard let record, record.count == 9 else {
      throw .storage(.corruption(path: "files", detail: "the record of the shared content is not valid"))
    }
    let identity = record[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    let isClaimed = record[8] == 1
    let found: UInt64?
    do throws(SharedContentError) { found = try cache.shared.identity(claiming: isClaimed ? nil : identity) } catch {
      throw FilesError(error)
    }
    guard found == identity else {
      throw .sharedContent(
        "\(cache.shared.place) " + (found == nil ? "is empty" : "belongs to other files")
          + ", and is not the place of these files. Is its file system mounted, and is its name right?")
    }
    if !isClaimed {
      try change { (transaction, _, _) throws(FilesError) in
        try transaction.write(FilesKeySpace.shared, record[..<8] + [1])
      }
    }
    try forgetMarks(ofOtherThan: Array(record[..<8]))
    cache.identified()
  }

  /// Forgets the place of the content, and that anything was shared. The next check claims a place. Call it before any other use of
  /// the shared content.
  /// - Throws: ``FilesError`` if the metadata cannot be written.
  package func forgetPlace() throws(FilesError) {
    try change { (transaction, _, _) throws(FilesError) in
      for key in [FilesKeySpace.shared, FilesKeySpace.sharedSweep] where try transaction.read(key) != nil {
        try transaction.erase(key)
      }
    }
  }

  /// Returns the stored identity of the place, and whether the place was claimed.
  private func sharedRecord() throws(FilesError) -> [UInt8]? {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    return try snapshot.read(FilesKeySpace.shared).map { Array($0) }
  }

  /// Removes the marks of shared content if they belong to another place.
  private func forgetMarks(ofOtherThan identity: [UInt8]) throws(FilesError) {
    let file = contents.identityFile
    let wanted = [UInt8]("\(ContentDigest(bytes: identity).text)\n".utf8)
    var found = [UInt8](repeating: 0, count: wanted.count)
    let descriptor = Glibc.open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw ContentDirectory.failure("open", file) }
    defer { close(descriptor) }
    if pread(descriptor, &found, found.count, 0) == found.count, found == wanted { return }
    for part in UInt8.min...UInt8.max {
      for digest in contents.digests(part: part) { contents.unmarkShared(digest) }
    }
    guard pwrite(descriptor, wanted, wanted.count, 0) == wanted.count, contents.isInMemory || fsync(descriptor) == 0
    else {
      throw ContentDirectory.failure("write", file)
    }
  }
}
