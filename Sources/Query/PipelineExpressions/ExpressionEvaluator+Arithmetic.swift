import DocumentModel
import Glibc

/// Numbers (pipelines.md, section 4.1).
extension ExpressionEvaluator {
  func arithmetic(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    switch function {
    case .add, .subtract, .multiply, .divide, .mod:
      if case .integer(let x) = arguments[0], case .integer(let y) = arguments[1] {
        return integers(function, x, y)
      }
      return doubles(function, Self.double(arguments[0]), Self.double(arguments[1]))
    case .abs:
      guard case .integer(let number) = arguments[0] else { return .double(Self.double(arguments[0]).magnitude) }
      return number == .min ? fail(.abs, .overflow) : .integer(Swift.abs(number))
    case .ceil: return whole(arguments[0], .up)
    case .floor: return whole(arguments[0], .down)
    case .round, .trunc: return rounded(function, arguments)
    case .pow: return power(Self.double(arguments[0]), Self.double(arguments[1]))
    case .sqrt:
      let number = Self.double(arguments[0])
      return number < 0 ? fail(.sqrt, .argument, 1) : .double(number.squareRoot())
    case .exp:
      let number = Self.double(arguments[0])
      let result = Glibc.exp(number)
      return result.isInfinite && number.isFinite ? fail(.exp, .overflow) : .double(result)
    case .ln: return logarithm(.ln, Self.double(arguments[0]), Glibc.log)
    case .log10: return logarithm(.log10, Self.double(arguments[0]), Glibc.log10)
    default:
      guard arguments.count == 2 else { return logarithm(.log, Self.double(arguments[0]), Glibc.log) }
      return logarithm(Self.double(arguments[0]), base: Self.double(arguments[1]))
    }
  }

  /// The value of a number as a double.
  static func double(_ number: ExpressionValue) -> Double {
    switch number {
    case .integer(let integer): Double(integer)
    case .double(let double): double
    default: .nan
    }
  }

  private func integers(_ function: ExpressionFunction, _ x: Int64, _ y: Int64) -> ExpressionValue {
    let result: (partialValue: Int64, overflow: Bool)
    switch function {
    case .add: result = x.addingReportingOverflow(y)
    case .subtract: result = x.subtractingReportingOverflow(y)
    case .multiply: result = x.multipliedReportingOverflow(by: y)
    case .divide:
      guard y != 0 else { return fail(.divide, .divisionByZero) }
      result = x.dividedReportingOverflow(by: y)
    default:
      guard y != 0 else { return fail(.mod, .divisionByZero) }
      // The remainder of the least integer and -1 is 0, although the quotient overflows.
      return .integer(y == -1 ? 0 : x % y)
    }
    return result.overflow ? fail(function, .overflow) : .integer(result.partialValue)
  }

  private func doubles(_ function: ExpressionFunction, _ x: Double, _ y: Double) -> ExpressionValue {
    switch function {
    case .add: .double(x + y)
    case .subtract: .double(x - y)
    case .multiply: .double(x * y)
    case .divide: .double(x / y)
    default: .double(x.truncatingRemainder(dividingBy: y))
    }
  }

  private func whole(_ number: ExpressionValue, _ rule: FloatingPointRoundingRule) -> ExpressionValue {
    if case .integer = number { return number }
    return .double(Self.double(number).rounded(rule))
  }

  private func power(_ base: Double, _ exponent: Double) -> ExpressionValue {
    if exponent == 0 || base == 1 { return .double(1) }
    if base.isNaN || exponent.isNaN { return .double(.nan) }
    if base == 0, exponent < 0 { return fail(.pow, .divisionByZero) }
    if base < 0, base.isFinite, exponent.isFinite, exponent != exponent.rounded(.towardZero) {
      return fail(.pow, .argument, 2)
    }
    return .double(Glibc.pow(base, exponent))
  }

  private func logarithm(
    _ function: ExpressionFunction, _ number: Double, _ compute: (Double) -> Double
  ) -> ExpressionValue {
    number <= 0 ? fail(function, .argument, 1) : .double(compute(number))
  }

