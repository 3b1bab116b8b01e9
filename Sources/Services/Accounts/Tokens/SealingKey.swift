import CSodium

/// A secret of this process. It authenticates texts that clients keep, so that the server needs no memory for them.
package struct SealingKey: Sendable {
  private let secret = RandomBytes.make(Int(crypto_auth_hmacsha256_KEYBYTES))

  /// Creates a random key.
  package init() {}

  /// Returns the HMAC-SHA256 of a text for a purpose. The codes of one text for two purposes are unrelated.
  package func code(_ text: some Sequence<UInt8>, for purpose: StaticString) -> [UInt8] {
    let message = Array(purpose.description.utf8) + [0] + text
    var code = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    crypto_auth_hmacsha256(&code, message, UInt64(message.count), secret)
    return code
  }

  /// Returns whether two codes are equal, in a time that depends only on their length.
  package static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && sodium_memcmp(one, other, one.count) == 0
  }
}
