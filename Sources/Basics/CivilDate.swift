/// A date of the proleptic Gregorian calendar, in UTC.
package struct CivilDate: Equatable, Sendable {
  /// The seconds of a day. UTC's leap seconds do not count.
  package static let secondsPerDay = 86_400

  package var year: Int
  /// The month, from 1.
  package var month: Int
  /// The day of the month, from 1.
  package var day: Int

  package init(year: Int, month: Int, day: Int) {
    self.year = year
    self.month = month
    self.day = day
  }

  /// Creates the date that is `days` after 1970-01-01.
  package init(daysSince1970 days: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthIndex = (5 * dayOfYear + 2) / 153
    month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    day = dayOfYear - (153 * monthIndex + 2) / 5 + 1
  }

  /// The days from 1970-01-01 to this date. A day after the end of its month counts from the month's start. The month
  /// must be 1 to 12.
  package var daysSince1970: Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// Returns the number of days in a month.
  package static func days(inMonth month: Int, of year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
    default: 31
    }
  }

  /// Splits seconds since 1970, which may be negative, into days and the seconds of the last day.
  package static func split(_ seconds: Int) -> (days: Int, secondOfDay: Int) {
    let (days, rest) = seconds.quotientAndRemainder(dividingBy: secondsPerDay)
    return rest < 0 ? (days - 1, rest + secondsPerDay) : (days, rest)
  }
}
