import DocumentModel
import Foundation

/// Numbers, text and timestamps.
extension ReferenceEvaluator {
  func arithmetic(_ name: String, _ values: Arguments) -> Outcome? {
    let isNumber: (Int, Value) -> Bool = { _, value in Self.isNumber(value) }
    switch name {
    case "add", "subtract", "multiply", "divide", "mod":
      return propagate(values, isNumber) { numbers in
        if case .integer(let x) = numbers[0], case .integer(let y) = numbers[1] {
          return wide(name, Int128(x), Int128(y))
        }
        let (x, y) = (Self.double(numbers[0]), Self.double(numbers[1]))
        switch name {
        case "add": return .value(.double(x + y))
        case "subtract": return .value(.double(x - y))
        case "multiply": return .value(.double(x * y))
        case "divide": return .value(.double(x / y))
        default: return .value(.double(fmod(x, y)))
        }
      }
    case "abs", "ceil", "floor":
      return propagate(values, isNumber) { numbers in
        if case .integer(let number) = numbers[0] {
          return name == "abs"
            ? wide("add", Int128(number).magnitude == Int128(number) ? Int128(number) : -Int128(number), 0)
            : .value(numbers[0])
        }
        let number = Self.double(numbers[0])
        return .value(
          .double(name == "abs" ? fabs(number) : name == "ceil" ? Foundation.ceil(number) : Foundation.floor(number)))
      }
    case "round", "trunc":
      return propagate(values, { index, value in index == 0 ? Self.isNumber(value) : Self.isInteger(value) }) {
        rounded($0, isRound: name == "round")
      }
    case "sqrt":
      return propagate(values, isNumber) { numbers in
        let number = Self.double(numbers[0])
        return number < 0 ? Self.failed : .value(.double(number.squareRoot()))
      }
    default: return nil
    }
  }

  private func wide(_ name: String, _ x: Int128, _ y: Int128) -> Outcome {
    let result: Int128
    switch name {
    case "add": result = x + y
    case "subtract": result = x - y
    case "multiply": result = x * y
    default:
      guard y != 0 else { return Self.failed }
      result = name == "divide" ? x / y : x % y
    }
    return Int64(exactly: result).map { .value(.integer($0)) } ?? Self.failed
  }

  static func double(_ value: Value) -> Double {
    switch value {
    case .integer(let number): Double(number)
    case .double(let number): number
    default: .nan
    }
  }

  /// Rounds by `Decimal`, so only numbers of moderate size are compared.
  private func rounded(_ numbers: [Value], isRound: Bool) -> Outcome {
    var places = 0
    if numbers.count == 2, case .integer(let given) = numbers[1] { places = Int(max(-30, min(30, given))) }
    if case .integer(let number) = numbers[0] {
      guard places < 0 else { return .value(numbers[0]) }
      var scale: Int128 = 1
      for _ in 0..<min(-places, 25) { scale *= 10 }
      let wide = Int128(number)
      let half = isRound ? scale / 2 : 0
      let result = (wide.magnitude == wide ? wide + half : wide - half) / scale * scale
      return Int64(exactly: result).map { .value(.integer($0)) } ?? Self.failed
    }
    let number = Self.double(numbers[0])
    guard number.isFinite, places < 16 else { return .value(.double(number)) }
    guard var decimal = Decimal(string: number.description) else { return Self.failed }
    var result = Decimal()
    let mode: NSDecimalNumber.RoundingMode = isRound ? .plain : (decimal < 0 ? .up : .down)
    NSDecimalRound(&result, &decimal, places, mode)
    return .value(.double(Double("\(result)") ?? .nan))
  }

  // MARK: Text

  /// The code points of a string or the bytes of bytes.
  private static func units(_ value: Value) -> [UInt32] {
    switch value {
    case .string(let text): text.unicodeScalars.map(\.value)
    case .bytes(let bytes): bytes.map(UInt32.init)
    default: []
    }
  }

  private static func value(_ units: some Sequence<UInt32>, like model: Value) -> Value {
    guard case .string = model else { return .bytes(units.map { UInt8($0) }) }
    return .string(String(String.UnicodeScalarView(units.compactMap(Unicode.Scalar.init))))
  }

  private static func sameKind(_ values: Arguments) -> Bool {
    let kinds = values.compactMap(value).filter { $0 != .null }.map { isString($0) ? 1 : isArray($0) ? 2 : 3 }
    return Set(kinds).count <= 1
  }

