import ContentSharing
import KeyValue
import Synchronization

// Maintenance of the shared content. Only the owner of the metadata can do it.
extension FileStore {
  /// The outcome of ``shareStored()``.
  package struct Shared: Equatable, Sendable {
    /// The number of contents that were shared.
    package var contents = 0
    /// The number of contents that the shared content does not accept, because they are too large or damaged.
    package var refused = 0
  }

  /// Shares content that is only on this node: that of a server that had no shared content before, or that of a restored
  /// backup. Does nothing without shared content.
  ///
  /// Until it has returned, other nodes lack that content. Cost: a look at each file, and a copy of each that is not marked.
  /// - Throws: ``FilesError`` if the metadata cannot be read or the shared content fails.
  package func shareStored() throws(FilesError) -> Shared {
    var outcome = Shared()
    guard let cache else { return outcome }
    try requireSharedIdentity(cache)
    for part in UInt8.min...UInt8.max {
      for digest in contents.digests(part: part) where contents.isMarkedShared(digest) == false {
        try holding(digest) { () throws(FilesError) in
          guard try isReferred(digest), let size = contents.size(of: digest) else { return }
          let content = ContentSummary(size: size, crc32c: 0, md5: [], digest: digest)
          do throws(FilesError) {
            try requireAccepted(bytes: size)
            _ = try cache.publish(content, fromFile: contents.file(of: digest))
            contents.markShared(digest)
            outcome.contents += 1
          } catch .tooLarge { outcome.refused += 1 }
        }
      }
    }
    return outcome
  }

  /// Removes copies from the shared content to which no object has referred for an hour. Call it about once an hour. Does
  /// nothing without shared content.
  ///
  /// A copy is removed in the second sweep that sees it without an object, at the earliest. Before, the sweep commits a row:
  /// that succeeds only on the owner of the metadata, and after all commits before it have their outcome. So the metadata
  /// that decide are current, and no transaction can refer to the copy any longer: see ``ContentCover``.
  ///
  /// Cost: lists all copies, with one lookup for each.
  /// - Returns: the number of removed copies.
  /// - Throws: ``FilesError`` if the metadata cannot be read or written, or the shared content fails.
  package func sweepShared() throws(FilesError) -> Int {
    guard let cache else { return 0 }
    try requireSharedIdentity(cache)
    let due = try retire(cache)
    guard !due.isEmpty else { return 0 }
    try change { (transaction, _, _) throws(FilesError) in
      let now = self.now
      try transaction.write(
        FilesKeySpace.sharedSweep, (0..<8).map { UInt8(truncatingIfNeeded: now >> (56 - 8 * $0)) })
    }
    var removed = 0
    // A snapshot is not held while the place is busy.
    for copy in try withoutObjects(due) {
      do throws(SharedContentError) { try cache.shared.remove(copy) } catch { throw FilesError(error) }
      cache.withRetired { _ = $0.removeValue(forKey: copy) }
      removed += 1
    }
    return removed
  }

  /// Removes what unfinished publications left in the shared content a day ago. Does nothing without shared content.
  /// - Throws: ``FilesError`` if the shared content fails.
  package func removeSharedLeftovers() throws(FilesError) {
    guard let cache else { return }
    try requireSharedIdentity(cache)
    do throws(SharedContentError) { try cache.shared.removeLeftovers() } catch { throw FilesError(error) }
  }

  private func withoutObjects(_ copies: [SharedCopy]) throws(FilesError) -> [SharedCopy] {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    var found: [SharedCopy] = []
    for copy in copies where try isUnheld(copy.digest, snapshot) { found.append(copy) }
    return found
  }

  /// Notes the copies to which no object refers. Returns those that were noted an hour ago.
  private func retire(_ cache: ContentCache) throws(FilesError) -> [SharedCopy] {
    let now = configuration.bootSeconds()
    var unheld: Set<SharedCopy> = []
    var failure: FilesError?
    do throws(SharedContentError) {
      try cache.shared.forEachCopy { (copies) throws(SharedContentError) in
        guard unheld.count < ContentCache.retiredMax else { return }
        do throws(FilesError) {
          let snapshot = try self.snapshot()
          defer { snapshot.end() }
          for copy in copies where try isUnheld(copy.digest, snapshot) { unheld.insert(copy) }
        } catch {
          failure = error
          throw .refused("the metadata cannot be read")
        }
      }
    } catch { throw failure ?? FilesError(error) }
    return cache.withRetired { retired in
      retired = retired.filter { unheld.contains($0.key) }
      for copy in unheld where retired[copy] == nil && retired.count < ContentCache.retiredMax { retired[copy] = now }
      return retired.filter { now - $0.value >= Int64(SharedContentLimits.removalSeconds) }.map(\.key)
    }
  }

  private func isUnheld(_ digest: ContentDigest, _ snapshot: some KeyValueSnapshot) throws(FilesError) -> Bool {
    guard try snapshot.holders(of: digest) == 0 else { return false }
    return arriving.withLock { $0[digest] == nil }
  }
}
