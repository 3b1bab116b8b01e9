import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

@Suite struct ProtobufReaderTests {
  private func fields(_ bytes: [UInt8]) throws -> [String] {
    try bytes.withUnsafeBytes { buffer in
      var reader = ProtobufReader(buffer)
      var seen: [String] = []
      while let field = try reader.next() {
        seen.append("\(field.number):\(field.wireType):\(field.bits):\([UInt8](field.bytes))")
      }
      return seen
    }
  }

  @Test func readsEveryWireType() throws {
    var bytes: [UInt8] = []
    ProtobufWriter.int64(1, -1, to: &bytes)
    ProtobufWriter.double(2, 1, to: &bytes)
    ProtobufWriter.string(16, "é", to: &bytes)
    bytes += [0x2D, 1, 0, 0, 0]
    ProtobufWriter.bytes(3, [UInt8](), to: &bytes)
    #expect(
      try fields(bytes) == [
        "1:varint:18446744073709551615:[]", "2:fixed64:4607182418800017408:[]", "16:lengthDelimited:0:[195, 169]",
        "5:fixed32:1:[]", "3:lengthDelimited:0:[]",
      ])
  }

  @Test func skipsGroups() throws {
    // Group 7 contains a varint, a fixed64, a string and group 8. Field 1 follows.
    let bytes: [UInt8] =
      [0x3B, 0x08, 0x05, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1A, 1, 0x61, 0x43, 0x44, 0x25, 0, 0, 0, 0, 0x3C, 0x08, 0x07]
    #expect(try fields(bytes) == ["1:varint:7:[]"])
  }

  @Test(
    arguments: [
      [0x08], [0x08, 0x80], [0x09, 1, 2, 3], [0x0A, 2, 1], [0x0D, 1, 2, 3], [0x00, 0x01], [0x0E], [0x0F], [0x0C],
      [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
      [0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
      [0x3B], [0x3B, 0x44], [0x3B, 0x3B, 0x3C],
      [UInt8](repeating: 0x3B, count: 1000),
    ] as [[UInt8]])
  func refusesMalformedBytes(bytes: [UInt8]) {
    #expect(throws: WireError.self) { try fields(bytes) }
  }

  @Test(arguments: [0, 1, 127, 128, 129, 16383, 16384, 2_097_151, 2_097_152])
  func insertsLengthsOfMessages(count: Int) throws {
    var bytes: [UInt8] = [9]
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    ProtobufWriter.message(4, to: &bytes) { out in out.append(contentsOf: payload) }
    var expected: [UInt8] = [9]
    ProtobufWriter.bytes(4, payload, to: &expected)
    #expect(bytes == expected)
  }
}

@Suite struct EncodedValueTests {
  @Test(arguments: 0..<20)
  func treesSurviveEncoding(round: Int) throws {
    let seed = UInt64(round) + 1000
    var random = SplitMix(seed: seed)
    for _ in 0..<100 {
      let map = random.mapValue(depth: -2)
      let fields = EncodedFields(map)
      #expect(try fields.decoded() == map, "seed \(seed)")
      let again = try fields.bytes.withUnsafeBytes { try EncodedFields.canonical(fromClient: $0) }
      #expect(again == fields, "seed \(seed): \(map)")
      try fields.withMap { (encoded) throws in
        for (key, value) in map.entries {
          let found = try encoded.value(at: FieldPath(field: key))
          #expect(try found.map { try ValueCodec.decode($0) } == value, "seed \(seed)")
        }
        #expect(try encoded.value(for: "absent") == nil)
      }
    }
  }

  @Test func findsValuesInNestedMaps() throws {
    let map = MapValue([
      ("a", .map(MapValue([("b", .map(MapValue([("c", .integer(7))]))), ("x", .null)]))), ("v", .vector([1, 2])),
    ])
    try EncodedFields(map).withMap { (fields) throws in
      let found = try #require(try fields.value(at: FieldPath("a.b.c")))
      #expect(try ValueCodec.decode(found) == .integer(7))
      #expect(try fields.value(at: FieldPath("a.x.c")) == nil)
      #expect(try fields.value(at: FieldPath("a.b.d")) == nil)
      guard case .map(let vector)? = try fields.value(for: "v")?.content else { throw WireError.malformedProtobuf("v") }
      #expect(try vector.isVector)
      #expect(try vector.vectorComponents?.count == 2)
      guard case .map(let plain)? = try fields.value(for: "a")?.content else { throw WireError.malformedProtobuf("a") }
      #expect(try !plain.isVector)
    }
  }

  @Test func comparesKeysAsBytes() throws {
    let map = MapValue([("\u{E9}", .integer(1)), ("e\u{301}", .integer(2))])
    #expect(map.entries.count == 2)
    try EncodedFields(map).withMap { (fields) throws in
      #expect(try ValueCodec.decode(#require(try fields.value(for: "\u{E9}"))) == .integer(1))
      #expect(try ValueCodec.decode(#require(try fields.value(for: "e\u{301}"))) == .integer(2))
    }
  }
}

/// Tests the fields that gRPC clients may send, and their stored form.
@Suite struct CanonicalFieldsTests {
  /// Returns a `fields` entry with the given Value content.
  static func entry(_ key: [UInt8], _ value: [UInt8], tag: UInt8 = 0x12) -> [UInt8] {
    var inner: [UInt8] = []
    ProtobufWriter.bytes(1, key, to: &inner)
    ProtobufWriter.bytes(2, value, to: &inner)
    var out: [UInt8] = []
    ProtobufWriter.bytes(Int(tag >> 3), inner, to: &out)
    return out
  }

  static func value(_ value: Value) -> [UInt8] {
    var out: [UInt8] = []
    ValueCodec.append(value, to: &out)
    return out
  }

  static func canonical(_ bytes: [UInt8]) throws -> EncodedFields {
    try bytes.withUnsafeBytes { try EncodedFields.canonical(fromClient: $0) }
  }

  static func map(_ entries: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    ProtobufWriter.bytes(6, entries, to: &out)
    return out
  }

  static func array(_ elements: [[UInt8]]) -> [UInt8] {
    var inner: [UInt8] = []
    for element in elements { ProtobufWriter.bytes(1, element, to: &inner) }
    var out: [UInt8] = []
    ProtobufWriter.bytes(9, inner, to: &out)
    return out
  }

  @Test func keepsTheLastOfEqualKeys() throws {
    let bytes =
      Self.entry([0x62], Self.value(.integer(1))) + Self.entry([0x61], Self.value(.integer(2)))
      + Self.entry([0x62], Self.value(.integer(3))) + Self.entry([0x61], Self.value(.string("x")))
    #expect(try Self.canonical(bytes).decoded() == MapValue([("a", .string("x")), ("b", .integer(3))]))
  }

  @Test func equalContentHasEqualBytes() throws {
    var random = SplitMix(seed: 77)
    for _ in 0..<200 {
      let map = random.mapValue(depth: -2)
      var entries: [[UInt8]] = map.entries.map { Self.entry(Array($0.key.utf8), Self.value($0.value)) }
      entries.shuffle(using: &random)
      #expect(try Self.canonical(entries.flatMap { $0 }) == EncodedFields(map), "seed 77")
    }
  }

  @Test func skipsUnknownFieldsAndTakesTheLastMember() throws {
    let unknown: [UInt8] = [0x9A, 0x06, 1, 0]  // Field 99.
    let bytes =
      Self.entry([0x61], unknown + Self.value(.integer(1)) + Self.value(.string("s")) + unknown) + unknown
      + [0x0A, 1, 0x78]  // The document's name.
    #expect(try Self.canonical(bytes) == EncodedFields(MapValue([("a", .string("s"))])))
  }

  @Test func truncatesTimesAndUnifiesNaN() throws {
    var time: [UInt8] = []
    ProtobufWriter.message(10, to: &time) { out in
      ProtobufWriter.int64(1, -1, to: &out)
      ProtobufWriter.int64(2, 999_999_999, to: &out)
    }
    var nan: [UInt8] = []
    ProtobufWriter.double(3, Double(bitPattern: 0xFFF8_0000_0000_1234), to: &nan)
    let fields = try Self.canonical(Self.entry([0x6E], nan) + Self.entry([0x74], time))
    #expect(
      fields
        == EncodedFields(
          MapValue([
            ("n", .double(.nan)), ("t", .timestamp(Timestamp(uncheckedMicroseconds: -1))),
          ])))
  }

  @Test func storesVectorComponentsAsDoubles() throws {
    let vector = MapValue([("__type__", .string("__vector__")), ("value", .array([.integer(1), .double(.infinity)]))])
    let fields = try Self.canonical(Self.entry([0x76], Self.value(.map(vector))))
    #expect(try fields.decoded()["v"] == .vector([1, .infinity]))
  }

  static func nested(_ depth: Int) -> [UInt8] {
    (0..<depth).reduce(value(.null)) { inner, _ in map(entry([0x61], inner, tag: 0x0A)) }
  }

  static let refused: [([UInt8], ModelError)] = [
    (entry([], value(.null)), .emptyFieldName),
    (entry(Array(repeating: 0x61, count: 1501), value(.null)), .fieldNameTooLong),
    (entry(Array("__x__".utf8), value(.null)), .reservedFieldName("__x__")),
    (entry(Array("__type__".utf8), value(.null)), .reservedFieldName("__type__")),
    (entry([0x61], value(.map(MapValue([("____", .null)])))), .reservedFieldName("____")),
    (entry([0x61], value(.map(MapValue([("__type__", .string("x"))])))), .reservedFieldName("__type__")),
    (entry([0x61], value(.vector([]))), .invalidVector("it has no dimensions.")),
    (entry([0x61], value(.vector([.nan]))), .invalidVector("its components must be numbers other than NaN.")),
    (
      entry([0x61], value(.vector(Array(repeating: 0, count: 2049)))),
      .invalidVector("it has more than 2048 dimensions.")
    ),
    (
      entry([0x61], value(.map(MapValue([("__type__", .string("__vector__"))])))),
      .invalidVector("it must have exactly the fields __type__ and value, which is an array.")
    ),
    (entry([0x61], []), .unsetValue),
    (entry([0x61], array([array([])])), .nestedArray),
    (entry([0x61], nested(21)), .tooDeep(field: "a")),
    (entry([0x61], [0x9A, 0x01, 1, 0x61]), .unstorableValue),
    (entry([0x61], [0xB2, 0x01, 1, 0x61]), .unstorableValue),
    (entry([0x61], [0x8A, 0x01, 1, 0xFF]), .invalidUTF8(field: "a")),
    (entry([0x61], [0x8A, 0x01, 3, 0xED, 0xA0, 0x80]), .invalidUTF8(field: "a")),
    (entry([0xC0], value(.null)), .invalidUTF8(field: "\u{FFFD}")),
    (entry([0x61], value(.geoPoint(GeoPoint(latitude: 91, longitude: 0)))), .latitudeOutOfRange(91)),
    (entry([0x61], value(.geoPoint(GeoPoint(latitude: 0, longitude: -181)))), .longitudeOutOfRange(-181)),
    (
      entry([0x61], value(.map(MapValue([("b", .string(String(repeating: "x", count: Limits.valueBytesMax + 1)))])))),
      .valueTooLong(field: "a.b", bytesMax: Limits.valueBytesMax)
    ),
    (
      entry([0x61], value(.bytes(Array(repeating: 0, count: Limits.valueBytesMax + 1)))),
      .valueTooLong(field: "a", bytesMax: Limits.valueBytesMax)
    ),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidValues(row: Int) {
    let (bytes, error) = Self.refused[row]
    #expect(throws: WireError.model(error)) { try Self.canonical(bytes) }
  }

  @Test func refusesInvalidTimesAndReferences() {
    var early: [UInt8] = []
    ProtobufWriter.message(10, to: &early) { out in ProtobufWriter.int64(1, -62_135_596_801, to: &out) }
    #expect(throws: WireError.model(.timestampOutOfRange)) { try Self.canonical(Self.entry([0x61], early)) }
    for name in ["", "x", "projects/p/databases/d/documents", "projects/p/databases/d/documents/c"] {
      #expect(throws: WireError.self) { try Self.canonical(Self.entry([0x61], Self.value(.reference(name)))) }
    }
    let latitude = Self.value(.geoPoint(GeoPoint(latitude: .nan, longitude: 0)))
    #expect(throws: WireError.self) { try Self.canonical(Self.entry([0x61], latitude)) }
  }

  @Test func acceptsTwentyLevels() throws {
    #expect(throws: Never.self) { try Self.canonical(Self.entry([0x61], Self.nested(20))) }
    let bottomless = Self.nested(20_000)
    #expect(throws: WireError.model(.tooDeep(field: "a"))) { try Self.canonical(Self.entry([0x61], bottomless)) }
    #expect(throws: WireError.self) {
      try EncodedFields(canonical: Self.entry([0x61], bottomless)).decoded()
    }
  }

  @Test func operandsMayNestArrays() throws {
    let bytes = Self.array([Self.array([Self.value(.integer(1))])])
    let value = try bytes.withUnsafeBytes { try ValueCodec.decode(fromClient: $0, .operand) }
    #expect(value == .array([.array([.integer(1)])]))
    #expect(throws: WireError.model(.nestedArray)) {
      try bytes.withUnsafeBytes { try ValueCodec.decode(fromClient: $0, .stored) }
    }
  }

  @Test(arguments: 0..<8)
  func damagedBytesNeverTrap(round: Int) throws {
    let seed = UInt64(round) + 500
    var random = SplitMix(seed: seed)
    for _ in 0..<200 {
      var bytes = EncodedFields(random.mapValue(depth: -2)).bytes
      for _ in 0..<Int.random(in: 1...6, using: &random) where !bytes.isEmpty {
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0...3, using: &random) {
        case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[at] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 2: bytes.remove(at: at)
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: at)
        }
      }
      bytes.withUnsafeBytes { WireFuzz.protobuf($0) }
    }
  }
}

