/// The grammar of counts in messages.
enum CountText {
  /// Returns `1 document` or `2 documents`. `many` is the plural of a noun that does not just get an `s`.
  static func of(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(noun(count, one, many))"
  }

  /// Returns the same with a comma between thousands: `12,000 documents`.
  static func grouped(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(ProgressText.number(count)) \(noun(count, one, many))"
  }

  /// Returns the noun in the form that belongs to a count.
  static func noun(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    count == 1 ? one : many ?? one + "s"
  }
}
