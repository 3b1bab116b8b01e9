/// The base-32 notation of numbers in entity tags.
package enum Base32 {
  /// The maximum number of digits.
  package static let digitsMax = 13

  /// Writes a number with five bits per digit and no leading zeros, and returns the number of digits. There must be
  /// space for ``digitsMax``.
  package static func write(_ number: UInt64, to bytes: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int {
    let digits: StaticString = "0123456789abcdefghijklmnopqrstuv"
    let bytes = UnsafeMutableBufferPointer(rebasing: bytes)
    let count = max(0, 63 - number.leadingZeroBitCount) / 5 + 1
    var rest = number
    for index in stride(from: count - 1, through: 0, by: -1) {
      bytes[index] = digits.utf8Start[Int(rest & 31)]
      rest >>= 5
    }
    return count
  }

  /// Appends a number with five bits per digit and no leading zeros.
  package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: digitsMax) { digits in
      let count = write(number, to: digits[...])
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[..<count]))
    }
  }
}
