import CCrypto

/// An RSA key: signs and verifies with RS256 (RSASSA-PKCS1-v1_5 and SHA-256). A public key supports only
/// ``verifies(_:over:)`` and export of its public parts.
package final class RSAKey: Sendable {
  /// The smallest accepted modulus, in bits (RFC 7518, section 3.3).
  package static let bitsMin = 2048
  /// The largest accepted modulus, in bits. A larger foreign key could cost seconds.
  package static let bitsMax = 8192

  // The key is immutable once created, and libcrypto allows concurrent use of its keys.
  private nonisolated(unsafe) let key: OpaquePointer

  /// Takes ownership of a libcrypto key. Frees it and returns `nil` if it is not an RSA key of an accepted size.
  private init?(_ key: OpaquePointer?) {
    guard let key else {
      ERR_clear_error()
      return nil
    }
    let bits = Int(EVP_PKEY_get_bits(key))
    guard EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA, (Self.bitsMin...Self.bitsMax).contains(bits) else {
      EVP_PKEY_free(key)
      return nil
    }
    self.key = key
  }

  deinit { EVP_PKEY_free(key) }

  /// Creates a key of 2048 bits. Returns `nil` only if libcrypto fails. Cost: about a tenth of a second, with wide
  /// variation.
  package static func make() -> RSAKey? {
    guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bitsMin)) == 1,
      EVP_PKEY_keygen(context, &key) == 1
    else {
      ERR_clear_error()
      return nil
    }
    return RSAKey(key)
  }

  // MARK: Texts

  /// Reads a private key in PEM form. Returns `nil` if the text does not contain one.
  package convenience init?(privatePEM text: String) {
    guard let input = Self.input(text) else { return nil }
    defer { BIO_free(input) }
    self.init(PEM_read_bio_PrivateKey(input, nil, Self.noPassphrase, nil))
  }

  /// Reads a public key in PEM form, bare or in a certificate. Returns `nil` if the text contains neither.
  package convenience init?(publicPEM text: String) {
    guard let input = Self.input(text) else { return nil }
    defer { BIO_free(input) }
    if text.contains("-----BEGIN CERTIFICATE-----") {
      guard let certificate = PEM_read_bio_X509(input, nil, Self.noPassphrase, nil) else {
        ERR_clear_error()
        return nil
      }
      defer { X509_free(certificate) }
      self.init(X509_get_pubkey(certificate))
    } else {
      self.init(PEM_read_bio_PUBKEY(input, nil, Self.noPassphrase, nil))
    }
  }

  /// Creates a public key from the big-endian numbers of a JWK. Returns `nil` if they are not a safe RSA key.
  package convenience init?(modulus: [UInt8], exponent: [UInt8]) {
    // SubjectPublicKeyInfo (RFC 5280, section 4.1): the form that libcrypto reads without deprecated calls.
    func der(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
      var length = withUnsafeBytes(of: UInt32(content.count).bigEndian) { Array($0.drop { $0 == 0 }) }
      if content.count > 127 { length.insert(0x80 | UInt8(length.count), at: 0) }
      return [tag] + (content.isEmpty ? [0] : length) + content
    }
    func integer(_ bytes: [UInt8]) -> [UInt8] {
      let digits = Array(bytes.drop { $0 == 0 })
      return der(0x02, (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits)
    }
    // With an exponent of 1, every text would be its own signature.
    guard modulus.count <= Self.bitsMax / 8 + 1, exponent.count <= 8, let last = exponent.last, !last.isMultiple(of: 2),
      exponent.dropLast().contains(where: { $0 != 0 }) || last >= 3
    else { return nil }
    let rsaEncryption: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00]
    let pair = der(0x30, integer(modulus) + integer(exponent))
    let info = der(0x30, der(0x30, rsaEncryption) + der(0x03, [0] + pair))
    self.init(
      info.withUnsafeBufferPointer { bytes -> OpaquePointer? in
        var start = bytes.baseAddress
        return d2i_PUBKEY(nil, &start, bytes.count)
      })
  }

  /// The private key in PEM form (PKCS #8, without a passphrase), or `nil` for a public key.
  package var privatePEM: String? {
    Self.output { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
  }

  /// The public key in PEM form.
  package var publicPEM: String? { Self.output { PEM_write_bio_PUBKEY($0, key) } }

  /// The big-endian modulus.
  package var modulus: [UInt8] { number("n") }
  /// The big-endian public exponent.
  package var exponent: [UInt8] { number("e") }

  private func number(_ name: String) -> [UInt8] {
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(key, name, &number) == 1, let number else { return [] }
    defer { BN_free(number) }
    let count = Int(BN_num_bits(number) + 7) / 8
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      written = Int(BN_bn2bin(number, buffer.baseAddress))
    }
  }

  /// Without this callback libcrypto would ask for the passphrase of an encrypted key at the terminal.
  private static let noPassphrase:
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?)
      -> Int32 = { _, _, _, _ in -1 }

  private static func input(_ text: String) -> OpaquePointer? {
    var text = text
    return text.withUTF8 { bytes in
      guard let input = BIO_new(BIO_s_mem()) else { return nil }
      guard bytes.count < 1 << 20, BIO_write(input, bytes.baseAddress, Int32(bytes.count)) == bytes.count else {
        BIO_free(input)
        return nil
      }
      return input
    }
  }

  private static func output(_ write: (OpaquePointer) -> Int32) -> String? {
    guard let output = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(output) }
    guard write(output) == 1 else {
      ERR_clear_error()
      return nil
    }
    let bytes = [UInt8](unsafeUninitializedCapacity: BIO_ctrl_pending(output)) { buffer, count in
      count = max(0, Int(BIO_read(output, buffer.baseAddress, Int32(buffer.count))))
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  // MARK: Signatures

  /// Returns the signature of a text, or `nil` for a public key. Cost: a quarter of a millisecond.
  package func sign(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    var count = Int(EVP_PKEY_get_size(key))
    var signature = [UInt8](repeating: 0, count: count)
    let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
      EVP_DigestSign(context, &signature, &count, start, text.count) == 1
    else {
      ERR_clear_error()
      return nil
    }
    signature.removeLast(signature.count - count)
    return signature
  }

  /// Returns whether a signature matches a text. Cost: about twenty microseconds.
  package func verifies(_ signature: [UInt8], over text: UnsafeRawBufferPointer) -> Bool {
    // Only one length is valid: a signature with fewer or more leading zeros would be a second spelling.
    guard signature.count == Int(EVP_PKEY_get_size(key)), let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1,
      EVP_DigestVerify(context, signature, signature.count, start, text.count) == 1
    else {
      ERR_clear_error()
      return false
    }
    return true
  }

  // MARK: Certificates

  /// Returns a self-signed certificate in PEM form, for verifiers that do not accept a bare key. Returns `nil` for
  /// a public key.
  package func selfSignedCertificate(name: String, fromSeconds: Int64, toSeconds: Int64) -> String? {
    guard let certificate = X509_new() else { return nil }
    defer { X509_free(certificate) }
    guard let from = ASN1_TIME_set(nil, Int(fromSeconds)), let to = ASN1_TIME_set(nil, Int(toSeconds)) else {
      return nil
    }
    defer {
      ASN1_STRING_free(from)
      ASN1_STRING_free(to)
    }
    let subject = X509_get_subject_name(certificate)
    let serial = Int64(truncatingIfNeeded: RandomBytes.make(8).reduce(0) { $0 << 8 | UInt64($1) } >> 1)
    let commonName = Array(name.utf8.prefix(64))
    guard X509_set_version(certificate, 2) == 1,
      ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial) == 1,
      X509_set1_notBefore(certificate, from) == 1, X509_set1_notAfter(certificate, to) == 1,
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, commonName, Int32(commonName.count), -1, 0) == 1,
      X509_set_issuer_name(certificate, subject) == 1, X509_set_pubkey(certificate, key) == 1,
      X509_sign(certificate, key, EVP_sha256()) > 0
    else {
      ERR_clear_error()
      return nil
    }
    return Self.output { PEM_write_bio_X509($0, certificate) }
  }
}
