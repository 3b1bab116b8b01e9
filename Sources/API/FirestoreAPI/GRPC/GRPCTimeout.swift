/// The format of `grpc-timeout`: at most eight digits and a unit.
enum GRPCTimeout {
  /// Returns the time in milliseconds, rounded up, or `nil` if the value is malformed.
  static func milliseconds(_ value: UnsafeRawBufferPointer) -> Int? {
    guard (2...9).contains(value.count), let unit = value.last else { return nil }
    var number = 0
    for byte in value.dropLast() {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      number = number * 10 + Int(byte - UInt8(ascii: "0"))
    }
    switch unit {
    case UInt8(ascii: "H"): return number * 3_600_000
    case UInt8(ascii: "M"): return number * 60_000
    case UInt8(ascii: "S"): return number * 1000
    case UInt8(ascii: "m"): return number
    case UInt8(ascii: "u"): return (number + 999) / 1000
    case UInt8(ascii: "n"): return (number + 999_999) / 1_000_000
    default: return nil
    }
  }
}
