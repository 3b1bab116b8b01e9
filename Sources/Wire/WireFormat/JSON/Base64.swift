/// Base64 as in the JSON form of protobuf messages.
package enum Base64 {
  /// Returns the maximum number of bytes that a text of `count` characters encodes.
  package static func decodedCountMax(_ count: Int) -> Int { (count + 3) / 4 * 3 }

  /// Decodes a text in the standard or the URL alphabet, padded or not, into `out`.
  ///
  /// `out` must have at least ``decodedCountMax(_:)`` bytes. Returns the number of bytes written, or `nil` if the
  /// text is not base64.
  package static func decode(_ text: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) -> Int? {
    var count = text.count
    if count > 0, text[count - 1] == UInt8(ascii: "=") {
      guard count.isMultiple(of: 4) else { return nil }
      count -= text[count - 2] == UInt8(ascii: "=") ? 2 : 1
    }
    guard count % 4 != 1 else { return nil }
    var bits: UInt32 = 0
    var written = 0
    for offset in 0..<count {
      let digit = Self.digits[Int(text[offset])]
      guard digit < 64 else { return nil }
      bits = bits << 6 | UInt32(digit)
      switch offset & 3 {
      case 0: break
      case 1: out[written] = UInt8(truncatingIfNeeded: bits >> 4)
      case 2: out[written] = UInt8(truncatingIfNeeded: bits >> 2)
      default: out[written] = UInt8(truncatingIfNeeded: bits)
      }
      if offset & 3 != 0 { written += 1 }
    }
    return written
  }

  /// The characters of a text.
  package enum Alphabet: Sendable {
    /// With `+` and `/` (RFC 4648, section 4).
    case standard
    /// With `-` and `_` (RFC 4648, section 5).
    case url
  }

  /// Appends bytes as padded text.
  package static func append(
    _ bytes: UnsafeRawBufferPointer, _ alphabet: Alphabet = .standard, to out: inout [UInt8]
  ) {
    let start = out.count
    let letters = alphabet == .standard ? standardLetters : urlLetters
    out.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (bytes.count + 2) / 3 * 4))
    out.withUnsafeMutableBytes { buffer in
      var at = start
      var offset = 0
      func put(_ bits: UInt32, digits: Int) {
        for digit in 0..<digits {
          buffer[at + digit] = letters.utf8Start[Int(bits >> (18 - 6 * UInt32(digit)) & 63)]
        }
      }
      while offset + 3 <= bytes.count {
        put(UInt32(bytes[offset]) << 16 | UInt32(bytes[offset + 1]) << 8 | UInt32(bytes[offset + 2]), digits: 4)
        offset += 3
        at += 4
      }
      switch bytes.count - offset {
      case 1: put(UInt32(bytes[offset]) << 16, digits: 2)
      case 2: put(UInt32(bytes[offset]) << 16 | UInt32(bytes[offset + 1]) << 8, digits: 3)
      default: break
      }
    }
  }

  private static let standardLetters: StaticString =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  private static let urlLetters: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

  /// The value of each character, or 255 for a character outside both alphabets.
  private static let digits: [UInt8] = {
    var table = [UInt8](repeating: 255, count: 256)
    for letters in [standardLetters, urlLetters] {
      for value in 0..<64 { table[Int(letters.utf8Start[value])] = UInt8(value) }
    }
    return table
  }()
}
