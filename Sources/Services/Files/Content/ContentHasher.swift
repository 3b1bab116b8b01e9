import CCrypto
import Dispatch
import Synchronization

/// Computes the checksums of content as it streams by. Used by one thread at a time.
package final class ContentHasher {
  private let md5 = MD5Sum()
  private let sha256: OpaquePointer?
  private var crc32c: UInt32 = 0
  private let underWay = DispatchGroup()
  /// Whether libcrypto failed to compute a digest, for lack of memory.
  private var isBroken: Bool
  /// The bytes processed so far.
  package private(set) var size = 0

  /// For pieces of at least this size, another thread computes the MD5, which takes as long as the other checksums
  /// together.
  private static let besideBytesMin = 128 << 10
  private static let workers = DispatchQueue(label: "hearth.md5", qos: .userInitiated, attributes: .concurrent)

  /// Creates a hasher of empty content.
  package init() {
    sha256 = EVP_MD_CTX_new()
    isBroken = EVP_DigestInit_ex(sha256, EVP_sha256(), nil) != 1
  }

  deinit {
    EVP_MD_CTX_free(sha256)
  }

  /// Processes the next bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) { update(Array(bytes)) }

  /// Processes the next bytes. Keeps at most the bytes of one call, until the other thread has processed them.
  package func update(_ bytes: [UInt8]) {
    underWay.wait()
    if bytes.count >= Self.besideBytesMin {
      underWay.enter()
      Self.workers.async { [md5, underWay] in
        md5.update(bytes)
        underWay.leave()
      }
    } else {
      md5.update(bytes)
    }
    bytes.withUnsafeBytes { updateOthers($0) }
  }

  private func updateOthers(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    size += bytes.count
    crc32c = Crc32c.extend(crc32c, bytes)
    if EVP_DigestUpdate(sha256, bytes.baseAddress, bytes.count) != 1 { isBroken = true }
  }

  /// Returns the checksums of all bytes. Call it once.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if libcrypto failed.
  package func finish() throws(FilesError) -> ContentSummary {
    underWay.wait()
    guard !isBroken, let digest = DigestContext.finish(sha256, count: 32), let sum = md5.finish() else {
      throw .system(operation: "EVP_DigestUpdate", path: "libcrypto", code: 12)
    }
    return ContentSummary(size: size, crc32c: crc32c, md5: sum, digest: ContentDigest(bytes: digest))
  }
}

/// An MD5 computation that moves between threads.
private final class MD5Sum: Sendable {
  private struct State {
    let context: OpaquePointer? = EVP_MD_CTX_new()
    var isBroken = false
  }

  private let state: Mutex<State>

  init() {
    state = Mutex(State())
    state.withLock { $0.isBroken = EVP_DigestInit_ex($0.context, EVP_md5(), nil) != 1 }
  }

  deinit { state.withLock { EVP_MD_CTX_free($0.context) } }

  func update(_ bytes: [UInt8]) {
    state.withLock { state in
      if EVP_DigestUpdate(state.context, bytes, bytes.count) != 1 { state.isBroken = true }
    }
  }

  /// Returns the digest, or `nil` if libcrypto failed.
  func finish() -> [UInt8]? {
    state.withLock { $0.isBroken ? nil : DigestContext.finish($0.context, count: 16) }
  }
}

private enum DigestContext {
  static func finish(_ context: OpaquePointer?, count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard EVP_DigestFinal_ex(context, &bytes, &length) == 1, Int(length) == count else { return nil }
    return Array(bytes.prefix(count))
  }
}
