import Basics
import Glibc
import Testing

@Suite struct CivilDateTests {
  /// Compares with the C library, which computes dates in another way.
  @Test func datesMatchThoseOfTheSystem() {
    // The first days of the years 1 to 9999 in steps of a prime, so that all months and leap years occur.
    for days in stride(from: -719_162, through: 2_932_896, by: 97) {
      var time = time_t(days * CivilDate.secondsPerDay)
      var parts = tm()
      gmtime_r(&time, &parts)
      let date = CivilDate(
        year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday))
      #expect(CivilDate(daysSince1970: days) == date)
      #expect(date.daysSince1970 == days)
    }
  }

  @Test func monthsHaveTheDaysBetweenTheirFirsts() {
    for year in [1, 4, 100, 400, 1900, 1970, 1999, 2000, 2024, 9999] {
      for month in 1...12 {
        let first = CivilDate(year: year, month: month, day: 1).daysSince1970
        let next = CivilDate(year: month == 12 ? year + 1 : year, month: month % 12 + 1, day: 1).daysSince1970
        #expect(CivilDate.days(inMonth: month, of: year) == next - first, "\(year)-\(month)")
      }
    }
  }

  @Test(arguments: [
    (0, 0, 0), (86_399, 0, 86_399), (86_400, 1, 0), (-1, -1, 86_399), (-86_400, -1, 0), (-86_401, -2, 86_399),
  ])
  func secondsSplitIntoDaysRoundedTowardThePast(seconds: Int, days: Int, secondOfDay: Int) {
    #expect(CivilDate.split(seconds) == (days, secondOfDay))
  }
}
