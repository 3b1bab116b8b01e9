import Basics
import Glibc

/// Reads and writes floats in Java's format.
enum FloatText {
  /// Parses a decimal or hexadecimal float, `NaN` or `Infinity`, with an optional sign and suffix. Surrounding
  /// whitespace is ignored. Returns `nil` for anything else.
  static func parse(_ text: [UInt8]) -> Double? {
    var bytes = text[...]
    while let first = bytes.first, first <= 0x20 { bytes.removeFirst() }
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    let whole = bytes
    var isNegative = false
    if let sign = bytes.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      isNegative = sign == UInt8(ascii: "-")
      bytes.removeFirst()
    }
    if bytes.elementsEqual("NaN".utf8) { return .nan }
    if bytes.elementsEqual("Infinity".utf8) { return isNegative ? -.infinity : .infinity }
    guard let length = length(bytes) else { return nil }
    var literal = Array(whole.prefix(whole.count - bytes.count + length))
    guard literal.count < textBytesMax else { return nil }
    literal.append(0)
    return literal.withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { strtod($0, nil) } }
    }
  }

  /// The maximum length of a number, in bytes. Longer texts are rejected.
  private static let textBytesMax = 4096

  /// Returns the length of the number at the start of an unsigned text, or `nil` if more than a suffix follows it.
  private static func length(_ bytes: ArraySlice<UInt8>) -> Int? {
    let text = Array(bytes)
    var index = 0
    func digits(_ isDigit: (UInt8) -> Bool) -> Int {
      let start = index
      while index < text.count, isDigit(text[index]) { index += 1 }
      return index - start
    }
    func at(_ letter: Unicode.Scalar) -> Bool { index < text.count && text[index] | 0x20 == UInt8(ascii: letter) }
    func exponent() -> Bool {
      index += 1
      if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") { index += 1 }
      return digits(Lexer.isDigit) > 0
    }
    func dot() -> Bool {
      guard index < text.count, text[index] == UInt8(ascii: ".") else { return false }
      index += 1
      return true
    }
    if text.count > 1, text[0] == UInt8(ascii: "0"), text[1] | 0x20 == UInt8(ascii: "x") {
      index = 2
      let isHex = { (byte: UInt8) in Hexadecimal.digit(byte) != nil }
      var count = digits(isHex)
      if dot() { count += digits(isHex) }
      guard count > 0, at("p"), exponent() else { return nil }
    } else {
      var count = digits(Lexer.isDigit)
      if dot() { count += digits(Lexer.isDigit) }
      guard count > 0 else { return nil }
      if at("e"), !exponent() { return nil }
    }
    let length = index
    if at("f") || at("d") { index += 1 }
    return index == text.count ? length : nil
  }

  /// Appends a float in Java's format: `1.0`, `0.001`, `1.0E7`, `1.0E-5`, `Infinity`.
  static func append(_ value: Double, to out: inout [UInt8]) {
    if value.isNaN { return out.append(contentsOf: "NaN".utf8) }
    if value.sign == .minus { out.append(UInt8(ascii: "-")) }
    if value.isInfinite { return out.append(contentsOf: "Infinity".utf8) }
    if value == 0 { return out.append(contentsOf: "0.0".utf8) }
    // The shortest digits that parse to the same number, without point and exponent.
    var digits: [UInt8] = []
    var point = 0
    var exponent = 0
    var isAfterPoint = false
    let description = Array(value.magnitude.description.utf8)
    for (index, byte) in description.enumerated() {
      if byte == UInt8(ascii: ".") {
        isAfterPoint = true
      } else if byte == UInt8(ascii: "e") {
        exponent = Int(String(decoding: description[(index + 1)...], as: UTF8.self)) ?? 0
        break
      } else {
        digits.append(byte)
        if !isAfterPoint { point += 1 }
      }
    }
    let leading = digits.prefix { $0 == UInt8(ascii: "0") }.count
    digits.removeFirst(leading)
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    // The value is 0.DIGITS × 10^scale.
    let scale = point - leading + exponent
    switch scale {
    case -2...0:
      out.append(contentsOf: "0.".utf8)
      out.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: -scale))
      out.append(contentsOf: digits)
    case 1...7:
      for index in 0..<max(scale, digits.count) {
        if index == scale { out.append(UInt8(ascii: ".")) }
        out.append(index < digits.count ? digits[index] : UInt8(ascii: "0"))
      }
      if digits.count <= scale { out.append(contentsOf: ".0".utf8) }
    default:
      out.append(digits[0])
      out.append(UInt8(ascii: "."))
      if digits.count == 1 { out.append(UInt8(ascii: "0")) } else { out.append(contentsOf: digits[1...]) }
      out.append(contentsOf: "E\(scale - 1)".utf8)
    }
  }
}
