import COpenSSL
import Glibc

/// The secret of a cluster: 32 bytes that each of its nodes has, and nobody else. Connections between nodes use a key
/// that is derived from it. Its descriptions do not contain it.
package struct NodeKey: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
  /// The number of bytes of a key.
  package static let byteCount = 32

  private let bytes: [UInt8]

  /// Creates a key, or returns `nil` if there are not exactly ``byteCount`` bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// Compares two keys in a time that does not depend on them.
  package static func == (left: NodeKey, right: NodeKey) -> Bool {
    var difference: UInt8 = 0
    for index in 0..<byteCount { difference |= left.bytes[index] ^ right.bytes[index] }
    return difference == 0
  }

  package var description: String { "NodeKey" }
  package var debugDescription: String { description }

  /// Writes the 32 bytes of HMAC-SHA256 of a purpose under this key to `space`. Keys of different purposes say nothing
  /// about each other. Returns `false` if OpenSSL fails.
  func derive(_ purpose: StaticString, into space: UnsafeMutableRawBufferPointer) -> Bool {
    guard space.count == Self.byteCount, let target = space.baseAddress else { return false }
    var count: UInt32 = 0
    let made = bytes.withUnsafeBytes { key in
      HMAC(
        EVP_sha256(), key.baseAddress, Int32(key.count), purpose.utf8Start, purpose.utf8CodeUnitCount,
        target.assumingMemoryBound(to: UInt8.self), &count)
    }
    return made != nil && count == UInt32(Self.byteCount)
  }
}
