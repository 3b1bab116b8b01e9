import CCrypto

/// A key on the curve P-256: signs and verifies with ES256 (RFC 7518, section 3.4). A public key only verifies.
package struct EllipticKey: Sendable {
  /// The length of a coordinate, and of each half of a signature, in bytes.
  private static let halfBytes = 32
  /// SubjectPublicKeyInfo of a key on P-256, up to the coordinates (RFC 5480, section 2).
  private static let publicPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
    0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
  ]

  /// A form that libcrypto reads.
  private enum Form {
    case publicDER([UInt8])
    case privatePEM(String)
  }

  private let form: Form

  /// Creates a public key from the coordinates of a JWK. Returns `nil` if they are not a point of the curve.
  package init?(x: [UInt8], y: [UInt8]) {
    guard x.count == Self.halfBytes, y.count == Self.halfBytes else { return nil }
    form = .publicDER(Self.publicPrefix + x + y)
    guard withKey({ _ in true }) == true else { return nil }
  }

  /// Reads a private key in PEM form. Returns `nil` if the text does not contain one, or one of another curve.
  package init?(privatePEM text: String) {
    form = .privatePEM(text)
    guard withKey({ _ in true }) == true else { return nil }
  }

  /// Calls `body` with libcrypto's key. Returns `nil` if libcrypto does not accept the key.
  private func withKey<R>(_ body: (OpaquePointer) -> R?) -> R? {
    let key: OpaquePointer? =
      switch form {
      case .publicDER(let bytes):
        bytes.withUnsafeBufferPointer { bytes in
          var start = bytes.baseAddress
          return d2i_PUBKEY(nil, &start, bytes.count)
        }
      case .privatePEM(let text): Self.read(text)
      }
    defer { ERR_clear_error() }
    guard let key else { return nil }
    defer { EVP_PKEY_free(key) }
    guard EVP_PKEY_get_base_id(key) == EVP_PKEY_EC, EVP_PKEY_get_bits(key) == Self.halfBytes * 8 else { return nil }
    return body(key)
  }

  private static func read(_ text: String) -> OpaquePointer? {
    guard text.utf8.count < 1 << 16, let input = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(input) }
    var text = text
    let written = text.withUTF8 { BIO_write(input, $0.baseAddress, Int32($0.count)) }
    // Without the callback libcrypto would ask for the passphrase of an encrypted key at the terminal.
    return written > 0 ? PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil) : nil
  }

  // MARK: Signatures

  /// Returns whether a signature, two numbers of 32 bytes, matches a text. Cost: about a tenth of a millisecond.
  package func verifies(_ signature: [UInt8], over text: UnsafeRawBufferPointer) -> Bool {
    guard signature.count == 2 * Self.halfBytes else { return false }
    let pair = Self.integer(signature[..<Self.halfBytes]) + Self.integer(signature[Self.halfBytes...])
    let der = [0x30, UInt8(pair.count)] + pair
    let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return withKey { key in
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
        && EVP_DigestVerify(context, der, der.count, start, text.count) == 1
    } ?? false
  }

  /// Returns the signature of a text, or `nil` for a public key. Cost: about a tenth of a millisecond.
  package func sign(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return withKey { key in
      guard let context = EVP_MD_CTX_new() else { return nil }
      defer { EVP_MD_CTX_free(context) }
      var count = Int(EVP_PKEY_get_size(key))
      var der = [UInt8](repeating: 0, count: count)
      guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
        EVP_DigestSign(context, &der, &count, start, text.count) == 1
      else { return nil }
      return Self.halves(der[..<count])
    }
  }

  /// Returns a big-endian number as an INTEGER of DER.
  private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    if (digits.first ?? 0x80) >= 0x80 { digits.insert(0, at: 0) }
    return [0x02, UInt8(digits.count)] + digits
  }

  /// Returns the two numbers of a signature in DER as 32 bytes each, or `nil` if the form is another.
  private static func halves(_ der: ArraySlice<UInt8>) -> [UInt8]? {
    var rest = der.dropFirst(2)
    var halves: [UInt8] = []
    for _ in 0..<2 {
      guard rest.popFirst() == 0x02, let count = rest.popFirst(), rest.count >= Int(count) else { return nil }
      let digits = rest.prefix(Int(count)).drop { $0 == 0 }
      guard digits.count <= halfBytes else { return nil }
      halves += [UInt8](repeating: 0, count: halfBytes - digits.count) + digits
      rest = rest.dropFirst(Int(count))
    }
    return halves
  }
}
