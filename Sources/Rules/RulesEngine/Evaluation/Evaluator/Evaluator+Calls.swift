import Basics
import Digests
import Glibc
import WireFormat

/// Calls of the language's functions and methods: choosing the overload, and numbers, times and places.
extension Evaluator {
  /// Evaluates the operands of a call, then calls the function or method.
  @inline(never)
  func callBuiltin(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let values = evaluateOperands(node, frame) else { return outOfMemory() }
    if stopped != nil { return stopFailure }
    let group = Builtins.groups[Int(node.c)]
    if group.isMethod { return callMethod(node, group, values) }
    if let failed = values.first(where: { $0.isFailure }) { return failed }
    var isCountKnown = false
    for signature in group.signatures where signature.parameters.count == values.count {
      isCountKnown = true
      if Self.accepts(signature.parameters, values[...]) { return call(signature.builtin, node, values) }
    }
    if isCountKnown { return failure(.arguments, text: name(node, group), items: values, group: node.c) }
    // The engine's `debug` accepts any number of arguments and returns the first.
    if group.name == "debug", let first = values.first { return first }
    if group.name == "debug" { return failure(.serviceCall, text: RuleBytes.of("debug"), items: values) }
    return failure(.argumentCount, text: name(node, group), items: values, group: node.c)
  }

  private func callMethod(
    _ node: Program.Node, _ group: SignatureGroup, _ values: UnsafeBufferPointer<RuleValue>
  ) -> RuleValue {
    let receiver = values[0]
    if receiver.isFailure { return receiver }
    if case .null = receiver { return failure(.nullValue) }
    let type = receiver.type
    guard group.signatures.contains(where: { $0.receiver == type }) else {
      return failure(.unknownFunction, text: name(node, group))
    }
    if let failed = values.first(where: { $0.isFailure }) { return failed }
    var isCountKnown = false
    for signature in group.signatures
    where signature.receiver == type && signature.parameters.count == values.count - 1 {
      isCountKnown = true
      if Self.accepts(signature.parameters, values.dropFirst()) { return call(signature.builtin, node, values) }
    }
    return failure(
      isCountKnown ? .arguments : .argumentCount, text: name(node, group), items: values, group: node.c)
  }

  /// Returns a copy of a group's name that lives as long as the decision.
  private func name(_ node: Program.Node, _ group: SignatureGroup) -> UnsafeRawBufferPointer {
    copied(Array(group.name.utf8)) ?? RuleBytes.of("")
  }

  /// Returns a copy of the bytes in the arena, or `nil` if the work or memory budget is used up.
  func copied(_ bytes: [UInt8]) -> UnsafeRawBufferPointer? {
    guard charge(bytes.count >> 1), let memory = arena.take(bytes: bytes.count) else {
      _ = outOfMemory()
      return nil
    }
    let copy = UnsafeMutableRawBufferPointer(start: memory, count: bytes.count)
    copy.copyBytes(from: bytes)
    return UnsafeRawBufferPointer(copy)
  }

  /// Returns a string value with a copy of the bytes.
  func text(_ bytes: [UInt8]) -> RuleValue {
    guard let copy = copied(bytes) else { return stopFailure }
    return .string(copy)
  }

  private static func accepts(_ parameters: [RuleType], _ values: Slice<UnsafeBufferPointer<RuleValue>>) -> Bool {
    zip(parameters, values).allSatisfy { parameter, value in
      switch (parameter, value.type) {
      case (.any, _), (.float, .int): true
      case (let expected, let actual): expected == actual
      }
    }
  }

  // MARK: Dispatch

  private static func float(_ value: RuleValue) -> Double {
    switch value {
    case .int(let number): Double(number)
    case .float(let number): number
    default: .nan
    }
  }

  private static func integer(_ value: RuleValue) -> Int64 {
    if case .int(let number) = value { number } else { 0 }
  }

  private static func bytes(_ value: RuleValue) -> UnsafeRawBufferPointer {
    switch value {
    case .string(let bytes), .bytes(let bytes): bytes
    default: UnsafeRawBufferPointer(start: nil, count: 0)
    }
  }

