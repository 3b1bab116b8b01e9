/// Numbers in base 32, as entity tags hold them.
package enum Base32 {
  /// Appends a number, five bits a digit, without leading zeros.
  package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    let digits: StaticString = "0123456789abcdefghijklmnopqrstuv"
    var shift = max(0, 63 - number.leadingZeroBitCount) / 5 * 5
    while shift >= 0 {
      bytes.append(digits.utf8Start[Int(number >> UInt64(shift) & 31)])
      shift -= 5
    }
  }
}
