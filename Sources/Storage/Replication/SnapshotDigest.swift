import Digests

/// A SHA-256 of bytes in pieces.
final class SnapshotDigest {
  private var digest = MessageDigest(.sha256)

  func add(_ bytes: [UInt8]) { bytes.withUnsafeBytes { digest.update($0) } }

  /// Returns the digest, or `nil` if libcrypto failed. Call it once.
  func finish() -> [UInt8]? { digest.finish() }

  /// Returns the digest of bytes, or `nil` if libcrypto failed.
  static func of(_ bytes: [UInt8]) -> [UInt8]? { bytes.withUnsafeBytes { MessageDigest.compute(.sha256, $0) } }
}
