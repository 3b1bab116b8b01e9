/// The text of a line of progress.
enum ProgressText {
  /// The time after which the time left is estimated, in milliseconds.
  private static let estimateMillisecondsMin = 500

  /// Returns a line such as `900,000 documents imported, 24,631/s, 45%, 1 min 10 s left`.
  static func line(_ count: Int, _ what: String, fraction: Double?, milliseconds: Int) -> String {
    "\(number(count)) \(what)\(speed(count, fraction: fraction, milliseconds: milliseconds))"
  }

  /// Returns the end of such a line: `, 24,631/s, 45%, 1 min 10 s left`.
  ///
  /// `portion` is the part of the finished work that was done in this time, if some was done before.
  static func speed(_ count: Int, fraction: Double?, milliseconds: Int, portion: Double = 1) -> String {
    ", \(number(milliseconds > 0 ? count * 1000 / milliseconds : 0))/s\(rest(fraction, milliseconds, portion))"
  }

  /// Returns a line such as `12 MiB of 38 MiB copied, 40 MiB/s, 31%, 3 s left`.
  static func bytes(_ count: Int, of total: Int?, _ what: String, milliseconds: Int) -> String {
    let rate = milliseconds > 0 ? count * 1000 / milliseconds : 0
    let whole = total.map { " of \(ByteCount.text(max($0, count)))" } ?? ""
    let fraction = total.map { $0 > 0 ? min(1, Double(count) / Double($0)) : 1 }
    return "\(ByteCount.text(count))\(whole) \(what), \(ByteCount.text(rate))/s\(rest(fraction, milliseconds))"
  }

  /// Returns the part of the work that is done, and the time left: `, 45%, 1 min 10 s left`.
  private static func rest(_ fraction: Double?, _ milliseconds: Int, _ portion: Double = 1) -> String {
    guard let fraction else { return "" }
    let text = ", \(Int(fraction * 100))%"
    guard fraction * portion > 0.001, milliseconds >= estimateMillisecondsMin else { return text }
    return text + ", \(duration(Int(Double(milliseconds) * (1 - fraction) / (fraction * portion) / 1000))) left"
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
