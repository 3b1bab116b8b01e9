import Basics
import DocumentModel

/// Timestamps (pipelines.md, section 4.6).
extension ExpressionEvaluator {
  func timestamp(_ node: ExpressionProgram.Node, _ arguments: Arguments) -> ExpressionValue {
    let function = node.function
    switch function {
    case .unixMicrosToTimestamp: return fromUnix(function, arguments[0], 1)
    case .unixMillisToTimestamp: return fromUnix(function, arguments[0], 1000)
    case .unixSecondsToTimestamp: return fromUnix(function, arguments[0], 1_000_000)
    case .timestampToUnixMicros: return toUnix(arguments[0], 1)
    case .timestampToUnixMillis: return toUnix(arguments[0], 1000)
    case .timestampToUnixSeconds: return toUnix(arguments[0], 1_000_000)
    case .timestampAdd, .timestampSubtract: return shifted(function, arguments)
    case .timestampDiff: return difference(arguments)
    default: return inZone(node, arguments)
    }
  }

  private func newTimestamp(_ function: ExpressionFunction, _ microseconds: Int64) -> ExpressionValue {
    guard microseconds >= Timestamp.earliest.microseconds, microseconds <= Timestamp.latest.microseconds else {
      return fail(function, .overflow)
    }
    return .timestamp(Timestamp(uncheckedMicroseconds: microseconds))
  }

  private func fromUnix(_ function: ExpressionFunction, _ number: ExpressionValue, _ unit: Int64) -> ExpressionValue {
    guard case .integer(let number) = number else { return fail(function, .type, 1) }
    let (microseconds, overflow) = number.multipliedReportingOverflow(by: unit)
    return overflow ? fail(function, .overflow) : newTimestamp(function, microseconds)
  }

  private func toUnix(_ time: ExpressionValue, _ unit: Int64) -> ExpressionValue {
    guard case .timestamp(let time) = time else { return .null }
    return .integer(Self.floor(time.microseconds, unit))
  }

  /// The quotient, rounded down.
  static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
    let (quotient, rest) = number.quotientAndRemainder(dividingBy: divisor)
    return rest < 0 ? quotient - 1 : quotient
  }

  private func shifted(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    let amount = arguments[2].ordinary
    guard arguments[0].isNothing || arguments[0].types == .timestamp else { return fail(function, .type, 1) }
    guard case .string(let name) = arguments[1] else { return fail(function, .type, 2) }
    guard let unit = TimePart(name)?.microseconds else { return fail(function, .argument, 2) }
    guard amount.isNothing || amount.types == .integer else { return fail(function, .type, 3) }
    guard case .timestamp(let time) = arguments[0], case .integer(let count) = amount else { return .null }
    let (span, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow else { return fail(function, .overflow) }
    let moved =
      function == .timestampAdd
      ? time.microseconds.addingReportingOverflow(span) : time.microseconds.subtractingReportingOverflow(span)
    return moved.overflow ? fail(function, .overflow) : newTimestamp(function, moved.partialValue)
  }

  private func difference(_ arguments: Arguments) -> ExpressionValue {
    for index in 0..<2 where !arguments[index].isNothing && arguments[index].types != .timestamp {
      return fail(.timestampDiff, .type, index + 1)
    }
    guard case .string(let name) = arguments[2] else { return fail(.timestampDiff, .type, 3) }
    guard let unit = TimePart(name)?.microseconds else { return fail(.timestampDiff, .argument, 3) }
    guard case .timestamp(let end) = arguments[0], case .timestamp(let start) = arguments[1] else { return .null }
    return .integer((end.microseconds - start.microseconds) / unit)
  }

  // MARK: Calendar

  private func inZone(_ node: ExpressionProgram.Node, _ arguments: Arguments) -> ExpressionValue {
    let function = node.function
    guard arguments[0].isNothing || arguments[0].types == .timestamp else { return fail(function, .type, 1) }
    guard case .string(let name) = arguments[1] else { return fail(function, .type, 2) }
    guard let part = TimePart(name), part.isLegal(in: function) else { return fail(function, .argument, 2) }
    var zone = ZoneRules.utc
    if node.c >= 0 {
      zone = program.zones[Int(node.c)]
    } else if arguments.count == 3 {
      guard case .string(let name) = arguments[2] else { return fail(function, .type, 3) }
      guard charge(20_000), let rules = ZoneRules.named(String(decoding: name, as: UTF8.self)) else {
        return fail(function, .unknownZone, 3)
      }
      zone = rules
    }
    guard case .timestamp(let time) = arguments[0] else { return .null }
    if function == .timestampExtract { return .integer(Int64(LocalTime(time, zone).value(of: part))) }
    return newTimestamp(function, LocalTime.truncated(time, to: part, zone))
  }
}

