/// Dates of the proleptic Gregorian calendar, in UTC.
enum Calendar {
  static let secondsPerDay: Int64 = 86_400
  /// The range of timestamps, in seconds since 1970: the years 1 to 9999.
  static let timestampSeconds: ClosedRange<Int64> = -62_135_596_800...253_402_300_799
  /// The range of durations, in seconds.
  static let durationSeconds: ClosedRange<Int64> = -315_576_000_000...315_576_000_000

  /// Returns the number of days from 1970-01-01 to a date.
  static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// Returns the date `days` after 1970-01-01.
  static func date(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthIndex = (5 * dayOfYear + 2) / 153
    let month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthIndex + 2) / 5 + 1)
  }

  static func daysInMonth(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Returns the day of a moment, in days since 1970-01-01.
  static func day(of moment: Moment) -> Int64 {
    let (quotient, remainder) = moment.seconds.quotientAndRemainder(dividingBy: secondsPerDay)
    return remainder < 0 ? quotient - 1 : quotient
  }

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
  static func moment(_ text: UnsafeRawBufferPointer) -> Moment? {
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
    let months = year * 12 + month - 1
    let days = Self.days(year: months / 12, month: months % 12 + 1, day: 1) + day - 1
    let seconds = days * secondsPerDay + hour * 3600 + minute * 60 + second - offset
    guard timestampSeconds.contains(seconds) else { return nil }
    return Moment(seconds: seconds, nanos: Int32(nanos))
  }
}
