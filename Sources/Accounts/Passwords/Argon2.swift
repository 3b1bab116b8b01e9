import CSodium

/// How much work a hash of a password is, for us and for whoever tries passwords against a stolen store.
package struct PasswordWork: Equatable, Sendable {
  /// Passes over the memory.
  package var passes: Int
  /// Memory, in bytes.
  package var memoryBytes: Int

  /// Creates an amount of work.
  package init(passes: Int, memoryBytes: Int) {
    self.passes = passes
    self.memoryBytes = memoryBytes
  }

  /// What OWASP recommends at least: two passes over 19 MiB, some 30 ms.
  package static let standard = PasswordWork(passes: 2, memoryBytes: 19 << 20)
  /// For servers that protect nobody, such as emulators: microseconds.
  package static let least = PasswordWork(passes: 1, memoryBytes: 8 << 10)
}

/// Argon2id, from libsodium.
enum Argon2 {
  /// The longest text, its end included.
  static let textBytesMax = Int(crypto_pwhash_STRBYTES)
  /// The most memory that an imported hash may ask for, in KiB.
  static let memoryKibibytesMax = 256 << 10
  /// The most passes that an imported hash may ask for.
  static let passesMax = 16

  /// The hash of a password, with a salt of its own.
  /// - Throws: ``AccountError`` where there is not enough memory.
  static func hash(_ password: String, _ work: PasswordWork) throws(AccountError) -> PasswordHash {
    var out = [CChar](repeating: 0, count: textBytesMax)
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    let status = crypto_pwhash_str_alg(
      &out, bytes, UInt64(bytes.count), UInt64(work.passes), work.memoryBytes, crypto_pwhash_ALG_ARGON2ID13)
    guard status == 0 else { throw AccountError(.internalError, "There is not enough memory to hash a password.") }
    return PasswordHash(unchecked: String(decoding: out.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }

  static func accepts(_ password: String, _ text: String) -> Bool {
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    return crypto_pwhash_str_verify(padded(text), bytes, UInt64(bytes.count)) == 0
  }

  static func isOutdated(_ text: String, _ work: PasswordWork) -> Bool {
    crypto_pwhash_str_needs_rehash(padded(text), UInt64(work.passes), work.memoryBytes) != 0
  }

  /// The text in as many bytes as libsodium reads.
  private static func padded(_ text: String) -> [CChar] {
    var bytes = [CChar](repeating: 0, count: textBytesMax)
    for (index, byte) in text.utf8.prefix(textBytesMax - 1).enumerated() { bytes[index] = CChar(bitPattern: byte) }
    return bytes
  }
}