  func text(_ name: String, _ values: Arguments) -> Outcome? {
    let isText: (Int, Value) -> Bool = { _, value in Self.isText(value) }
    let isString: (Int, Value) -> Bool = { _, value in Self.isString(value) }
    switch name {
    case "char_length": return propagate(values, isString) { .value(.integer(Int64(Self.units($0[0]).count))) }
    case "byte_length":
      return propagate(values, isText) { values in
        if case .string(let text) = values[0] { return .value(.integer(Int64(text.utf8.count))) }
        return .value(.integer(Int64(Self.units(values[0]).count)))
      }
    case "concat", "string_concat":
      let accept: (Int, Value) -> Bool = { _, value in
        name == "concat" ? Self.isText(value) || Self.isArray(value) : Self.isString(value)
      }
      guard Self.sameKind(values) else { return Self.failed }
      return propagate(values, accept) { values in
        Self.isArray(values[0])
          ? .value(.array(values.flatMap(Self.items))) : .value(Self.value(values.flatMap(Self.units), like: values[0]))
      }
    case "reverse", "string_reverse":
      return propagate(values, { _, value in Self.isText(value) || name == "reverse" && Self.isArray(value) }) {
        values in
        Self.isArray(values[0])
          ? .value(.array(Self.items(values[0]).reversed()))
          : .value(Self.value(Self.units(values[0]).reversed(), like: values[0]))
      }
    case "to_lower", "to_upper":
      return propagate(values, isText) { values in
        let isLower = name == "to_lower"
        if case .string(let text) = values[0] {
          return .value(.string(isLower ? text.lowercased() : text.uppercased()))
        }
        return .value(
          Self.value(
            Self.units(values[0]).map { unit in
              let letter = isLower ? (65...90).contains(unit) : (97...122).contains(unit)
              return letter ? unit ^ 32 : unit
            }, like: values[0]))
      }
    case "trim", "ltrim", "rtrim":
      guard Self.sameKind(values) else { return Self.failed }
      return propagate(values, isText) { values in
        let set = values.count == 2 ? Set(Self.units(values[1])) : [9, 10, 11, 12, 13, 32]
        var units = Self.units(values[0])
        while name != "rtrim", let first = units.first, set.contains(first) { units.removeFirst() }
        while name != "ltrim", let last = units.last, set.contains(last) { units.removeLast() }
        return .value(Self.value(units, like: values[0]))
      }
    case "string_contains", "starts_with", "ends_with", "like":
      return propagate(values, isString) { values in
        let (text, pattern) = (Self.units(values[0]), Self.units(values[1]))
        switch name {
        case "string_contains": return Self.boolean(pattern.isEmpty || Self.index(of: pattern, in: text) != nil)
        case "starts_with": return Self.boolean(text.starts(with: pattern))
        case "ends_with": return Self.boolean(text.reversed().starts(with: pattern.reversed()))
        default:
          guard let tokens = Self.likeTokens(pattern) else { return Self.failed }
          return Self.boolean(Self.like(text[...], tokens[...]))
        }
      }
    default: return moreText(name, values)
    }
  }

  private func moreText(_ name: String, _ values: Arguments) -> Outcome? {
    let isText: (Int, Value) -> Bool = { _, value in Self.isText(value) }
    switch name {
    case "string_index_of", "string_replace_all", "string_replace_one", "split":
      guard Self.sameKind(values) else { return Self.failed }
      return propagate(values, isText) { values in
        let text = Self.units(values[0])
        let pattern = values.count > 1 ? Self.units(values[1]) : [44]
        switch name {
        case "string_index_of": return .value(.integer(Int64(Self.index(of: pattern, in: text) ?? -1)))
        case "split":
          if values.count == 1, !Self.isString(values[0]) { return Self.failed }
          if pattern.isEmpty, !text.isEmpty { return .value(.array(text.map { Self.value([$0], like: values[0]) })) }
          return .value(.array(Self.pieces(text, pattern, limit: .max).map { Self.value($0, like: values[0]) }))
        default:
          let pieces = Self.pieces(text, pattern, limit: name == "string_replace_one" ? 1 : .max)
          return .value(Self.value(Array(pieces.joined(separator: Self.units(values[2]))), like: values[0]))
        }
      }
    case "string_repeat":
      return propagate(values, { index, value in index == 0 ? Self.isText(value) : Self.isInteger(value) }) { values in
        guard case .integer(let times) = values[1], times >= 0 else { return Self.failed }
        let units = Self.units(values[0])
        guard units.isEmpty || times <= 1_000_000 else { return Self.failed }
        let all = units.isEmpty ? [] : Array([[UInt32]](repeating: units, count: Int(times)).joined())
        let result = Self.value(all, like: values[0])
        if case .string(let text) = result, text.utf8.count > 1 << 20 { return Self.failed }
        return all.count > 1 << 20 ? Self.failed : .value(result)
      }
    case "substring":
      if let value = Self.value(values[0]), value != .null, !Self.isText(value) { return Self.failed }
      guard let start = Self.integer(values[1]) else { return Self.failed }
      var length = Int64.max
      if values.count == 3 {
        guard let given = Self.integer(values[2]), given >= 0 else { return Self.failed }
        length = given
      }
      guard let value = Self.value(values[0]), value != .null else { return Self.null }
      return .value(Self.value(Self.slice(Self.units(value), start, length), like: value))
    default: return nil
    }
  }

