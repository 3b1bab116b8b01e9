/// A unit or part of a time, as the functions of timestamps name it (pipelines.md, section 4.6).
enum TimePart: Equatable {
  case microsecond, millisecond, second, minute, hour, day
  /// A week that begins on this day. Sunday is 0.
  case week(start: Int)
  case isoWeek, month, quarter, year, isoYear, dayOfWeek, dayOfYear

  private static let names: [(StaticString, TimePart)] = [
    ("microsecond", .microsecond), ("millisecond", .millisecond), ("second", .second), ("minute", .minute),
    ("hour", .hour), ("day", .day), ("week", .week(start: 0)), ("week(sunday)", .week(start: 0)),
    ("week(monday)", .week(start: 1)), ("week(tuesday)", .week(start: 2)), ("week(wednesday)", .week(start: 3)),
    ("week(thursday)", .week(start: 4)), ("week(friday)", .week(start: 5)), ("week(saturday)", .week(start: 6)),
    ("isoweek", .isoWeek), ("month", .month), ("quarter", .quarter), ("year", .year), ("isoyear", .isoYear),
    ("dayofweek", .dayOfWeek), ("dayofyear", .dayOfYear),
  ]

  /// Parses a name, which is lower case. Returns `nil` if it is unknown.
  init?(_ name: UnsafeRawBufferPointer) {
    for (known, part) in Self.names
    where known.utf8CodeUnitCount == name.count && name.elementsEqual(ExpressionEvaluator.bytes(known)) {
      self = part
      return
    }
    return nil
  }

  /// Parses a name; see ``init(_:)-(UnsafeRawBufferPointer)``.
  init?(_ name: String) {
    var copy = name
    guard let part = copy.withUTF8({ TimePart(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = part
  }

  /// The microseconds of a unit that always has the same length, otherwise `nil`. A day has 24 hours.
  var microseconds: Int64? {
    switch self {
    case .microsecond: 1
    case .millisecond: 1000
    case .second: 1_000_000
    case .minute: 60_000_000
    case .hour: 3_600_000_000
    case .day: 86_400_000_000
    default: nil
    }
  }

  /// Whether the unit always has the same length.
  var isFixed: Bool { microseconds != nil }

  /// Whether `timestamp_trunc` or `timestamp_extract` accepts the part.
  func isLegal(in function: ExpressionFunction) -> Bool {
    function == .timestampExtract || (self != .dayOfWeek && self != .dayOfYear)
  }
}
