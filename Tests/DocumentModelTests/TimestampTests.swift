import DocumentModel
import Testing

@Suite struct TimestampTests {
  /// The RFC 3339 text to read, its microseconds, and the text printed for them.
  static let rows: [(read: String, microseconds: Int64, printed: String)] = [
    ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
    ("1970-01-01T00:00:00.5Z", 500_000, "1970-01-01T00:00:00.500Z"),
    ("1970-01-01T00:00:00.000001Z", 1, "1970-01-01T00:00:00.000001Z"),
    ("1970-01-01T00:00:00.123456789Z", 123_456, "1970-01-01T00:00:00.123456Z"),
    ("1969-12-31T23:59:59.999999999Z", -1, "1969-12-31T23:59:59.999999Z"),
    ("1970-01-01T02:00:00+02:00", 0, "1970-01-01T00:00:00Z"),
    ("1969-12-31T18:30:00-05:30", 0, "1970-01-01T00:00:00Z"),
    ("2000-02-29T12:34:56Z", 951_827_696_000_000, "2000-02-29T12:34:56Z"),
    ("2025-03-27T14:30:00z", 1_743_085_800_000_000, "2025-03-27T14:30:00Z"),
    ("0001-01-01T00:00:00Z", Timestamp.earliest.microseconds, "0001-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.999999Z", Timestamp.latest.microseconds, "9999-12-31T23:59:59.999999Z"),
  ]

  @Test(arguments: rows.indices)
  func readsAndPrints(row: Int) throws {
    let (text, microseconds, printed) = Self.rows[row]
    let moment = try #require(Timestamp(rfc3339: text.utf8))
    #expect(moment.microseconds == microseconds)
    #expect(moment.description == printed)
    #expect(try Timestamp(seconds: moment.seconds, nanos: moment.nanos) == moment)
  }

  @Test(arguments: [
    "", "1970-01-01", "1970-01-01T00:00:00", "1970-1-01T00:00:00Z", "1970-13-01T00:00:00Z", "1970-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z", "1970-01-00T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z",
    "1970-01-01T00:00:60Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00.1234567890Z", "1970-01-01T00:00:00+0200",
    "1970-01-01T00:00:00Zx", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    "10000-01-01T00:00:00Z", "+970-01-01T00:00:00Z",
  ])
  func refusesMalformedText(text: String) {
    #expect(Timestamp(rfc3339: text.utf8) == nil)
  }

  @Test func refusesSecondsAndNanosOutOfRange() {
    #expect(throws: ModelError.timestampOutOfRange) { try Timestamp(seconds: -62_135_596_801, nanos: 0) }
    #expect(throws: ModelError.timestampOutOfRange) { try Timestamp(seconds: 253_402_300_800, nanos: 0) }
    #expect(throws: ModelError.timestampOutOfRange) { try Timestamp(seconds: 0, nanos: -1) }
    #expect(throws: ModelError.timestampOutOfRange) { try Timestamp(seconds: 0, nanos: 1_000_000_000) }
    #expect(throws: ModelError.timestampOutOfRange) { try Timestamp(seconds: .max, nanos: 0) }
  }

  @Test func reportsTruncatedNanoseconds() {
    var remainder = 0
    _ = Timestamp(rfc3339: "1970-01-01T00:00:00.000001002Z".utf8, nanosRemainder: &remainder)
    #expect(remainder == 2)
  }

  /// The texts of the latest dates are used again for times of the same dates, and for no other one.
  @Test func aDateThatIsUsedAgainGivesTheSameText() {
    var moments = Self.rows.map { Timestamp(uncheckedMicroseconds: $0.microseconds) }
    for day in Int64(-3)..<3 {
      for offset in [0, 1, 86_399_999_999] as [Int64] {
        moments.append(Timestamp(uncheckedMicroseconds: day * 86_400_000_000 + offset))
      }
    }
    var date = Timestamp.RFC3339Date()
    for moment in moments.flatMap({ [$0, $0, moments[0], moments[1], $0] }) {
      let text = String(unsafeUninitializedCapacity: Timestamp.rfc3339CountMax) { buffer in
        buffer.baseAddress.map { moment.storeRFC3339(at: $0, &date) } ?? 0
      }
      #expect(text == moment.description)
    }
  }

  @Test func everyDayOfFourCenturiesReadsBack() {
    for day in Int64(-25_000)..<121_097 {
      let moment = Timestamp(uncheckedMicroseconds: day * 86_400_000_000 + 1_000)
      guard Timestamp(rfc3339: moment.description.utf8) == moment else {
        Issue.record("day \(day): \(moment)")
        return
      }
    }
  }
}

@Suite struct LimitsTests {
  @Test func limitsHaveTheDocumentedValues() {
    #expect(Limits.documentBytesMax == 1_048_572)
    #expect(Limits.valueBytesMax == 1_048_487)
    #expect(Limits.requestBytesMax == 10_485_760)
    #expect(Limits.documentNameBytesMax == 6144)
    #expect(Limits.nestingDepthMax == 20)
  }
}

@Suite struct DatabaseIDTests {
  @Test(arguments: ["", ".", "..", "a/b", "é", "a b", "a\u{0}", String(repeating: "x", count: 101)])
  func refusesPartsUnusableInNames(part: String) {
    #expect(DatabaseID(project: part) == nil)
    #expect(DatabaseID(project: "p", database: part) == nil)
  }

  @Test func printsTheNameOfTheDocumentsRoot() {
    #expect(DatabaseID(project: "p")?.documentsRoot == "projects/p/databases/(default)/documents")
  }
}