  /// The elements from `start`, which counts from the end if negative, `length` at most.
  static func slice<Element>(_ items: [Element], _ start: Int64, _ length: Int64) -> [Element] {
    let count = Int128(items.count)
    let first = start < 0 ? max(0, count + Int128(start)) : min(count, Int128(start))
    let end = min(count, first + Int128(length))
    return Array(items[Int(first)..<Int(end)])
  }

  private static func index(of pattern: [UInt32], in text: [UInt32], from start: Int = 0) -> Int? {
    var place = start
    while place + pattern.count <= text.count {
      if text[place...].starts(with: pattern) { return place }
      place += 1
    }
    return nil
  }

  /// The parts between occurrences of a pattern, of which at most `limit` count.
  private static func pieces(_ text: [UInt32], _ pattern: [UInt32], limit: Int) -> [[UInt32]] {
    guard !pattern.isEmpty else { return [text] }
    var pieces: [[UInt32]] = []
    var start = 0
    while pieces.count < limit, let found = index(of: pattern, in: text, from: start) {
      pieces.append(Array(text[start..<found]))
      start = found + pattern.count
    }
    return pieces + [Array(text[start...])]
  }

  private enum LikeToken {
    case any, one
    case literal(UInt32)
  }

  private static func likeTokens(_ pattern: [UInt32]) -> [LikeToken]? {
    var tokens: [LikeToken] = []
    var rest = pattern[...]
    while let unit = rest.popFirst() {
      switch unit {
      case 37: tokens.append(.any)
      case 95: tokens.append(.one)
      case 92:
        guard let next = rest.popFirst() else { return nil }
        tokens.append(.literal(next))
      default: tokens.append(.literal(unit))
      }
    }
    return tokens
  }

  private static func like(_ text: ArraySlice<UInt32>, _ tokens: ArraySlice<LikeToken>) -> Bool {
    guard let token = tokens.first else { return text.isEmpty }
    switch token {
    case .any: return like(text, tokens.dropFirst()) || !text.isEmpty && like(text.dropFirst(), tokens)
    case .one: return !text.isEmpty && like(text.dropFirst(), tokens.dropFirst())
    case .literal(let unit): return text.first == unit && like(text.dropFirst(), tokens.dropFirst())
    }
  }

  // MARK: Timestamps

  private static let units: [String: Int128] = [
    "microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000,
  ]

  func time(_ name: String, _ values: Arguments) -> Outcome? {
    let isTime: (Value) -> Bool = { if case .timestamp = $0 { true } else { false } }
    switch name {
    case "unix_micros_to_timestamp", "unix_millis_to_timestamp", "unix_seconds_to_timestamp":
      let unit: Int128 = name.contains("micros") ? 1 : name.contains("millis") ? 1000 : 1_000_000
      return propagate(values, { _, value in Self.isInteger(value) }) { values in
        guard case .integer(let number) = values[0] else { return Self.failed }
        return timestamp(Int128(number) * unit)
      }
    case "timestamp_to_unix_micros", "timestamp_to_unix_millis", "timestamp_to_unix_seconds":
      let unit: Double = name.contains("micros") ? 1 : name.contains("millis") ? 1000 : 1_000_000
      return propagate(values, { _, value in isTime(value) }) { values in
        guard case .timestamp(let time) = values[0] else { return Self.failed }
        if unit == 1 { return .value(.integer(time.microseconds)) }
        let rest = ((time.microseconds % Int64(unit)) + Int64(unit)) % Int64(unit)
        return .value(.integer((time.microseconds - rest) / Int64(unit)))
      }
    case "timestamp_add", "timestamp_subtract":
      guard let unit = Self.string(values[1]).flatMap({ Self.units[$0] }) else { return Self.failed }
      return propagate([values[0], values[2]], { index, value in index == 0 ? isTime(value) : Self.isInteger(value) }) {
        guard case .timestamp(let time) = $0[0], case .integer(let count) = $0[1] else { return Self.failed }
        return timestamp(Int128(time.microseconds) + (name == "timestamp_add" ? 1 : -1) * Int128(count) * unit)
      }
    case "timestamp_diff":
      guard let unit = Self.string(values[2]).flatMap({ Self.units[$0] }) else { return Self.failed }
      return propagate([values[0], values[1]], { _, value in isTime(value) }) {
        guard case .timestamp(let end) = $0[0], case .timestamp(let start) = $0[1] else { return Self.failed }
        return .value(.integer(Int64((Int128(end.microseconds) - Int128(start.microseconds)) / unit)))
      }
    case "timestamp_trunc", "timestamp_extract":
      guard let part = Self.string(values[1]) else { return Self.failed }
      var zone = TimeZone(identifier: "UTC")
      if values.count == 3 { zone = Self.string(values[2]).flatMap(TimeZone.init(identifier:)) }
      guard let zone else { return Self.failed }
      return propagate([values[0]], { _, value in isTime(value) }) {
        guard case .timestamp(let time) = $0[0] else { return Self.failed }
        return name == "timestamp_trunc" ? truncated(time, part, zone) : extracted(time, part, zone)
      }
    default: return nil
    }
  }