@Suite struct DocumentSizeTests {
  static let rows: [(Value, Int)] = [
    (.null, 1), (.boolean(true), 1), (.integer(7), 8), (.double(7), 8), (.timestamp(.earliest), 8),
    (.string("é"), 3), (.bytes([1, 2, 3]), 3), (.geoPoint(GeoPoint(latitude: 0, longitude: 0)), 16),
    (.reference("projects/p/databases/d/documents/users/bob"), 16 + 6 + 4),
    (.reference("projects/p/databases/d/documents/users/__id5__"), 16 + 6 + 8),
    (.array([.integer(1), .string("")]), 9), (.vector([1, 2, 3]), 24),
    (.map(MapValue([("ab", .null), ("c", .integer(1))])), 3 + 1 + 2 + 8), (.array([]), 0),
  ]

  @Test(arguments: rows.indices)
  func countsValuesAsDocumented(row: Int) throws {
    let key = try #require(DocumentKey(try ResourcePath("users/jeff/tasks/my_task_id")))
    let (value, size) = Self.rows[row]
    // In the documented example, this name has 6 + 5 + 6 + 11 + 16 bytes.
    let total = try DocumentSize.bytes(key: key, fields: EncodedFields(MapValue([("field", value)])))
    #expect(total == 44 + 32 + 6 + size)
  }

  @Test func refusesFieldsThatAreTooDeep() throws {
    let key = try #require(DocumentKey(try ResourcePath("a/b")))
    let fields = EncodedFields(canonical: CanonicalFieldsTests.entry([0x61], CanonicalFieldsTests.nested(21)))
    #expect(throws: WireError.model(.tooDeep(field: "a"))) { try DocumentSize.bytes(key: key, fields: fields) }
  }
}
