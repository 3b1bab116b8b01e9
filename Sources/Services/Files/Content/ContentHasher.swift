import Basics
import ContentSharing
import Digests
import Dispatch
import Synchronization

/// Computes the checksums of content as it streams by. Used by one thread at a time.
package final class ContentHasher {
  private let md5 = MD5Sum()
  private var sha256 = MessageDigest(.sha256)
  private var crc32c: UInt32 = 0
  private let underWay = DispatchGroup()
  /// The bytes processed so far.
  package private(set) var size = 0

  /// For pieces of at least this size, another thread computes the MD5, which takes as long as the other checksums
  /// together, unless all of these threads are busy.
  private static let besideBytesMin = 128 << 10
  private static let workers = BoundedWorkers(
    "md5", threads: WorkerLimits.processors, unfinishedMax: WorkerLimits.processors)

  /// Creates a hasher of empty content.
  package init() {}

  /// Processes the next bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) { update(Array(bytes)) }

  /// Processes the next bytes. Keeps at most the bytes of one call, until the other thread has processed them.
  package func update(_ bytes: [UInt8]) {
    underWay.wait()
    let isBeside = bytes.count >= Self.besideBytesMin && updateBeside(bytes)
    if !isBeside { md5.update(bytes) }
    bytes.withUnsafeBytes { updateOthers($0) }
  }

  /// Computes the MD5 on another thread. Returns `false` if none is free.
  private func updateBeside(_ bytes: [UInt8]) -> Bool {
    underWay.enter()
    let isTaken = Self.workers.run { [md5, underWay] in
      md5.update(bytes)
      underWay.leave()
    }
    if !isTaken { underWay.leave() }
    return isTaken
  }

  private func updateOthers(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    size += bytes.count
    crc32c = Crc32c.extend(crc32c, bytes)
    sha256.update(bytes)
  }

  /// Returns the checksums of all bytes. Call it once.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if libcrypto failed.
  package func finish() throws(FilesError) -> ContentSummary {
    underWay.wait()
    guard let digest = sha256.finish(), let sum = md5.finish() else {
      throw .system(operation: "EVP_DigestUpdate", path: "libcrypto", code: 12)
    }
    return ContentSummary(size: size, crc32c: crc32c, md5: sum, digest: ContentDigest(bytes: digest))
  }
}

/// An MD5 computation that moves between threads.
private final class MD5Sum: Sendable {
  private let digest = Mutex(MessageDigest(.md5))

  func update(_ bytes: [UInt8]) {
    digest.withLock { digest in bytes.withUnsafeBytes { digest.update($0) } }
  }

  /// Returns the digest, or `nil` if libcrypto failed.
  func finish() -> [UInt8]? { digest.withLock { $0.finish() } }
}
