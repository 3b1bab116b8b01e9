import Basics

/// A point in time: whole microseconds since 1970-01-01T00:00:00Z, in the years 1 to 9999.
///
/// The service keeps microseconds. Finer parts are truncated toward the past (firestore-api.md, section 7.3).
package struct Timestamp: Hashable, Comparable, Sendable {
  /// Microseconds since 1970; negative for earlier times.
  package let microseconds: Int64

  /// 0001-01-01T00:00:00Z.
  package static let earliest = Timestamp(uncheckedMicroseconds: -62_135_596_800_000_000)
  /// 9999-12-31T23:59:59.999999Z.
  package static let latest = Timestamp(uncheckedMicroseconds: 253_402_300_799_999_999)

  /// Wraps a number that is known to be in range, such as a commit version.
  package init(uncheckedMicroseconds microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// Creates a timestamp from the two numbers on the wire. Nanoseconds are truncated to microseconds.
  /// - Throws: ``ModelError/timestampOutOfRange`` if the year is not 1 to 9999 or `nanos` is not 0 to 999,999,999.
  package init(seconds: Int64, nanos: Int32) throws(ModelError) {
    guard (-62_135_596_800...253_402_300_799).contains(seconds), (0...999_999_999).contains(nanos) else {
      throw .timestampOutOfRange
    }
    microseconds = seconds * 1_000_000 + Int64(nanos / 1000)
  }

  /// The whole seconds on the wire, rounded toward the past.
  package var seconds: Int64 {
    let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder < 0 ? quotient - 1 : quotient
  }

  /// The rest of the second in nanoseconds, from 0 to 999,999,000.
  package var nanos: Int32 { Int32(microseconds - seconds * 1_000_000) * 1000 }

  package static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }
}

extension Timestamp {
  /// Parses an RFC 3339 time: `2025-03-27T14:30:00[.1 to 9 digits](Z|±hh:mm)`.
  ///
  /// Returns `nil` for any other text, and for years outside 1 to 9999. If `nanosRemainder` is given, it receives
  /// the truncated nanoseconds, so that the caller can reject them.
  package init?(rfc3339 text: some Collection<UInt8>, nanosRemainder: UnsafeMutablePointer<Int>? = nil) {
    var bytes = text.makeIterator()
    var pending: UInt8?
    func next() -> UInt8? {
      defer { pending = nil }
      return pending ?? bytes.next()
    }
    func digits(_ count: Int) -> Int? {
      var value = 0
      for _ in 0..<count {
        guard let byte = next(), (0x30...0x39).contains(byte) else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      return value
    }
    func expect(_ allowed: Unicode.Scalar...) -> Bool {
      guard let byte = next() else { return false }
      return allowed.contains { UInt8(ascii: $0) == byte }
    }
    guard let year = digits(4), expect("-"), let month = digits(2), expect("-"), let day = digits(2),
      expect("T", "t", " "), let hour = digits(2), expect(":"), let minute = digits(2), expect(":"),
      let second = digits(2)
    else { return nil }
    guard (1...12).contains(month), day >= 1, day <= CivilDate.days(inMonth: month, of: year),
      hour <= 23, minute <= 59, second <= 59
    else { return nil }
    var nanos = 0
    var zone = next()
    if zone == UInt8(ascii: ".") {
      var digitCount = 0
      zone = next()
      while let byte = zone, (0x30...0x39).contains(byte) {
        guard digitCount < 9 else { return nil }
        nanos = nanos * 10 + Int(byte - 0x30)
        digitCount += 1
        zone = next()
      }
      guard digitCount > 0 else { return nil }
      for _ in digitCount..<9 { nanos *= 10 }
    }
    var offsetMinutes = 0
    switch zone {
    case UInt8(ascii: "Z"), UInt8(ascii: "z"): break
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      guard let hours = digits(2), expect(":"), let minutes = digits(2), hours <= 23, minutes <= 59 else { return nil }
      offsetMinutes = (hours * 60 + minutes) * (zone == UInt8(ascii: "-") ? -1 : 1)
    default: return nil
    }
    guard next() == nil else { return nil }
    let days = CivilDate(year: year, month: month, day: day).daysSince1970
    let total = Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second) - Int64(offsetMinutes) * 60
    guard let moment = try? Timestamp(seconds: total, nanos: Int32(nanos)) else { return nil }
    nanosRemainder?.pointee = nanos % 1000
    self = moment
  }

