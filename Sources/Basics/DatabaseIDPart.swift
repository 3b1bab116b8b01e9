/// The rule for IDs of projects and databases. They become parts of resource names and of paths.
package enum DatabaseIDPart {
  /// The longest ID, in bytes.
  package static let bytesMax = 100

  /// Whether a text can be an ID: 1 to ``bytesMax`` ASCII letters, digits and characters of `_-.():~`, but not `.` or `..`.
  package static func isValid(_ text: String) -> Bool {
    guard (1...bytesMax).contains(text.utf8.count), text != ".", text != ".." else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "("), UInt8(ascii: ")"),
        UInt8(ascii: ":"), UInt8(ascii: "~"):
        true
      default: false
      }
    }
  }
}
