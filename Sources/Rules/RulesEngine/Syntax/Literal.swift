import Basics

/// Decodes the literals of a ruleset.
enum Literal {
  /// Returns the length of the escape sequence at a backslash, or `nil` if the language does not have it.
  static func escapeLength(_ bytes: [UInt8], at index: Int) -> Int? {
    func hex(_ count: Int) -> Bool {
      index + 2 + count <= bytes.count
        && bytes[(index + 2)..<(index + 2 + count)].allSatisfy { Hexadecimal.digit($0) != nil }
    }
    guard index + 1 < bytes.count else { return nil }
    switch bytes[index + 1] {
    case UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "n"), UInt8(ascii: "r"),
      UInt8(ascii: "t"), UInt8(ascii: "b"), UInt8(ascii: "f"):
      return 2
    case UInt8(ascii: "x"): return hex(2) ? 4 : nil
    case UInt8(ascii: "u"): return hex(4) ? 6 : nil
    case UInt8(ascii: "0")...UInt8(ascii: "3"):
      let digits = bytes[min(index + 2, bytes.count)..<min(index + 4, bytes.count)]
      return digits.count == 2 && digits.allSatisfy { (0x30...0x37).contains($0) } ? 4 : nil
    default: return nil
    }
  }

  /// Returns the characters of a string literal in UTF-8. `literal` includes the quotes. Lone halves of surrogate
  /// pairs are encoded separately, as ``UTF16Text`` reads them.
  static func text(_ literal: ArraySlice<UInt8>) -> [UInt8] {
    var out: [UInt8] = []
    unescape(literal) { value, isRaw in
      if isRaw { out.append(UInt8(truncatingIfNeeded: value)) } else { UTF16Text.append(unit: value, to: &out) }
    }
    return out
  }

  /// Returns the bytes of a bytes literal, or `nil` if it contains a `\u` escape. `literal` includes the prefix and
  /// the quotes.
  static func bytes(_ literal: ArraySlice<UInt8>) -> [UInt8]? {
    var out: [UInt8] = []
    var index = literal.startIndex
    while index < literal.endIndex {
      if literal[index] == UInt8(ascii: "\\"), index + 1 < literal.endIndex {
        if literal[index + 1] == UInt8(ascii: "u") { return nil }
        index += 1
      }
      index += 1
    }
    unescape(literal.dropFirst()) { value, _ in out.append(UInt8(truncatingIfNeeded: value)) }
    return out
  }

  /// Calls `emit` for each unescaped byte (`isRaw`) and each value of an escape sequence between the quotes.
  private static func unescape(_ literal: ArraySlice<UInt8>, _ emit: (_ value: UInt32, _ isRaw: Bool) -> Void) {
    var index = literal.startIndex + 1
    let end = literal.endIndex - 1
    while index < end {
      guard literal[index] == UInt8(ascii: "\\"), index + 1 < end else {
        emit(UInt32(literal[index]), true)
        index += 1
        continue
      }
      func digits(_ from: Int, _ count: Int, radix: UInt32) -> UInt32 {
        literal[min(from, end)..<min(from + count, end)].reduce(0) { $0 * radix + UInt32(Hexadecimal.digit($1) ?? 0) }
      }
      switch literal[index + 1] {
      case UInt8(ascii: "n"): emit(10, false)
      case UInt8(ascii: "r"): emit(13, false)
      case UInt8(ascii: "t"): emit(9, false)
      case UInt8(ascii: "b"): emit(8, false)
      case UInt8(ascii: "f"): emit(12, false)
      case UInt8(ascii: "x"):
        emit(digits(index + 2, 2, radix: 16), false)
        index += 2
      case UInt8(ascii: "u"):
        emit(digits(index + 2, 4, radix: 16), false)
        index += 4
      case UInt8(ascii: "0")...UInt8(ascii: "3"):
        emit(digits(index + 1, 3, radix: 8), false)
        index += 2
      default: emit(UInt32(literal[index + 1]), false)
      }
      index += 2
    }
  }

  /// Returns the text of a path segment: percent and plus signs are decoded as in form data, and ill-formed UTF-8
  /// is repaired.
  static func decodedSegment(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var out: [UInt8] = []
    var index = bytes.startIndex
    while index != bytes.endIndex {
      let byte = bytes[index]
      let next = bytes.index(after: index)
      index = next
      if byte == UInt8(ascii: "+") {
        out.append(UInt8(ascii: " "))
      } else if byte == UInt8(ascii: "%"), next != bytes.endIndex, let high = Hexadecimal.digit(bytes[next]),
        case let second = bytes.index(after: next), second != bytes.endIndex, let low = Hexadecimal.digit(bytes[second])
      {
        out.append(high << 4 | low)
        index = bytes.index(after: second)
      } else {
        out.append(byte)
      }
    }
    return Array(String(decoding: out, as: UTF8.self).utf8)
  }
}
