/// Base64, for bytes values: written in the standard alphabet with padding, read in that or the URL alphabet.
enum Base64 {
  /// Appends the bytes that a text stands for; returns `false` when it is no base64.
  static func decode(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) -> Bool {
    var count = text.count
    while count > 0, text.count - count < 2, text[count - 1] == UInt8(ascii: "=") { count -= 1 }
    guard count % 4 != 1, count == text.count || text.count.isMultiple(of: 4) else { return false }
    var bits: UInt32 = 0
    var bitCount = 0
    for index in 0..<count {
      guard let digit = value(of: text[index]) else { return false }
      bits = bits << 6 | digit
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    return true
  }

  /// Appends the text of some bytes.
  static func encode(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    var index = 0
    while index < bytes.count {
      let group = min(3, bytes.count - index)
      var bits = UInt32(bytes[index]) << 16
      if group > 1 { bits |= UInt32(bytes[index + 1]) << 8 }
      if group > 2 { bits |= UInt32(bytes[index + 2]) }
      for position in 0..<4 {
        out.append(position > group ? UInt8(ascii: "=") : digit(of: (bits >> UInt32(18 - 6 * position)) & 63))
      }
      index += 3
    }
  }

  private static func digit(of value: UInt32) -> UInt8 {
    switch UInt8(truncatingIfNeeded: value) {
    case let value where value < 26: UInt8(ascii: "A") + value
    case let value where value < 52: UInt8(ascii: "a") + value - 26
    case let value where value < 62: UInt8(ascii: "0") + value - 52
    case 62: UInt8(ascii: "+")
    default: UInt8(ascii: "/")
    }
  }

  private static func value(of digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
