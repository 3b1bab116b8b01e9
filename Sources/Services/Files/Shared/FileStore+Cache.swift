import Basics
import ContentSharing
import Glibc
import Synchronization

// The size of the cache.
extension FileStore {
  /// Trims the cache in the background if it is too large.
  func trimLater(_ cache: ContentCache) {
    guard cache.needsTrim else { return }
    _ = cache.trims.run { [weak self] in self?.trimCache() }
  }

  /// Removes the content that was used the longest time ago from the cache, until nine tenths of its size are left. Content
  /// that is being read, is arriving or was not shared stays, so the cache can be larger than its size.
  ///
  /// Cost: reads the attributes of all files of the cache, and if it is too large, twice. Uses 16 bytes of memory for each.
  /// - Returns: the number of removed files.
  @discardableResult
  package func trimCache() -> Int {
    guard let cache, cache.isIdentified else { return 0 }
    var files: [(used: Int, size: Int)] = []
    var bytes = 0
    forEachCached { (_, status) in
      bytes += Int(status.st_size)
      if status.isMarkedShared { files.append((status.lastUse, Int(status.st_size))) }
    }
    cache.counted(bytes)
    guard bytes > cache.bytesMax else { return 0 }
    files.sort { $0.used < $1.used }
    var excess = bytes - cache.bytesMax / 10 * 9
    var limit = Int.min
    for file in files where excess > 0 {
      excess -= file.size
      limit = file.used
    }
    var removed = 0
    excess = bytes - cache.bytesMax / 10 * 9
    forEachCached { (digest, status) in
      guard excess > 0, status.isMarkedShared, status.lastUse <= limit, evict(digest) else { return }
      removed += 1
      excess -= Int(status.st_size)
      bytes -= Int(status.st_size)
    }
    cache.counted(bytes)
    return removed
  }

  private func forEachCached(_ body: (ContentDigest, stat) -> Void) {
    for part in UInt8.min...UInt8.max {
      for digest in contents.digests(part: part) {
        var status = stat()
        if stat(contents.file(of: digest), &status) == 0 { body(digest, status) }
      }
    }
  }

  /// Removes content from the cache unless it is being read, or an upload of the same content is under way. Returns whether
  /// it was removed.
  private func evict(_ digest: ContentDigest) -> Bool {
    guard let descriptor = try? contents.open(digest) else { return false }
    defer { close(descriptor) }
    return arriving.withLock { arriving in
      // An upload may have put an unshared file in its place.
      guard arriving[digest] == nil, contents.isMarkedShared(digest) == true,
        flock(descriptor, LOCK_EX | LOCK_NB) == 0
      else { return false }
      return contents.remove(digest)
    }
  }

  /// Reads the files of the cache, and removes those that do not match their digest and were shared: the next read fetches
  /// them again. Cost: reads all content on this node.
  /// - Returns: the number of removed files.
  /// - Throws: ``FilesError`` if a digest cannot be computed.
  package func verifyCache() throws(FilesError) -> Int {
    guard let cache, cache.isIdentified else { return 0 }
    var removed = 0
    for part in UInt8.min...UInt8.max {
      for digest in contents.digests(part: part) {
        guard contents.isMarkedShared(digest) == true, let descriptor = try contents.open(digest) else { continue }
        defer { close(descriptor) }
        let hasher = ContentHasher()
        var isReadable = true
        do throws(FilesError) {
          try ContentFile.forEachPiece(of: descriptor, path: contents.file(of: digest)) { hasher.update($0) }
        } catch { isReadable = false }
        let found = try hasher.finish().digest
        if isReadable, found == digest { continue }
        let isRemoved = arriving.withLock { arriving in arriving[digest] == nil && contents.remove(digest) }
        if isRemoved { removed += 1 }
      }
    }
    return removed
  }
}

extension stat {
  /// See ``ContentDirectory/isMarkedShared(_:)``.
  fileprivate var isMarkedShared: Bool { st_mode & 0o200 == 0 }
  /// The time of the last use, in nanoseconds.
  fileprivate var lastUse: Int { st_mtim.tv_sec * 1_000_000_000 + st_mtim.tv_nsec }
}
