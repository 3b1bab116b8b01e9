import Foundation
import Testing

@testable import HearthClient

/// Conversions between Codable types, fields and the JSON of the API.
@Suite struct DocumentCoderTests {
  struct Address: Codable, Equatable {
    var city: String
    var zip: Int?
  }

  enum Role: String, Codable { case admin, guest }

  struct Person: Codable, Equatable {
    @DocumentID var id: String?
    var name: String
    var age: Int
    var weight: Double
    var height: Float
    var small: UInt8
    var isMember: Bool
    var born: Date
    var photo: Data
    var page: URL?
    var address: Address
    var former: [Address]
    var tags: [String]
    var scores: [String: Double]
    var gaps: [Int?]
    var role: Role
    var nothing: Int?
    var place: GeoPoint
    var vector: VectorValue
    var friend: DocumentReference
    var since: Timestamp
    var anything: Value
    var moreFields: [String: Value]
  }

  @Test func roundTripsAType() throws {
    let client = detachedClient()
    let person = Person(
      id: "ann", name: "Ann", age: 41, weight: 60, height: 1.75, small: 200, isMember: true,
      born: Date(timeIntervalSince1970: 12_345.678901), photo: Data([0, 1, 255]),
      page: URL(string: "https://a.example/b"),
      address: Address(city: "Oslo", zip: nil), former: [Address(city: "Bergen", zip: 5003)], tags: [],
      scores: ["a.b": 1, "ø": 2.5], gaps: [1, nil], role: .admin, nothing: nil,
      place: GeoPoint(latitude: 59.9, longitude: 10.7), vector: [1, 2.5], friend: client.document("users/bob"),
      since: Timestamp(microseconds: -1), anything: ["x": [1, 2.0, nil]], moreFields: ["y": .null])
    let fields = try DocumentEncoder().encode(person).fields()
    #expect(fields["id"] == nil && fields["nothing"] == nil)
    #expect(fields["age"] == 41 && fields["weight"] == .double(60) && fields["small"] == 200)
    #expect(fields["born"] == .timestamp(Timestamp(microseconds: 12_345_678_901)))
    #expect(fields["address"] == ["city": "Oslo"])
    #expect(fields["gaps"] == [1, nil] && fields["role"] == "admin")
    let wire = try JSON(parsing: Value.json(fields).data)
    let read = try Value.fields(wire, in: client)
    #expect(read == fields)
    let decoded = try DocumentDecoder(reference: client.document("people/ann")).decode(Person.self, from: .map(read))
    #expect(decoded == person)
  }

