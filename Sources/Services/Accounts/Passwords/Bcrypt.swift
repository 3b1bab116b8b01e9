import CXCrypt

/// bcrypt, implemented by the system's libcrypt. For imported hashes only.
enum Bcrypt {
  /// The highest cost of an imported hash: 2^14 rounds take about a second.
  static let costMax = 14

  /// Returns whether `text` is a bcrypt hash of acceptable cost: `$2b$COST$` and 53 characters.
  static func isHash(_ text: String) -> Bool {
    let parts = text.split(separator: "$", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0].isEmpty, ["2a", "2b", "2y"].contains(parts[1]), parts[2].utf8.count == 2,
      let cost = Int(parts[2]), (4...costMax).contains(cost), parts[3].utf8.count == 53
    else { return false }
    return parts[3].utf8.allSatisfy { byte in
      byte == UInt8(ascii: ".") || byte == UInt8(ascii: "/") || (0x30...0x39).contains(byte)
        || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
  }

  static func accepts(_ password: String, _ text: String) -> Bool {
    // A zero byte would truncate the password.
    guard !password.utf8.contains(0) else { return false }
    return hearth_crypt_accepts(password, text) == 1
  }
}
