import CSodium

/// Encrypts texts with a key that several servers share, with XChaCha20-Poly1305. A text that was changed, or encrypted with
/// another key or for another purpose, is not decrypted.
///
/// The encrypted form is a random number of 24 bytes, then the text and a tag of 16 bytes.
package struct SharedCipher: Sendable {
  /// The bytes by which the encrypted form is longer.
  package static let overhead = nonceBytes + Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)
  private static let nonceBytes = Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)

  private let key: [UInt8]

  /// Creates a cipher, or returns `nil` if the key does not have 32 bytes.
  package init?(key: [UInt8]) {
    guard key.count == Int(crypto_aead_xchacha20poly1305_ietf_KEYBYTES) else { return nil }
    self.key = key
  }

  /// Encrypts a text for a purpose. Cost: two copies of the text.
  package func encrypt(_ text: [UInt8], for purpose: [UInt8]) -> [UInt8] {
    let nonce = RandomBytes.make(Self.nonceBytes)
    var sealed = [UInt8](repeating: 0, count: text.count + Self.overhead - Self.nonceBytes)
    crypto_aead_xchacha20poly1305_ietf_encrypt(
      &sealed, nil, text, UInt64(text.count), purpose, UInt64(purpose.count), nil, nonce, key)
    return nonce + sealed
  }

  /// Decrypts what ``encrypt(_:for:)`` made for the same purpose. Returns `nil` if it is something else.
  package func decrypt(_ sealed: ArraySlice<UInt8>, for purpose: [UInt8]) -> [UInt8]? {
    guard sealed.count >= Self.overhead else { return nil }
    let nonce = Array(sealed.prefix(Self.nonceBytes))
    let rest = Array(sealed.dropFirst(Self.nonceBytes))
    var text = [UInt8](repeating: 0, count: sealed.count - Self.overhead)
    let code = crypto_aead_xchacha20poly1305_ietf_decrypt(
      &text, nil, nil, rest, UInt64(rest.count), purpose, UInt64(purpose.count), nonce, key)
    return code == 0 ? text : nil
  }
}
