/// The text of a line of progress.
enum ProgressText {
  /// The time after which the time left is estimated, in milliseconds.
  private static let estimateMillisecondsMin = 2000

  /// Returns a line such as `900,000 documents imported, 24,631/s, 45%, 1 min 10 s left`.
  static func line(_ count: Int, _ what: String, fraction: Double?, milliseconds: Int) -> String {
    var text = "\(number(count)) \(what), \(number(milliseconds > 0 ? count * 1000 / milliseconds : 0))/s"
    guard let fraction else { return text }
    text += ", \(Int(fraction * 100))%"
    guard fraction > 0.001, milliseconds >= estimateMillisecondsMin else { return text }
    return text + ", \(duration(Int(Double(milliseconds) * (1 - fraction) / fraction / 1000))) left"
  }

  /// Returns a number with a comma between thousands.
  static func number(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { text.append(",") }
      text.append(digit)
    }
    return number < 0 ? "-\(text)" : text
  }

  /// Returns a time such as `8 s`, `1 min 10 s` or `2 h 5 min`.
  static func duration(_ seconds: Int) -> String {
    if seconds < 60 { return "\(seconds) s" }
    if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
    return "\(seconds / 3600) h \(seconds / 60 % 60) min"
  }
}