  private func timestamp(_ microseconds: Int128) -> Outcome {
    guard let exact = Int64(exactly: microseconds),
      (Timestamp.earliest.microseconds...Timestamp.latest.microseconds).contains(exact)
    else { return Self.failed }
    return .value(.timestamp(Timestamp(uncheckedMicroseconds: exact)))
  }

  private static let weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

  private func calendar(_ part: String, _ zone: TimeZone) -> Calendar {
    var calendar = Calendar(identifier: part.hasPrefix("iso") ? .iso8601 : .gregorian)
    calendar.timeZone = zone
    if part.hasPrefix("week") {
      let day = Self.weekdays.firstIndex { part == "week(\($0))" } ?? 0
      calendar.firstWeekday = day + 1
      calendar.minimumDaysInFirstWeek = 7
    }
    return calendar
  }

  private func truncated(_ time: Timestamp, _ part: String, _ zone: TimeZone) -> Outcome {
    if let unit = Self.units[part], unit <= 1_000_000 {
      let rest = ((Int128(time.microseconds) % unit) + unit) % unit
      return timestamp(Int128(time.microseconds) - rest)
    }
    let calendar = calendar(part, zone)
    let date = Date(timeIntervalSince1970: Double(time.seconds))
    let components: [String: Calendar.Component] = [
      "minute": .minute, "hour": .hour, "day": .day, "month": .month, "year": .year, "isoweek": .weekOfYear,
      "isoyear": .yearForWeekOfYear,
    ]
    var start: Date?
    switch part {
    case "quarter":
      let parts = calendar.dateComponents([.year, .month], from: date)
      start = calendar.date(from: DateComponents(year: parts.year, month: ((parts.month ?? 1) - 1) / 3 * 3 + 1))
    case "isoyear":
      let year = calendar.component(.yearForWeekOfYear, from: date)
      start = calendar.date(from: DateComponents(weekday: 2, weekOfYear: 1, yearForWeekOfYear: year))
    case _ where part.hasPrefix("week"): start = calendar.dateInterval(of: .weekOfYear, for: date)?.start
    default: start = components[part].flatMap { calendar.dateInterval(of: $0, for: date)?.start }
    }
    guard let start else { return Self.failed }
    return timestamp(Int128(start.timeIntervalSince1970) * 1_000_000)
  }

  private func extracted(_ time: Timestamp, _ part: String, _ zone: TimeZone) -> Outcome {
    let calendar = calendar(part, zone)
    let date = Date(timeIntervalSince1970: Double(time.seconds))
    let fraction = time.microseconds - time.seconds * 1_000_000
    let components: [String: Calendar.Component] = [
      "second": .second, "minute": .minute, "hour": .hour, "day": .day, "month": .month, "year": .year,
      "isoweek": .weekOfYear, "isoyear": .yearForWeekOfYear, "dayofweek": .weekday,
    ]
    let number: Int?
    switch part {
    case "microsecond": number = Int(fraction)
    case "millisecond": number = Int(fraction / 1000)
    case "quarter": number = (calendar.component(.month, from: date) - 1) / 3 + 1
    case "dayofyear": number = calendar.ordinality(of: .day, in: .year, for: date)
    case _ where part.hasPrefix("week"):
      // Days before the first full week belong to week 0.
      let isBefore = calendar.component(.yearForWeekOfYear, from: date) < calendar.component(.year, from: date)
      number = isBefore ? 0 : calendar.component(.weekOfYear, from: date)
    default: number = components[part].map { calendar.component($0, from: date) }
    }
    return number.map { .value(.integer(Int64($0))) } ?? Self.failed
  }
}
