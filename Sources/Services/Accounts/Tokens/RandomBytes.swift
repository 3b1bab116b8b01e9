import Basics
import CSodium
import WireFormat

/// Cryptographically secure random bytes, and texts made from them.
package enum RandomBytes {
  /// Returns `count` random bytes.
  package static func make(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    randombytes_buf(&bytes, count)
    return bytes
  }

  /// Returns `count` random bytes as base64 with the URL alphabet.
  package static func text(_ count: Int) -> String { String(decoding: Base64URL.encode(make(count)), as: UTF8.self) }

  /// Returns `count` random bytes as hexadecimal text of twice that length.
  package static func hexadecimal(_ count: Int) -> String { Hexadecimal.text(make(count)) }

  /// Returns the SHA-256 of bytes. The store keeps this hash in place of a random secret.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let bytes = Array(bytes)
    var hash = [UInt8](repeating: 0, count: crypto_hash_sha256_bytes())
    crypto_hash_sha256(&hash, bytes, UInt64(bytes.count))
    return hash
  }
}
