/// The hexadecimal notation of bytes.
package enum Hexadecimal {
  /// Returns two lowercase digits per byte.
  package static func text(_ bytes: some Collection<UInt8>) -> String {
    let digits: StaticString = "0123456789abcdef"
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digits.utf8Start[Int(byte >> 4)])
      text.append(digits.utf8Start[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of a text in lowercase hexadecimal, or `nil` if the text is anything else.
  package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for digit in text.utf8 {
      guard !(0x41...0x5A).contains(digit), let value = self.digit(digit) else { return nil }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return high == nil ? bytes : nil
  }

  /// Returns the value of a digit, in lowercase or uppercase, or `nil` for any other byte.
  package static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
