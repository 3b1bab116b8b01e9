import CSodium
import WireFormat

/// Bytes that nobody can guess, and what is made of them.
package enum RandomBytes {
  /// That many random bytes.
  package static func make(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    randombytes_buf(&bytes, count)
    return bytes
  }

  /// That many random bytes as text of the URL alphabet.
  package static func text(_ count: Int) -> String { String(decoding: Base64URL.encode(make(count)), as: UTF8.self) }

  /// That many random bytes in hexadecimal digits, two each.
  package static func hexadecimal(_ count: Int) -> String { Hexadecimal.text(make(count)) }

  /// The SHA-256 of bytes: what is stored in place of a secret that is random itself.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let bytes = Array(bytes)
    var hash = [UInt8](repeating: 0, count: crypto_hash_sha256_bytes())
    crypto_hash_sha256(&hash, bytes, UInt64(bytes.count))
    return hash
  }
}
