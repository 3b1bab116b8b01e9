import CSodium

/// The cost of one password hash, for this server and for an attacker who tries passwords against a stolen store.
package struct PasswordWork: Equatable, Sendable {
  /// The passes over the memory.
  package var passes: Int
  package var memoryBytes: Int

  package init(passes: Int, memoryBytes: Int) {
    self.passes = passes
    self.memoryBytes = memoryBytes
  }

  /// The minimum that OWASP recommends: two passes over 19 MiB, about 30 ms.
  package static let standard = PasswordWork(passes: 2, memoryBytes: 19 << 20)
  /// The least possible cost, microseconds. For servers without real accounts, such as emulators.
  package static let least = PasswordWork(passes: 1, memoryBytes: 8 << 10)
}

/// Argon2id, implemented by libsodium.
enum Argon2 {
  /// The length of the longest hash text, in bytes, including its terminating zero.
  static let textBytesMax = Int(crypto_pwhash_STRBYTES)
  /// The most memory that an imported hash may require, in KiB.
  static let memoryKibibytesMax = 256 << 10
  /// The most passes that an imported hash may require.
  static let passesMax = 16
  /// The largest product of memory in KiB and passes that an imported hash may require: about a second of work.
  static let workKibibytesMax = 1 << 20

  /// Returns whether an imported hash may have this cost.
  static func allows(passes: Int, memoryKibibytes: Int) -> Bool {
    (1...passesMax).contains(passes) && (8...memoryKibibytesMax).contains(memoryKibibytes)
      && passes * memoryKibibytes <= workKibibytesMax
  }

  /// Returns whether `text` is a hash of acceptable cost: `$argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH`.
  static func isHash(_ text: String) -> Bool {
    let parts = text.split(separator: "$", omittingEmptySubsequences: false)
    guard text.utf8.count < textBytesMax, parts.count == 6, parts[0].isEmpty,
      parts[1] == "argon2id" || parts[1] == "argon2i", parts[2] == "v=19"
    else { return false }
    let values = parts[3].split(separator: ",", omittingEmptySubsequences: false)
    guard values.count == 3, let memory = number(values[0], "m="), let passes = number(values[1], "t="),
      let lanes = number(values[2], "p="), (1...64).contains(lanes)
    else { return false }
    return allows(passes: passes, memoryKibibytes: memory)
  }

  private static func number(_ text: Substring, _ name: String) -> Int? {
    text.hasPrefix(name) ? Int(text.dropFirst(name.count)) : nil
  }

  /// Returns the hash of a password with a new random salt.
  /// - Throws: ``AccountError`` `INTERNAL_ERROR` if there is not enough memory.
  static func hash(_ password: String, _ work: PasswordWork) throws(AccountError) -> PasswordHash {
    var out = [CChar](repeating: 0, count: textBytesMax)
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    let status = crypto_pwhash_str_alg(
      &out, bytes, UInt64(bytes.count), UInt64(work.passes), work.memoryBytes, crypto_pwhash_ALG_ARGON2ID13)
    guard status == 0 else { throw AccountError(.internalError, "There is not enough memory to hash a password.") }
    return PasswordHash(
      unchecked: String(decoding: out.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }

  static func accepts(_ password: String, _ text: String) -> Bool {
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    return crypto_pwhash_str_verify(padded(text), bytes, UInt64(bytes.count)) == 0
  }

  static func isOutdated(_ text: String, _ work: PasswordWork) -> Bool {
    crypto_pwhash_str_needs_rehash(padded(text), UInt64(work.passes), work.memoryBytes) != 0
  }

  /// The text, padded with zeros to the length that libsodium reads.
  private static func padded(_ text: String) -> [CChar] {
    var bytes = [CChar](repeating: 0, count: textBytesMax)
    for (index, byte) in text.utf8.prefix(textBytesMax - 1).enumerated() { bytes[index] = CChar(bitPattern: byte) }
    return bytes
  }
}