/// A moment as the clocks and the calendar of a time zone show it.
struct LocalTime {
  /// The days since 1970-01-01.
  let days: Int
  let secondOfDay: Int
  /// 0 to 999,999.
  let microsecond: Int
  let date: CivilDate

  init(_ time: Timestamp, _ zone: ZoneRules) {
    let seconds = time.seconds
    let local = Int(seconds) + zone.offset(at: seconds)
    (days, secondOfDay) = CivilDate.split(local)
    microsecond = Int(time.microseconds - seconds * 1_000_000)
    date = CivilDate(daysSince1970: days)
  }

  /// The day of the week. Sunday is 0, and 1970-01-01 was a Thursday.
  static func weekday(_ days: Int) -> Int { ((days + 4) % 7 + 7) % 7 }

  private var dayOfYear: Int { days - CivilDate(year: date.year, month: 1, day: 1).daysSince1970 + 1 }

  /// The first day of the first week of a year by ISO 8601: the Monday of the week that contains January 4.
  private static func isoYearStart(_ year: Int) -> Int {
    let fourth = CivilDate(year: year, month: 1, day: 4).daysSince1970
    return fourth - (weekday(fourth) + 6) % 7
  }

  /// The year by ISO 8601, to which the week of the day belongs.
  private var isoYear: Int {
    let thursday = days - (Self.weekday(days) + 6) % 7 + 3
    return CivilDate(daysSince1970: thursday).year
  }

  /// The number of a part, as `timestamp_extract` returns it.
  func value(of part: TimePart) -> Int {
    switch part {
    case .microsecond: microsecond
    case .millisecond: microsecond / 1000
    case .second: secondOfDay % 60
    case .minute: secondOfDay / 60 % 60
    case .hour: secondOfDay / 3600
    case .day: date.day
    case .week(let start): (dayOfYear - 1 + 7 - (Self.weekday(days) - start + 7) % 7) / 7
    case .isoWeek: (days - Self.isoYearStart(isoYear)) / 7 + 1
    case .month: date.month
    case .quarter: (date.month - 1) / 3 + 1
    case .year: date.year
    case .isoYear: isoYear
    case .dayOfWeek: Self.weekday(days) + 1
    case .dayOfYear: dayOfYear
    }
  }

  /// The start of the unit that contains a time, in microseconds since 1970. It can precede the year 1.
  ///
  /// Units up to an hour keep the offset of the time itself. A longer unit begins when its first day begins in the
  /// zone: at the first midnight of that day if the clocks show it twice, or right after a gap that contains it.
  static func truncated(_ time: Timestamp, to part: TimePart, _ zone: ZoneRules) -> Int64 {
    switch part {
    case .microsecond: return time.microseconds
    case .millisecond: return ExpressionEvaluator.floor(time.microseconds, 1000) * 1000
    case .second: return time.seconds * 1_000_000
    case .minute, .hour:
      let offset = Int64(zone.offset(at: time.seconds))
      let unit: Int64 = part == .minute ? 60 : 3600
      return (ExpressionEvaluator.floor(time.seconds + offset, unit) * unit - offset) * 1_000_000
    default: break
    }
    let local = LocalTime(time, zone)
    var start = local.days
    switch part {
    case .week(let first): start -= (weekday(start) - first + 7) % 7
    case .isoWeek: start -= (weekday(start) + 6) % 7
    case .month: start = CivilDate(year: local.date.year, month: local.date.month, day: 1).daysSince1970
    case .quarter:
      start = CivilDate(year: local.date.year, month: (local.date.month - 1) / 3 * 3 + 1, day: 1).daysSince1970
    case .year: start = CivilDate(year: local.date.year, month: 1, day: 1).daysSince1970
    case .isoYear: start = isoYearStart(local.isoYear)
    default: break
    }
    return zone.time(ofLocal: Int64(start) * Int64(CivilDate.secondsPerDay)) * 1_000_000
  }
}
