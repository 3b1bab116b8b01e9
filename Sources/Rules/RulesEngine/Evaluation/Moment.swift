import Basics

/// A time or a duration in seconds and nanoseconds. A timestamp counts from 1970. In a duration both have the same
/// sign.
struct Moment: Equatable {
  let seconds: Int64
  let nanos: Int32

  /// The range of timestamps, in seconds since 1970: the years 1 to 9999.
  static let timestampSeconds: ClosedRange<Int64> = -62_135_596_800...253_402_300_799
  /// The range of durations, in seconds.
  static let durationSeconds: ClosedRange<Int64> = -315_576_000_000...315_576_000_000

  init(seconds: Int64, nanos: Int32) {
    self.seconds = seconds
    self.nanos = nanos
  }

  /// Creates the start of a day.
  init(day: Int) { self.init(seconds: Int64(day * CivilDate.secondsPerDay), nanos: 0) }

  /// Returns the sum, or the difference if `negated`, or `nil` on overflow. In a duration, seconds and nanoseconds
  /// have the same sign; in a timestamp, the nanoseconds are not negative.
  static func sum(_ a: Moment, _ b: Moment, negated: Bool = false, isDuration: Bool) -> Moment? {
    let (seconds, overflow) =
      negated ? a.seconds.subtractingReportingOverflow(b.seconds) : a.seconds.addingReportingOverflow(b.seconds)
    guard !overflow else { return nil }
    return normalized(
      seconds: seconds, nanos: Int64(a.nanos) + (negated ? -1 : 1) * Int64(b.nanos), isDuration: isDuration)
  }

  /// Carries nanoseconds over into seconds. Returns `nil` on overflow.
  static func normalized(seconds: Int64, nanos: Int64, isDuration: Bool) -> Moment? {
    var (carry, rest) = nanos.quotientAndRemainder(dividingBy: 1_000_000_000)
    var (total, overflow) = seconds.addingReportingOverflow(carry)
    guard !overflow else { return nil }
    if rest < 0, !isDuration || total > 0 {
      rest += 1_000_000_000
      carry = -1
    } else if rest > 0, isDuration, total < 0 {
      rest -= 1_000_000_000
      carry = 1
    } else {
      carry = 0
    }
    (total, overflow) = total.addingReportingOverflow(carry)
    return overflow ? nil : Moment(seconds: total, nanos: Int32(rest))
  }

  /// Parses RFC 3339, as leniently as the engine: parts out of range carry over (`2020-13-01` is January 2021), and
  /// fraction digits after the ninth are dropped. Returns `nil` for anything else, and outside the years 1 to 9999.
  static func parse(_ text: UnsafeRawBufferPointer) -> Moment? {
    var index = 0
    func number(_ mark: UInt8?) -> Int64? {
      let start = index
      var value: Int64 = 0
      while index < text.count, Lexer.isDigit(text[index]) {
        guard index - start < 9 else { return nil }
        value = value * 10 + Int64(text[index] - 0x30)
        index += 1
      }
      guard index > start else { return nil }
      guard let mark else { return value }
      guard index < text.count, text[index] == mark else { return nil }
      index += 1
      return value
    }
    guard let year = number(UInt8(ascii: "-")), let month = number(UInt8(ascii: "-")),
      let day = number(UInt8(ascii: "T")), let hour = number(UInt8(ascii: ":")),
      let minute = number(UInt8(ascii: ":")), let second = number(nil), index < text.count
    else { return nil }
    var nanos: Int64 = 0
    if text[index] == UInt8(ascii: ".") {
      index += 1
      var scale: Int64 = 100_000_000
      while index < text.count, Lexer.isDigit(text[index]) {
        nanos += Int64(text[index] - 0x30) * scale
        scale /= 10
        index += 1
      }
      guard index < text.count else { return nil }
    }
    var offset: Int64 = 0
    let zone = text[index]
    index += 1
    switch zone {
    case UInt8(ascii: "Z"): break
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      guard let hours = number(UInt8(ascii: ":")), let minutes = number(nil) else { return nil }
      offset = (hours * 60 + minutes) * (zone == UInt8(ascii: "-") ? -60 : 60)
    default: return nil
    }
    guard index == text.count else { return nil }
    let months = Int(year * 12 + month - 1)
    let date = CivilDate(year: months / 12, month: months % 12 + 1, day: Int(day))
    let days = Int64(date.daysSince1970)
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
    guard timestampSeconds.contains(seconds) else { return nil }
    return Moment(seconds: seconds, nanos: Int32(nanos))
  }
}
