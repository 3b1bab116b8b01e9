public import Foundation

/// A time with microsecond precision, as documents store it. `Date` loses microseconds far from the present.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// Microseconds since 1970-01-01T00:00:00Z.
  public var microseconds: Int64

  /// The time `microseconds` after 1970.
  public init(microseconds: Int64) { self.microseconds = microseconds }

  /// The time of a date, rounded to microseconds.
  public init(_ date: Date) {
    let scaled = (date.timeIntervalSince1970 * 1e6).rounded()
    microseconds = Int64(exactly: scaled) ?? (scaled < 0 ? .min : .max)
  }

  /// The time as a `Date`.
  public var date: Date { Date(timeIntervalSince1970: Double(microseconds) / 1e6) }

  public static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }
}

// MARK: - Text

extension Timestamp: CustomStringConvertible {
  private static let secondsPerDay: Int64 = 86_400

  /// The time in RFC 3339 format, such as `2026-11-21T10:48:14.432088Z`.
  public var description: String {
    let seconds = Self.floorDivide(microseconds, 1_000_000)
    let days = Self.floorDivide(seconds, Self.secondsPerDay)
    let (year, month, day) = Self.civil(days)
    let secondOfDay = seconds - days * Self.secondsPerDay
    let fraction = microseconds - seconds * 1_000_000
    let time = [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60]
      .map { Self.padded($0, 2) }.joined(separator: ":")
    let date = [Self.padded(year, 4), Self.padded(month, 2), Self.padded(day, 2)].joined(separator: "-")
    return "\(date)T\(time)\(fraction == 0 ? "" : "." + Self.padded(fraction, 6))Z"
  }

  /// Parses RFC 3339 in UTC, as a server writes it, with up to nine fraction digits. Digits below a microsecond are
  /// dropped. Returns `nil` for other formats.
  init?(text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z") else { return nil }
    func number(_ range: Range<Int>) -> Int64? {
      var value: Int64 = 0
      for byte in bytes[range] {
        guard byte >= 0x30, byte <= 0x39 else { return nil }
        value = value * 10 + Int64(byte - 0x30)
      }
      return value
    }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
      let minute = number(14..<16), let second = number(17..<19), 1...12 ~= month, 1...31 ~= day
    else { return nil }
    var fraction: Int64 = 0
    if bytes[19] == UInt8(ascii: ".") {
      let digits = 20..<(bytes.count - 1)
      guard digits.count <= 9, let value = number(digits) else { return nil }
      fraction = value
      for _ in digits.count..<9 { fraction *= 10 }
      fraction /= 1000
    }
    let days = Self.days(year, month, day)
    microseconds = (days * Self.secondsPerDay + hour * 3600 + minute * 60 + second) * 1_000_000 + fraction
  }

  private static func padded(_ number: Int64, _ count: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits
  }

  private static func floorDivide(_ a: Int64, _ b: Int64) -> Int64 { a >= 0 ? a / b : -((b - 1 - a) / b) }

  /// Returns the days from 1970 to a date. Counts years from 1 March, so that a leap day is the last of its year.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let marchYear = month > 2 ? year : year - 1
    let era = floorDivide(marchYear, 400)
    let yearOfEra = marchYear - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let year = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    return (year + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }
}

extension Timestamp: Codable {
  /// Decodes a timestamp value of a document. With other decoders, decodes a string.
  /// - Throws: `DecodingError` if the value is not a timestamp.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let timestamp = Timestamp(text: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "Expected an RFC 3339 timestamp in UTC.")
    }
    self = timestamp
  }

  /// Encodes a timestamp value of a document. With other encoders, encodes a string.
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
