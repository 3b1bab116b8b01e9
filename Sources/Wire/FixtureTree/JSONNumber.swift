/// The grammar and the values of JSON numbers.
enum JSONNumber {
  /// Returns whether a number has neither fraction nor exponent, or `nil` if it is malformed.
  static func check(_ text: UnsafeRawBufferPointer) -> Bool? {
    var offset = 0
    func digits() -> Int {
      let start = offset
      while offset < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[offset]) { offset += 1 }
      return offset - start
    }
    if offset < text.count, text[offset] == UInt8(ascii: "-") { offset += 1 }
    let first = offset
    let whole = digits()
    guard whole == 1 || (whole > 1 && text[first] != UInt8(ascii: "0")) else { return nil }
    if offset == text.count { return true }
    if text[offset] == UInt8(ascii: ".") {
      offset += 1
      guard digits() > 0 else { return nil }
    }
    if offset < text.count, text[offset] | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if offset < text.count, text[offset] == UInt8(ascii: "+") || text[offset] == UInt8(ascii: "-") { offset += 1 }
      guard digits() > 0 else { return nil }
    }
    return offset == text.count ? false : nil
  }

  /// Returns the value of a number that ``check(_:)`` found to be an integer, or `nil` if it does not fit 64 bits.
  static func integer(_ text: UnsafeRawBufferPointer) -> Int64? {
    let negative = text.first == UInt8(ascii: "-")
    var value: Int64 = 0
    for byte in text[(negative ? 1 : 0)...] {
      let digit = Int64(byte & 0x0F)
      let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
      let (sum, carried) =
        negative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      if overflowed || carried { return nil }
      value = sum
    }
    return value
  }

  /// Returns the double nearest to a number that ``check(_:)`` accepted, or `nil` if it exceeds all finite doubles.
  static func double(_ text: UnsafeRawBufferPointer) -> Double? {
    if let value = exactly(text) { return value }
    guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else { return nil }
    return value
  }

  /// Returns the value of a number of at most 15 digits times at most 10^±22, or `nil` for other numbers. Both
  /// factors are exact doubles, so the single rounding gives the nearest double.
  private static func exactly(_ text: UnsafeRawBufferPointer) -> Double? {
    var mantissa: UInt64 = 0
    var digitCount = 0
    var exponent = 0
    var offset = text.first == UInt8(ascii: "-") ? 1 : 0
    let negative = offset == 1
    var isFraction = false
    while offset < text.count, text[offset] | 0x20 != UInt8(ascii: "e") {
      if text[offset] == UInt8(ascii: ".") {
        isFraction = true
      } else {
        mantissa = mantissa * 10 + UInt64(text[offset] & 0x0F)
        if mantissa > 0 { digitCount += 1 }
        if digitCount > 15 { return nil }
        if isFraction { exponent -= 1 }
      }
      offset += 1
    }
    if offset < text.count {
      offset += 1
      let sign = text[offset] == UInt8(ascii: "-") ? -1 : 1
      if text[offset] == UInt8(ascii: "-") || text[offset] == UInt8(ascii: "+") { offset += 1 }
      guard text.count - offset <= 4 else { return nil }
      var written = 0
      while offset < text.count {
        written = written * 10 + Int(text[offset] & 0x0F)
        offset += 1
      }
      exponent += sign * written
    }
    guard abs(exponent) <= 22 else { return nil }
    var power = 1.0
    for _ in 0..<abs(exponent) { power *= 10 }
    let magnitude = exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
    return negative ? -magnitude : magnitude
  }
}