  private static func moment(_ value: RuleValue) -> Moment {
    switch value {
    case .timestamp(let moment), .duration(let moment): moment
    default: Moment(seconds: 0, nanos: 0)
    }
  }

  /// Calls a builtin whose parameters accept the values. A method's receiver is the first value.
  private func call(
    _ builtin: Builtin, _ node: Program.Node, _ values: UnsafeBufferPointer<RuleValue>
  ) -> RuleValue {
    switch builtin {
    case .get, .exists, .getAfter, .existsAfter: return lookUp(builtin, values[0])
    case .debug: return values[0]
    case .toInt: return int(values[0])
    case .toFloat: return float(values[0])
    case .toString: return string(values[0])
    case .toPath: return path(Self.bytes(values[0]))
    case .mathAbs:
      if case .int(let value) = values[0] { return .int(value < 0 ? 0 &- value : value) }
      return .float(Self.float(values[0]).magnitude)
    case .mathCeil: return .float(Self.float(values[0]).rounded(.up))
    case .mathFloor: return .float(Self.float(values[0]).rounded(.down))
    // An int is converted to a float first, as in the engine: large ones lose their last digits.
    case .mathRound: return .int(Self.rounded(Self.float(values[0])))
    case .mathSqrt: return .float(Self.float(values[0]).squareRoot())
    case .mathPow: return .float(Self.power(Self.float(values[0]), Self.float(values[1])))
    case .mathIsNaN: return .bool(Self.float(values[0]).isNaN)
    case .crc32, .crc32c, .md5, .sha256: return digest(builtin, Self.bytes(values[0]))
    case .timestampDate: return date(values)
    case .timestampOfMillis: return timestamp(Self.moment(ofMillis: Self.integer(values[0])))
    case .timestampOfText: return timestamp(Moment.parse(Self.bytes(values[0])))
    case .durationValue: return durationValue(Self.integer(values[0]), Self.bytes(values[1]))
    case .durationTime: return durationTime(values.map(Self.integer))
    case .durationAbs:
      let moment = Self.moment(values[0])
      return .duration(Moment(seconds: abs(moment.seconds), nanos: abs(moment.nanos)))
    case .latlngValue:
      let (latitude, longitude) = (Self.float(values[0]), Self.float(values[1]))
      guard latitude.magnitude <= 90, longitude.magnitude <= 180 else {
        return failure(.latlng, text: "", .float(latitude), .float(longitude))
      }
      return .latlng(latitude: latitude, longitude: longitude)
    case .year, .month, .day, .hours, .minutes, .seconds, .nanos, .dayOfWeek, .dayOfYear, .date, .time, .toMillis:
      return part(builtin, of: Self.moment(values[0]))
    case .durationSeconds: return .int(Self.moment(values[0]).seconds)
    case .durationNanos: return .int(Int64(Self.moment(values[0]).nanos))
    case .latitude, .longitude, .distance: return place(builtin, values)
    case .bind: return bind(values[0], values[1])
    case .stringSize, .lower, .upper, .trim, .matches, .split, .replace, .toUTF8, .bytesSize, .toBase64, .toHexString,
      .join:
      return callText(builtin, node, values)
    case .listSize, .listHasAll, .listHasAny, .listHasOnly, .concat, .removeAll, .toSet, .setSize, .union,
      .intersection, .difference, .setHasAll, .setHasAny, .setHasOnly, .mapSize, .keys, .values, .mapGet, .diff,
      .addedKeys, .removedKeys, .changedKeys, .unchangedKeys, .affectedKeys:
      return callCollection(builtin, values)
    case .constraintHasAny: return constrained(values[0], hasAny: values[1])
    case .contains: return contains(values[0], values[1])
    }
  }

  // MARK: Numbers

  /// Rounds half upward, as Java does. Values out of range become the nearest Int64, and NaN becomes 0.
  private static func rounded(_ value: Double) -> Int64 {
    let floor = value.rounded(.down)
    return saturated(value - floor >= 0.5 ? floor + 1 : floor)
  }

