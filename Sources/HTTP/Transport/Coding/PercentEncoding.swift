import Basics

/// Percent-encoding of URLs (RFC 3986).
package enum PercentEncoding {
  /// Appends the decoded bytes. Returns `false` if a `%` is not followed by two hexadecimal digits.
  package static func decode(
    _ text: UnsafeRawBufferPointer, plusIsSpace: Bool = false, into out: inout [UInt8]
  ) -> Bool {
    // Most texts contain nothing to decode.
    guard text.contains(where: { $0 == UInt8(ascii: "%") || (plusIsSpace && $0 == UInt8(ascii: "+")) }) else {
      out.append(raw: text)
      return true
    }
    var index = 0
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "%") {
        guard index + 2 < text.count, let high = Hexadecimal.digit(text[index + 1]),
          let low = Hexadecimal.digit(text[index + 2])
        else {
          return false
        }
        out.append(high << 4 | low)
        index += 3
      } else {
        out.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
        index += 1
      }
    }
    return true
  }

  /// Returns the bytes encoded as one path segment or query value: all but RFC 3986's unreserved characters are
  /// escaped.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    encode(bytes) { isAlphanumeric($0) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F || $0 == 0x7E }
  }

  /// Returns the bytes with all but the plain ones escaped. `isPlain` must return `false` for `%`.
  package static func encode(_ bytes: some Sequence<UInt8>, keeping isPlain: (UInt8) -> Bool) -> String {
    var out: [UInt8] = []
    for byte in bytes {
      if isPlain(byte) { out.append(byte) } else { append(byte, to: &out) }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Appends a byte as `%` and two hexadecimal digits.
  package static func append(_ byte: UInt8, to out: inout [UInt8]) {
    let digits: StaticString = "0123456789ABCDEF"
    out += [UInt8(ascii: "%"), digits.utf8Start[Int(byte >> 4)], digits.utf8Start[Int(byte & 15)]]
  }

  /// Whether a byte is an ASCII letter or digit.
  package static func isAlphanumeric(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 }

  /// Whether the bytes are valid UTF-8. Bytes below 0x80 are, and cost one comparison each.
  package static func isUTF8(_ bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
  }
}
