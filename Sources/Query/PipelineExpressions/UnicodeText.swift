/// Functions for UTF-8 text that count code points.
enum UnicodeText {
  /// The number of code points. Cost: one pass.
  static func count(_ text: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in text where byte & 0xC0 != 0x80 { count += 1 }
    return count
  }

  /// The offset of the code point that follows the one at `offset`.
  @inline(__always)
  static func next(_ text: UnsafeRawBufferPointer, after offset: Int) -> Int {
    var end = offset + 1
    while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
    return end
  }

  /// The offset of the code point that precedes `offset`, which must be positive.
  @inline(__always)
  static func previous(_ text: UnsafeRawBufferPointer, before offset: Int) -> Int {
    var start = offset - 1
    while start > 0, text[start] & 0xC0 == 0x80 { start -= 1 }
    return start
  }

  /// The offset that follows `count` code points from `offset`, or the end of the text.
  static func advance(_ text: UnsafeRawBufferPointer, from offset: Int, by count: Int) -> Int {
    var place = offset
    var rest = count
    while rest > 0, place < text.count {
      place = next(text, after: place)
      rest -= 1
    }
    return place
  }

  /// The code point in `start..<end`. Ill-formed bytes give U+FFFD.
  static func scalar(_ text: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Unicode.Scalar {
    var value = UInt32(text[start])
    switch end - start {
    case 1: break
    case 2: value = value & 0x1F
    case 3: value = value & 0x0F
    default: value = value & 0x07
    }
    for index in start + 1..<max(end, start + 1) { value = value << 6 | UInt32(text[index] & 0x3F) }
    return Unicode.Scalar(value) ?? "\u{FFFD}"
  }

  /// Whether a code point is white space by default.
  static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
    scalar.isASCII ? isSpace(UInt8(scalar.value)) : scalar.properties.isWhitespace
  }

  /// Whether a byte is ASCII white space: space, tab, LF, VT, FF or CR.
  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  /// Appends the text in the other case, by the full mapping of Unicode, without the rules of any language.
  static func append(_ text: UnsafeRawBufferPointer, isUpper: Bool, to out: inout [UInt8]) {
    let scalars = Array(String(decoding: text, as: UTF8.self).unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      if scalar.isASCII {
        out.append(changed(UInt8(scalar.value), isUpper: isUpper))
      } else if isUpper {
        out.append(contentsOf: scalar.properties.uppercaseMapping.utf8)
      } else if scalar == "\u{3A3}", isFinalSigma(scalars, index) {
        out.append(contentsOf: "\u{3C2}".utf8)
      } else {
        out.append(contentsOf: scalar.properties.lowercaseMapping.utf8)
      }
    }
  }

  /// Changes the case of an ASCII letter.
  @inline(__always)
  static func changed(_ byte: UInt8, isUpper: Bool) -> UInt8 {
    if isUpper { return (0x61...0x7A).contains(byte) ? byte - 0x20 : byte }
    return (0x41...0x5A).contains(byte) ? byte + 0x20 : byte
  }

  /// Whether a sigma ends a word: a cased letter precedes it and none follows it, not counting letters that case
  /// ignores (Unicode, section 3.13, "Final_Sigma").
  private static func isFinalSigma(_ scalars: [Unicode.Scalar], _ index: Int) -> Bool {
    func isCased(_ order: some Sequence<Unicode.Scalar>) -> Bool {
      for scalar in order where !scalar.properties.isCaseIgnorable { return scalar.properties.isCased }
      return false
    }
    return isCased(scalars[..<index].reversed()) && !isCased(scalars[(index + 1)...])
  }
}