  static let wire: [(Value, String)] = [
    (nil, #"{"nullValue":null}"#),
    (true, #"{"booleanValue":true}"#),
    (.integer(.min), #"{"integerValue":"-9223372036854775808"}"#),
    (.double(1), #"{"doubleValue":1.0}"#),
    (.double(-0.0), #"{"doubleValue":-0.0}"#),
    (.double(1e300), #"{"doubleValue":1e+300}"#),
    (.double(.infinity), #"{"doubleValue":"Infinity"}"#),
    (.timestamp(Timestamp(microseconds: 1_795_258_094_432_088)), #"{"timestampValue":"2026-11-21T10:48:14.432088Z"}"#),
    (.timestamp(Timestamp(microseconds: -62_135_596_800_000_000)), #"{"timestampValue":"0001-01-01T00:00:00Z"}"#),
    (
      .timestamp(Timestamp(microseconds: 253_402_300_799_999_999)), #"{"timestampValue":"9999-12-31T23:59:59.999999Z"}"#
    ),
    ("a\"\\\u{1}\n🎈", #"{"stringValue":"a\"\\\u0001\u000a🎈"}"#),
    (.bytes(Data([251, 255])), #"{"bytesValue":"+/8="}"#),
    (.geoPoint(GeoPoint(latitude: -1.5, longitude: 0)), #"{"geoPointValue":{"latitude":-1.5,"longitude":0.0}}"#),
    ([1, [:]], #"{"arrayValue":{"values":[{"integerValue":"1"},{"mapValue":{"fields":{}}}]}}"#),
    (
      .vector([1]),
      #"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"#
        + #""value":{"arrayValue":{"values":[{"doubleValue":1.0}]}}}}}"#
    ),
  ]

  @Test(arguments: wire) func convertsValuesToJSON(value: Value, json: String) throws {
    #expect(String(decoding: value.json.data, as: UTF8.self) == json)
    #expect(try Value(json: JSON(parsing: Data(json.utf8)), in: detachedClient()) == value)
  }

  @Test func missingMembersHaveDefaults() throws {
    for (json, value) in [
      (#"{"arrayValue":{}}"#, [] as Value), (#"{"mapValue":{}}"#, [:]), (#"{"doubleValue":3}"#, 3.0),
      (#"{"geoPointValue":{}}"#, .geoPoint(GeoPoint(latitude: 0, longitude: 0))),
      (#"{"timestampValue":"2026-11-21T10:48:14.5Z"}"#, .timestamp(Timestamp(microseconds: 1_795_258_094_500_000))),
      (#"{"stringValue":"\ud83c\udf88\u00f8"}"#, "🎈ø"),
    ] { #expect(try Value(json: JSON(parsing: Data(json.utf8)), in: detachedClient()) == value, "\(json)") }
    let nan = try Value(json: JSON(parsing: Data(#"{"doubleValue":"NaN"}"#.utf8)), in: detachedClient())
    if case .double(let number) = nan { #expect(number.isNaN) } else { Issue.record("\(nan)") }
  }

  @Test(arguments: [
    "", "{", "[1,]", "{\"a\":}", "tru", "\"\\ud800x\"", "1 2", "-", String(repeating: "[", count: 5000),
  ])
  func rejectsInvalidJSON(text: String) {
    #expect(throws: HearthClientError.self) { try JSON(parsing: Data(text.utf8)) }
  }

  struct Numbers: Codable, Equatable {
    var exact: Int
    var double: Double
  }

  @Test func numbersMustFitTheirTypes() throws {
    let decoder = DocumentDecoder(reference: nil)
    #expect(try decoder.decode(Numbers.self, from: ["exact": 2.0, "double": 3]) == Numbers(exact: 2, double: 3))
    #expect(throws: DecodingError.self) { try decoder.decode(Numbers.self, from: ["exact": 2.5, "double": 3]) }
    #expect(throws: DecodingError.self) { try decoder.decode([UInt8].self, from: [256]) }
    #expect(throws: EncodingError.self) { try DocumentEncoder().encode(["a": UInt64.max]) }
    #expect(throws: EncodingError.self) { try DocumentEncoder().encode([1]).fields() }
  }

  @Test func errorsNameThePathAndTheTypes() throws {
    let decoder = DocumentDecoder(reference: detachedClient().document("people/ann"))
    do {
      _ = try decoder.decode([String: [Address]].self, from: ["former": [["city": "Oslo"], ["city": 1]]])
      Issue.record("expected an error")
    } catch DecodingError.typeMismatch(_, let context) {
      #expect(context.codingPath.map(\.stringValue) == ["people/ann", "former", "1", "city"])
      #expect(context.debugDescription == "Expected String, found an integer.")
    }
  }

  struct Message: Codable {
    var text: String
    @ServerTimestamp var sentAt: Date?
    var inner: Inner
    struct Inner: Codable { @ServerTimestamp var at: Date? }
  }

  @Test func serverTimestampsAreTransforms() throws {
    let message = Message(text: "hello", sentAt: nil, inner: .init(at: nil))
    let encoded = try DocumentEncoder().encode(message)
    #expect(encoded.value == ["text": "hello", "inner": [:]])
    #expect(Set(encoded.serverTimestamps) == ["sentAt", "inner.at"])
    let later = try DocumentEncoder().encode(
      Message(text: "", sentAt: Date(timeIntervalSince1970: 1), inner: .init(at: nil)))
    #expect(try later.fields()["sentAt"] == .timestamp(Timestamp(microseconds: 1_000_000)))
    let read = try DocumentDecoder(reference: nil).decode(Message.self, from: encoded.value)
    #expect(read.sentAt == nil)
    #expect(throws: EncodingError.self) { try DocumentEncoder().encode(["list": [message]]) }
  }

  @Test(arguments: [
    ("a", ["a"], "a"), ("a.b", ["a", "b"], "a.b"), ("`a.b`.c", ["a.b", "c"], "`a.b`.c"),
    ("Calorie intake", ["Calorie intake"], "`Calorie intake`"),
    ("meals.`Calorie intake`", ["meals", "Calorie intake"], "meals.`Calorie intake`"),
    (#"`a\`b\\c`"#, [#"a`b\c"#], #"`a\`b\\c`"#), ("1st", ["1st"], "`1st`"), ("größe", ["größe"], "`größe`"),
    ("a..b", ["a", "", "b"], "a.``.b"),
  ])
  func parsesFieldPaths(text: String, segments: [String], written: String) {
    let path = FieldPath(stringLiteral: text)
    #expect(path.segments == segments)
    #expect(path.description == written)
  }

  @Test func roundTripsTimestamps() {
    for microseconds in [
      0, 1, -1, 951_782_399_999_999, 951_782_400_000_000, 4_107_542_400_000_000, -2_208_988_800_000_001,
    ] {
      let timestamp = Timestamp(microseconds: Int64(microseconds))
      #expect(Timestamp(text: timestamp.description) == timestamp, "\(timestamp)")
    }
    #expect(Timestamp(microseconds: 951_782_400_000_000).description == "2000-02-29T00:00:00Z")
  }
}
