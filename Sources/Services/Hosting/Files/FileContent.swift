import Compression
import Digests
import Basics
import Synchronization

/// The content of a small file, in memory. Immutable, apart from its compressed form, which is made when it is needed.
///
/// It counts its bytes in the memory of its cache until it is released. The cache, known pages and responses retain it.
package final class FileContent: Sendable {
  package let bytes: [UInt8]
  /// The start of the content's SHA-256 as text.
  let digest: String
  private let compressed = Mutex<[UInt8]??>(nil)
  private let memory: MemoryShare

  /// The bytes that each content takes besides its own.
  private static let overheadBytes = 256

  /// Creates the content of a file. Takes ``heldBytes(ofSize:)`` of `memory`, and returns `nil` if too few are left.
  init?(_ bytes: [UInt8], memory: MemoryShare) {
    guard let digest = bytes.withUnsafeBytes({ MessageDigest.compute(.sha256, $0) }),
      memory.take(Self.heldBytes(ofSize: bytes.count))
    else { return nil }
    self.bytes = bytes
    self.digest = Hexadecimal.text(digest.prefix(16))
    self.memory = memory
  }

  deinit { memory.give(heldBytes) }

  /// The content as a gzip member, or `nil` if that is not smaller, or if no memory is left for it. Call it on a thread
  /// that may compute for some time.
  func gzip() -> [UInt8]? {
    compressed.withLock { compressed in
      if let known = compressed { return known }
      let made = try? Compressor(.gzip).encode(bytes, isLast: true)
      let result = made.flatMap { $0.count < bytes.count ? $0 : nil }
      if let result, !memory.take(result.count) { return nil }
      compressed = .some(result)
      return result
    }
  }

  /// The bytes that the content takes in memory.
  var heldBytes: Int {
    Self.heldBytes(ofSize: bytes.count) + compressed.withLock { $0.flatMap { $0?.count } ?? 0 }
  }

  /// The bytes that a content of a size takes in memory, without its compressed form.
  static func heldBytes(ofSize size: Int) -> Int { size + overheadBytes }
}

/// The content of small files, by their stamps. The least recently used content is dropped if the memory is full.
///
/// The memory also contains content that the cache has dropped, until the last response with it ends. So clients that do
/// not read cannot make the process keep more. If no memory is left, files are read from the disk for each response.
///
/// Any thread may use it. The lock is not held while a file is read.
package final class FileContentCache: Sendable {
  private struct Entry {
    let content: FileContent
    var heldBytes: Int
    var lastUse: Int
  }

  private struct State {
    var entries: [ContentStamp: Entry] = [:]
    var heldBytes = 0
    var uses = 0
  }

  private let state = Mutex(State())
  private let memory: MemoryShare

  /// The cache of the sites of all projects.
  package static let process = FileContentCache(bytesMax: HostingLimits.cachedBytesMax)

  /// Creates an empty cache. Its content, with what responses still contain, has at most `bytesMax` bytes.
  package init(bytesMax: Int) { memory = MemoryShare(bytesMax: bytesMax) }

  /// The bytes that the cache keeps.
  package var heldBytes: Int { state.withLock { $0.heldBytes } }

  /// The bytes of all content that is in memory, also of content that only responses retain.
  package var usedBytes: Int { memory.usedBytes }

  /// Returns the content of an open file, or `nil` if the file is large or cannot be read, or no memory is left for it.
  func content(of file: OpenFile) -> FileContent? {
    guard file.size <= HostingLimits.cachedFileBytesMax else { return nil }
    let known = state.withLock { state -> FileContent? in
      state.uses += 1
      state.entries[file.stamp]?.lastUse = state.uses
      return state.entries[file.stamp]?.content
    }
    if let known { return known }
    guard makeRoom(for: FileContent.heldBytes(ofSize: file.size)),
      let content = file.read().flatMap({ FileContent($0, memory: memory) })
    else { return nil }
    if !file.stamp.isRecent { keep(content, of: file.stamp) }
    return content
  }

  /// Counts the compressed form of a content, after it was made.
  func recount(_ content: FileContent, of stamp: ContentStamp) {
    state.withLock { state in
      guard let entry = state.entries[stamp], entry.content === content else { return }
      let held = content.heldBytes
      state.entries[stamp]?.heldBytes = held
      state.heldBytes += held - entry.heldBytes
    }
  }

  private func keep(_ content: FileContent, of stamp: ContentStamp) {
    state.withLock { state in
      guard state.entries[stamp] == nil else { return }
      state.uses += 1
      let held = content.heldBytes
      state.entries[stamp] = Entry(content: content, heldBytes: held, lastUse: state.uses)
      state.heldBytes += held
    }
  }

  /// Drops content, if some bytes do not fit, until a quarter of the memory is free, so that this happens seldom.
  /// Returns whether the bytes fit.
  private func makeRoom(for bytes: Int) -> Bool {
    let bytesMax = memory.bytesMax
    let fits = { [memory] in memory.usedBytes + bytes <= bytesMax }
    guard !fits(), bytes <= bytesMax else { return fits() }
    // Contents are released after the lock.
    let dropped = state.withLock { state in
      var dropped: [FileContent] = []
      let target = min(bytesMax / 4 * 3, bytesMax - bytes)
      for (stamp, entry) in state.entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
        guard state.heldBytes > target else { break }
        state.entries[stamp] = nil
        state.heldBytes -= entry.heldBytes
        dropped.append(entry.content)
      }
      return dropped
    }
    withExtendedLifetime(dropped) {}
    return fits()
  }
}
