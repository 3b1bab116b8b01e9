/// The base-32 notation of numbers in entity tags.
package enum Base32 {
  /// Appends a number with five bits per digit and no leading zeros.
  package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    let digits: StaticString = "0123456789abcdefghijklmnopqrstuv"
    var shift = max(0, 63 - number.leadingZeroBitCount) / 5 * 5
    while shift >= 0 {
      bytes.append(digits.utf8Start[Int(number >> UInt64(shift) & 31)])
      shift -= 5
    }
  }
}
