import Basics

/// The rule of a time zone for the future: the text after the tables of a TZif file, in the format of the POSIX
/// variable `TZ`, such as `CET-1CEST,M3.5.0,M10.5.0/3`.
struct ZoneFooter: Sendable {
  /// A day of each year, and a time on it.
  private struct Change {
    enum Day {
      /// The week of the month, 5 being the last one, and the weekday. Sunday is 0.
      case weekday(month: Int, week: Int, day: Int)
      /// A day from 1 to 365. February 29 does not count.
      case ordinal(Int)
      /// A day from 0 to 365. February 29 counts.
      case zeroBased(Int)
    }
    let day: Day
    /// Seconds from midnight. Can be negative or beyond a day.
    let time: Int

    /// The local time of the change in a year, in seconds since 1970.
    func local(in year: Int) -> Int64 {
      let first = CivilDate(year: year, month: 1, day: 1).daysSince1970
      let days: Int
      switch day {
      case .weekday(let month, let week, let weekday):
        let start = CivilDate(year: year, month: month, day: 1).daysSince1970
        var number = 1 + (weekday - LocalTime.weekday(start) + 7) % 7 + 7 * (week - 1)
        while number > CivilDate.days(inMonth: month, of: year) { number -= 7 }
        days = start + number - 1
      case .ordinal(let number):
        let isLeap = CivilDate.days(inMonth: 2, of: year) == 29
        days = first + number - 1 + (isLeap && number >= 60 ? 1 : 0)
      case .zeroBased(let number): days = first + number
      }
      return Int64(days) * Int64(CivilDate.secondsPerDay) + Int64(time)
    }
  }

  /// The offsets in seconds east of UTC.
  private let standard: Int
  private let summer: Int
  private let start: Change?
  private let end: Change?

  /// Parses the text. Returns `nil` if it is empty or malformed.
  init?(_ text: ArraySlice<UInt8>) {
    var rest = text
    guard Self.skipName(&rest), let west = Self.takeTime(&rest) else { return nil }
    standard = -west
    if rest.isEmpty {
      summer = standard
      start = nil
      end = nil
      return
    }
    guard Self.skipName(&rest) else { return nil }
    if let first = rest.first, first != UInt8(ascii: ",") {
      guard let west = Self.takeTime(&rest) else { return nil }
      summer = -west
    } else {
      summer = standard + 3600
    }
    guard let from = Self.takeChange(&rest), let to = Self.takeChange(&rest), rest.isEmpty else { return nil }
    start = from
    end = to
  }

  /// The offset at a moment, in seconds.
  func offset(at seconds: Int64) -> Int {
    guard let start, let end else { return standard }
    let year = CivilDate(daysSince1970: CivilDate.split(Int(seconds) + standard).days).year
    let from = start.local(in: year) - Int64(standard)
    let to = end.local(in: year) - Int64(summer)
    let isSummer = from < to ? (from..<to).contains(seconds) : !(to..<from).contains(seconds)
    return isSummer ? summer : standard
  }

  // MARK: Parsing

  private static func skipName(_ rest: inout ArraySlice<UInt8>) -> Bool {
    if rest.first == UInt8(ascii: "<") {
      guard let close = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
      rest = rest[(close + 1)...]
      return true
    }
    let letters = rest.prefix { (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) }
    rest = rest.dropFirst(letters.count)
    return letters.count >= 3
  }

  private static func takeNumber(_ rest: inout ArraySlice<UInt8>) -> Int? {
    let digits = rest.prefix { (0x30...0x39).contains($0) }
    guard (1...3).contains(digits.count) else { return nil }
    rest = rest.dropFirst(digits.count)
    return Int(String(decoding: digits, as: UTF8.self))
  }

  /// Removes `[+-]hh[:mm[:ss]]` and returns it in seconds.
  private static func takeTime(_ rest: inout ArraySlice<UInt8>) -> Int? {
    var isNegative = false
    if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      isNegative = sign == UInt8(ascii: "-")
      rest.removeFirst()
    }
    guard let hours = takeNumber(&rest) else { return nil }
    var seconds = hours * 3600
    for unit in [60, 1] where rest.first == UInt8(ascii: ":") {
      rest.removeFirst()
      guard let part = takeNumber(&rest) else { return nil }
      seconds += part * unit
    }
    return isNegative ? -seconds : seconds
  }

  /// Removes `,Mm.w.d[/time]`, `,Jn[/time]` or `,n[/time]`.
  private static func takeChange(_ rest: inout ArraySlice<UInt8>) -> Change? {
    guard rest.popFirst() == UInt8(ascii: ",") else { return nil }
    let day: Change.Day
    switch rest.first {
    case UInt8(ascii: "M"):
      rest.removeFirst()
      guard let month = takeNumber(&rest), (1...12).contains(month), rest.popFirst() == UInt8(ascii: "."),
        let week = takeNumber(&rest), (1...5).contains(week), rest.popFirst() == UInt8(ascii: "."),
        let weekday = takeNumber(&rest), (0...6).contains(weekday)
      else { return nil }
      day = .weekday(month: month, week: week, day: weekday)
    case UInt8(ascii: "J"):
      rest.removeFirst()
      guard let number = takeNumber(&rest), (1...365).contains(number) else { return nil }
      day = .ordinal(number)
    default:
      guard let number = takeNumber(&rest), (0...365).contains(number) else { return nil }
      day = .zeroBased(number)
    }
    guard rest.first == UInt8(ascii: "/") else { return Change(day: day, time: 7200) }
    rest.removeFirst()
    return takeTime(&rest).map { Change(day: day, time: $0) }
  }
}