  private func logarithm(_ number: Double, base: Double) -> ExpressionValue {
    if number == -.infinity || base == .infinity { return .double(.nan) }
    if number <= 0 { return fail(.log, .argument, 1) }
    if base <= 0 || base == 1 { return fail(.log, .argument, 2) }
    return .double(Glibc.log(number) / Glibc.log(base))
  }

  // MARK: Rounding

  private func rounded(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    var places = 0
    if arguments.count == 2 {
      switch arguments[1] {
      case .integer(let number): places = Int(max(-400, min(400, number)))
      case .double(let number): places = number.isNaN ? 0 : Int(max(-400, min(400, number)))
      default: break
      }
    }
    let isTruncation = function == .trunc
    switch arguments[0] {
    case .integer(let number):
      guard places < 0 else { return .integer(number) }
      return DecimalRounding.integer(number, places: -places, truncates: isTruncation).map { .integer($0) }
        ?? fail(function, .overflow)
    case .double(let number):
      guard number.isFinite, places < 16 else { return .double(number) }
      let result = DecimalRounding.double(number, places: places, truncates: isTruncation)
      return result.isFinite ? .double(result) : fail(function, .overflow)
    default: return fail(function, .type, 1)
    }
  }
}

/// Rounds numbers at a decimal place, half away from zero or toward zero.
enum DecimalRounding {
  /// Rounds an integer to a multiple of 10^`places`, where `places` is positive. Returns `nil` on overflow.
  static func integer(_ number: Int64, places: Int, truncates: Bool) -> Int64? {
    guard places <= 19 else { return 0 }
    var scale: UInt64 = 1
    for _ in 0..<places { scale *= 10 }
    let magnitude = number.magnitude
    let rest = magnitude % scale
    let base = magnitude - rest
    guard !truncates, rest >= scale - rest else { return number < 0 ? Int64(exactly: -Int128(base)) : Int64(base) }
    let result = Int128(base) + Int128(scale)
    return Int64(exactly: number < 0 ? -result : result)
  }

  /// Rounds a finite double at `places` digits after the decimal point, or before it if negative.
  ///
  /// It rounds the shortest decimal form that reads back as the same double: 1.005 to 2 places is 1.01. The result 0
  /// has no sign.
  static func double(_ number: Double, places: Int, truncates: Bool) -> Double {
    if places == 0 {
      let result = number.rounded(truncates ? .towardZero : .toNearestOrAwayFromZero)
      return result == 0 ? 0 : result
    }
    var (digits, point) = decimal(number.magnitude)
    // The number is 0.DIGITS × 10^point. This many digits stay.
    let kept = point + places
    if kept >= digits.count || number == 0 { return number + 0 }
    guard kept >= 0 else { return 0 }
    let roundsUp = !truncates && digits[kept] >= 5
    digits.removeLast(digits.count - kept)
    if roundsUp {
      var index = digits.count - 1
      while index >= 0, digits[index] == 9 {
        digits[index] = 0
        index -= 1
      }
      if index >= 0 {
        digits[index] += 1
      } else {
        digits.insert(1, at: 0)
        point += 1
      }
    }
    let text = "0." + (digits.isEmpty ? "0" : digits.map(String.init).joined()) + "e\(point)"
    let magnitude = Double(text) ?? number.magnitude
    return number < 0 && magnitude != 0 ? -magnitude : magnitude
  }

  /// The shortest decimal digits of a positive number, and the position of the point before them.
  private static func decimal(_ number: Double) -> (digits: [UInt8], point: Int) {
    var digits: [UInt8] = []
    var point = 0
    var exponent = 0
    var isAfterPoint = false
    let text = Array(number.description.utf8)
    for (index, byte) in text.enumerated() {
      if byte == UInt8(ascii: ".") {
        isAfterPoint = true
      } else if byte == UInt8(ascii: "e") {
        exponent = Int(String(decoding: text[(index + 1)...], as: UTF8.self)) ?? 0
        break
      } else {
        digits.append(byte - 0x30)
        if !isAfterPoint { point += 1 }
      }
    }
    let leading = digits.prefix { $0 == 0 }.count
    digits.removeFirst(leading)
    return (digits, point - leading + exponent)
  }
}
