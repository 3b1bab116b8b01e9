import Compression
import Digests
import Basics
import Synchronization

/// The content of a small file, in memory. Immutable, apart from its compressed form, which is made when it is needed.
package final class FileContent: Sendable {
  package let bytes: [UInt8]
  /// The start of the content's SHA-256 as text.
  let digest: String
  private let compressed = Mutex<[UInt8]??>(nil)

  init?(_ bytes: [UInt8]) {
    guard let digest = bytes.withUnsafeBytes({ MessageDigest.compute(.sha256, $0) }) else { return nil }
    self.bytes = bytes
    self.digest = Hexadecimal.text(digest.prefix(16))
  }

  /// The content as a gzip member, or `nil` if that is not smaller. Call it on a thread that may compute for some time.
  func gzip() -> [UInt8]? {
    compressed.withLock { compressed in
      if let known = compressed { return known }
      let made = try? Compressor(.gzip).encode(bytes, isLast: true)
      let result = made.flatMap { $0.count < bytes.count ? $0 : nil }
      compressed = .some(result)
      return result
    }
  }

  /// The bytes that the content takes in memory.
  var heldBytes: Int { bytes.count + compressed.withLock { $0.flatMap { $0?.count } ?? 0 } + 256 }
}

/// The content of small files, by their stamps. The least recently used content is dropped if the memory is full.
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
  private let bytesMax: Int

  /// Creates an empty cache that keeps at most `bytesMax` bytes.
  package init(bytesMax: Int = HostingLimits.cachedBytesMax) { self.bytesMax = bytesMax }

  /// The bytes that the cache keeps.
  package var heldBytes: Int { state.withLock { $0.heldBytes } }

  /// Returns the content of an open file, or `nil` if the file is large or cannot be read.
  func content(of file: OpenFile) -> FileContent? {
    guard file.size <= HostingLimits.cachedFileBytesMax else { return nil }
    let known = state.withLock { state -> FileContent? in
      state.uses += 1
      state.entries[file.stamp]?.lastUse = state.uses
      return state.entries[file.stamp]?.content
    }
    if let known { return known }
    guard let content = file.read().flatMap({ FileContent($0) }) else { return nil }
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
      evict(&state)
    }
  }

  private func keep(_ content: FileContent, of stamp: ContentStamp) {
    state.withLock { state in
      guard state.entries[stamp] == nil else { return }
      state.uses += 1
      let held = content.heldBytes
      state.entries[stamp] = Entry(content: content, heldBytes: held, lastUse: state.uses)
      state.heldBytes += held
      evict(&state)
    }
  }

  /// Drops content until a quarter of the memory is free, so that this happens seldom.
  private func evict(_ state: inout State) {
    guard state.heldBytes > bytesMax else { return }
    for (stamp, entry) in state.entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      guard state.heldBytes > bytesMax / 4 * 3 else { break }
      state.entries[stamp] = nil
      state.heldBytes -= entry.heldBytes
    }
  }
}