  /// The maximum length of the time in RFC 3339, `2025-03-27T14:30:00.123456Z`.
  package static let rfc3339CountMax = 27

  /// Appends the time in RFC 3339, in UTC, with 0, 3 or 6 fraction digits: the fewest that are exact.
  ///
  /// Source: firestore-api.md, section 1.5. Cost: no allocation except the growth of `out`.
  package func appendRFC3339(to out: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: Self.rfc3339CountMax, alignment: 1) { text in
      guard let start = text.baseAddress else { return }
      var date = RFC3339Date()
      out.append(raw: UnsafeRawBufferPointer(start: start, count: storeRFC3339(at: start, &date)))
    }
  }

  /// The texts of the two latest dates. Times of one response often have the same date, but those of documents and
  /// those in their fields may differ.
  package struct RFC3339Date: Sendable {
    private var days = Int.min
    /// The first 8 of the 10 characters, and the last 8 of them.
    private var text: (UInt64, UInt64) = (0, 0)
    private var formerDays = Int.min
    private var formerText: (UInt64, UInt64) = (0, 0)

    package init() {}

    /// Stores the text of a date.
    @inline(__always)
    fileprivate mutating func store(_ wanted: Int, at start: UnsafeMutableRawPointer) {
      if days != wanted {
        swap(&days, &formerDays)
        swap(&text, &formerText)
      }
      if days != wanted {
        let date = CivilDate(daysSince1970: wanted)
        let year = UInt32(truncatingIfNeeded: date.year)
        Timestamp.put(year / 100, at: start)
        Timestamp.put(year, at: start + 2)
        Timestamp.put(UInt32(truncatingIfNeeded: date.month), at: start + 5)
        Timestamp.put(UInt32(truncatingIfNeeded: date.day), at: start + 8)
        text = (start.loadUnaligned(as: UInt64.self), start.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
        days = wanted
      } else {
        start.storeBytes(of: text.0, as: UInt64.self)
        start.storeBytes(of: text.1, toByteOffset: 2, as: UInt64.self)
      }
    }
  }

  /// Stores the last two decimal digits of a number.
  @inline(__always)
  private static func put(_ value: UInt32, at text: UnsafeMutableRawPointer) {
    let pair = UnsafeRawPointer(digitPairs.utf8Start).loadUnaligned(
      fromByteOffset: 2 &* Int(value % 100), as: UInt16.self)
    text.storeBytes(of: pair, as: UInt16.self)
  }

  /// Stores the time as ``appendRFC3339(to:)`` appends it, and returns its length, at most ``rfc3339CountMax``.
  /// `date` is the date of an earlier time.
  package func storeRFC3339(at text: UnsafeMutableRawPointer, _ date: inout RFC3339Date) -> Int {
    let seconds = self.seconds
    let (days, inDay) = CivilDate.split(Int(seconds))
    // Every response contains two or more times, so each pair of digits is one load and one store.
    text.copyMemory(from: Self.rfc3339Marks.utf8Start, byteCount: Self.rfc3339CountMax)
    date.store(days, at: text)
    let second = UInt32(truncatingIfNeeded: inDay)
    let minute = second / 60
    Self.put(minute / 60, at: text + 11)
    Self.put(minute % 60, at: text + 14)
    Self.put(second % 60, at: text + 17)
    let fraction = UInt32(truncatingIfNeeded: microseconds - seconds * 1_000_000)
    guard fraction != 0 else {
      text.storeBytes(of: UInt8(ascii: "Z"), toByteOffset: 19, as: UInt8.self)
      return 20
    }
    Self.put(fraction / 10_000, at: text + 20)
    Self.put(fraction / 100, at: text + 22)
    guard fraction.isMultiple(of: 1000) else {
      Self.put(fraction, at: text + 24)
      return 27
    }
    text.storeBytes(of: UInt8(ascii: "Z"), toByteOffset: 23, as: UInt8.self)
    return 24
  }

  /// A time of the maximum length, with its marks.
  private static let rfc3339Marks: StaticString = "0000-00-00T00:00:00.000000Z"
  /// The numbers from 0 to 99, two digits each.
  private static let digitPairs: StaticString =
    """
    00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748\
    49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697\
    9899
    """
}

extension Timestamp: CustomStringConvertible {
  package var description: String {
    var bytes: [UInt8] = []
    appendRFC3339(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
