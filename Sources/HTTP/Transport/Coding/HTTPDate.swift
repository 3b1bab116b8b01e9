import Basics

/// HTTP dates, independent of the locale.
package enum HTTPDate {
  private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Returns a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, from seconds since 1970.
  package static func text(_ seconds: Int64) -> String {
    let (day, second) = CivilDate.split(Int(seconds))
    let date = CivilDate(daysSince1970: day)
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
    return "\(days[(day % 7 + 7) % 7]), \(two(date.day)) \(months[date.month - 1]) \(date.year) "
      + "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
  }

  /// Returns the seconds since 1970 for such a date, or `nil` if the text has another form.
  package static func seconds(_ text: String) -> Int64? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = Int(words[1]), let year = Int(words[3]),
      let month = months.firstIndex(of: String(words[2]))
    else { return nil }
    let time = words[4].split(separator: ":").compactMap { Int32($0) }.map { Int64($0) }
    guard time.count == 3, (1...31).contains(day), (1970...9999).contains(year) else { return nil }
    let date = CivilDate(year: year, month: month + 1, day: day)
    return Int64(date.daysSince1970 * CivilDate.secondsPerDay) + time[0] * 3600 + time[1] * 60 + time[2]
  }
}