  private static func saturated(_ value: Double) -> Int64 {
    if value.isNaN { return 0 }
    return Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
  }

  /// Java's power function. Unlike C's, it returns NaN if the exponent is NaN, or if the base is ±1 and the
  /// exponent infinite.
  private static func power(_ base: Double, _ exponent: Double) -> Double {
    if exponent.isNaN || (base.magnitude == 1 && exponent.isInfinite) { return .nan }
    return pow(base, exponent)
  }

  private func int(_ value: RuleValue) -> RuleValue {
    switch value {
    case .float(let number): return .int(Self.saturated(number))
    case .string(let text):
      let number = integer(text)
      if stopped != nil { return stopFailure }
      return number.map(RuleValue.int) ?? failure(.conversion, text: "int", value)
    default: return value
    }
  }

  /// Returns the value of decimal digits of any script, with an optional sign, or `nil` for other texts and on
  /// overflow, or if the budget of work is used up.
  private func integer(_ text: UnsafeRawBufferPointer) -> Int64? {
    var offset = 0
    var isNegative = false
    if let sign = text.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      isNegative = sign == UInt8(ascii: "-")
      offset = 1
    }
    guard offset < text.count else { return nil }
    var value: Int64 = 0
    while offset < text.count {
      guard let step = digit(UTF16Text.scalar(text, &offset)) else { return nil }
      let (tenfold, first) = value.multipliedReportingOverflow(by: 10)
      let (next, second) =
        isNegative ? tenfold.subtractingReportingOverflow(step) : tenfold.addingReportingOverflow(step)
      if first || second { return nil }
      value = next
    }
    return value
  }

  /// Returns the value of a decimal digit of any script, or `nil` for other characters.
  private func digit(_ code: UInt32) -> Int64? {
    if (0x30...0x39).contains(code) { return charge(12) ? Int64(code - 0x30) : nil }
    // The library searches tables for the properties.
    guard charge(200), let scalar = Unicode.Scalar(code), scalar.properties.numericType == .decimal else { return nil }
    return scalar.properties.numericValue.map { Int64($0) }
  }

  private func float(_ value: RuleValue) -> RuleValue {
    switch value {
    case .int(let number): return .float(Double(number))
    case .string(let text):
      guard charge(text.count) else { return stopFailure }
      return FloatText.parse(Array(text)).map(RuleValue.float) ?? failure(.conversion, text: "float", value)
    default: return value
    }
  }

  private func digest(_ builtin: Builtin, _ bytes: UnsafeRawBufferPointer) -> RuleValue {
    let cost =
      switch builtin {
      case .crc32, .crc32c: 1
      default: 4
      }
    guard charge(200 + bytes.count * cost) else { return stopFailure }
    let digest =
      switch builtin {
      // The language returns the least significant byte first.
      case .crc32: Self.littleEndian(Crc32.extend(0, bytes))
      case .crc32c: Self.littleEndian(Crc32c.extend(0, bytes))
      case .md5: MessageDigest.compute(.md5, bytes)
      default: MessageDigest.compute(.sha256, bytes)
      }
    guard let digest, let copy = copied(digest) else { return stopFailure }
    return .bytes(copy)
  }

  private static func littleEndian(_ sum: UInt32) -> [UInt8]? { withUnsafeBytes(of: sum.littleEndian) { Array($0) } }

  // MARK: Time and place

  private static func moment(ofMillis millis: Int64) -> Moment? {
    let (quotient, remainder) = millis.quotientAndRemainder(dividingBy: 1000)
    return remainder < 0
      ? Moment(seconds: quotient - 1, nanos: Int32(remainder + 1000) * 1_000_000)
      : Moment(seconds: quotient, nanos: Int32(remainder) * 1_000_000)
  }

  private func date(_ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    let (year, month, day) = (Self.integer(values[0]), Self.integer(values[1]), Self.integer(values[2]))
    guard (1...9999).contains(year) else { return failure(.timestampYear, text: "", values[0]) }
    guard (1...12).contains(month), day >= 1, day <= Int64(CivilDate.days(inMonth: Int(month), of: Int(year))) else {
      return failure(.date, text: "", values[0], values[1], values[2])
    }
    return .timestamp(Moment(day: CivilDate(year: Int(year), month: Int(month), day: Int(day)).daysSince1970))
  }

  private func durationValue(_ amount: Int64, _ unit: UnsafeRawBufferPointer) -> RuleValue {
    func whole(_ seconds: Int64) -> RuleValue {
      let (product, overflow) = amount.multipliedReportingOverflow(by: seconds)
      return duration(overflow ? nil : Moment(seconds: product, nanos: 0))
    }
    switch String(decoding: unit, as: UTF8.self) {
    case "w": return whole(604_800)
    case "d": return whole(86_400)
    case "h": return whole(3600)
    case "m": return whole(60)
    case "s": return whole(1)
    case "ms": return duration(Moment(seconds: amount / 1000, nanos: Int32(amount % 1000) * 1_000_000))
    case "ns": return duration(Moment(seconds: amount / 1_000_000_000, nanos: Int32(amount % 1_000_000_000)))
    default: return failure(.pattern, text: unit)
    }
  }

  private func durationTime(_ parts: [Int64]) -> RuleValue {
    let (hours, first) = parts[0].multipliedReportingOverflow(by: 3600)
    let (minutes, second) = parts[1].multipliedReportingOverflow(by: 60)
    let (sum, third) = hours.addingReportingOverflow(minutes)
    let (seconds, fourth) = sum.addingReportingOverflow(parts[2])
    guard !first, !second, !third, !fourth else { return failure(.timestamp) }
    return duration(Moment.normalized(seconds: seconds, nanos: parts[3], isDuration: true))
  }

  private func part(_ builtin: Builtin, of moment: Moment) -> RuleValue {
    let (day, inDay) = CivilDate.split(Int(moment.seconds))
    let date = CivilDate(daysSince1970: day)
    switch builtin {
    case .year: return .int(Int64(date.year))
    case .month: return .int(Int64(date.month))
    case .day: return .int(Int64(date.day))
    case .hours: return .int(Int64(inDay / 3600))
    case .minutes: return .int(Int64(inDay / 60 % 60))
    case .seconds: return .int(Int64(inDay % 60))
    case .nanos: return .int(Int64(moment.nanos))
    // 1970-01-01 was a Thursday, the fourth day.
    case .dayOfWeek: return .int(Int64(((day + 3) % 7 + 7) % 7 + 1))
    case .dayOfYear: return .int(Int64(day - CivilDate(year: date.year, month: 1, day: 1).daysSince1970 + 1))
    case .date: return .timestamp(Moment(day: day))
    case .time: return .duration(Moment(seconds: Int64(inDay), nanos: moment.nanos))
    default: return .int(moment.seconds * 1000 + Int64(moment.nanos / 1_000_000))
    }
  }

  private func place(_ builtin: Builtin, _ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    guard case .latlng(let latitude, let longitude) = values[0] else { return failure(.damaged) }
    switch builtin {
    case .latitude: return .float(latitude)
    case .longitude: return .float(longitude)
    default:
      guard case .latlng(let otherLatitude, let otherLongitude) = values[1] else { return failure(.damaged) }
      return .float(Self.distance(latitude, longitude, otherLatitude, otherLongitude))
    }
  }

  /// Returns the distance in meters on a sphere (haversine formula).
  private static func distance(_ latitude: Double, _ longitude: Double, _ other: Double, _ otherLongitude: Double)
    -> Double
  {
    let radians = Double.pi / 180
    let (first, second) = (latitude * radians, other * radians)
    let latitudeSine = sin(0.5 * (second - first))
    let longitudeSine = sin(0.5 * (otherLongitude * radians - longitude * radians))
    let square = latitudeSine * latitudeSine + longitudeSine * longitudeSine * cos(first) * cos(second)
    return 2 * asin(min(1, square).squareRoot()) * 6_371_009
  }
}
