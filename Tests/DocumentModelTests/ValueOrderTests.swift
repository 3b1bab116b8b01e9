import DocumentModel
import Testing

/// The total order of values (firestore-api.md, section 3).
@Suite struct ValueOrderTests {
  static let root = "projects/p/databases/d/documents"

  /// One row per equality class, in ascending order.
  static let ladder: [[Value]] = [
    [.null], [bson(.minKey, .null)],
    [.boolean(false)], [.boolean(true)],
    [.double(.nan), .double(-.nan), bson(.decimal128, .string("NaN"))],
    [.double(-.infinity)], [.double(-.greatestFiniteMagnitude)],
    [.integer(.min), .double(-0x1p63)], [.integer(.min + 1)],
    [.integer(-1), .double(-1)], [.double(-0.5)], [.double(-.leastNonzeroMagnitude)],
    [.integer(0), .double(0), .double(-0.0)],
    [.double(.leastNonzeroMagnitude)], [.double(0.5)],
    [.integer(1), .double(1), bson(.int32, .integer(1)), bson(.decimal128, .string("1.0"))],
    [.double(1.5), bson(.decimal128, .string("15e-1"))], [.integer(2)],
    // Beyond 2^53 not every integer is a double. The comparison is still exact.
    [.integer(1 << 53), .double(0x1p53)], [.integer(1 << 53 + 1)], [.integer(1 << 53 + 2), .double(0x1p53 + 2)],
    [.integer(.max - 1)], [.integer(.max)], [.double(0x1p63)], [.double(.greatestFiniteMagnitude)],
    [.double(.infinity), bson(.decimal128, .string("Infinity"))],
    [.timestamp(.earliest)], [.timestamp(Timestamp(uncheckedMicroseconds: -1))],
    [.timestamp(Timestamp(uncheckedMicroseconds: 0))], [.timestamp(.latest)],
    [bsonTime(1, 2)], [bsonTime(1, 3)], [bsonTime(2, 0)],
    // By UTF-8 bytes: canonical equivalence is ignored, and U+FF5E precedes U+1F600.
    [.string("")], [.string("\u{0}")], [.string("A")], [.string("a")], [.string("aa")], [.string("b")],
    [.string("e\u{301}")], [.string("\u{E9}")], [.string("\u{FF5E}")], [.string("😀")],
    [.bytes([])], [.bytes([0])], [.bytes([0, 1])], [.bytes([1])], [.bytes([0xFF])],
    [bson(.binary, .bytes([1]))], [bson(.binary, .bytes([1, 0]))], [bson(.binary, .bytes([2]))],
    // By segment. Numeric IDs come first, by number.
    [.reference("projects/o/databases/d/documents/c/z")],
    [.reference("\(root)/c/__id-5__")], [.reference("\(root)/c/__id7__")], [.reference("\(root)/c/__id12__")],
    [.reference("\(root)/c/12")], [.reference("\(root)/c/a")], [.reference("\(root)/c/a/x/y")],
    [.reference("\(root)/c/a-")], [.reference("\(root)/c/b")], [.reference("\(root)/d/a")],
    [bson(.objectID, .string("0123456789abcdef01234567"))], [bson(.objectID, .string("0123456789abcdef01234568"))],
    // Damaged bytes can hold NaN.
    [.geoPoint(GeoPoint(latitude: .nan, longitude: .nan)), .geoPoint(GeoPoint(latitude: -.nan, longitude: .nan))],
    [.geoPoint(GeoPoint(latitude: .nan, longitude: 0))], [.geoPoint(GeoPoint(latitude: -90, longitude: .nan))],
    [.geoPoint(GeoPoint(latitude: -90, longitude: 180))], [.geoPoint(GeoPoint(latitude: 0, longitude: -1))],
    [.geoPoint(GeoPoint(latitude: 0, longitude: 0)), .geoPoint(GeoPoint(latitude: -0.0, longitude: 0))],
    [.geoPoint(GeoPoint(latitude: 0, longitude: 1))], [.geoPoint(GeoPoint(latitude: 1, longitude: -180))],
    [regex("a", "i")], [regex("a", "s")], [regex("b", "")],
    [.array([])], [.array([.null])], [.array([.integer(1)]), .array([.double(1)])],
    [.array([.integer(1), .null])], [.array([.integer(2)])], [.array([.string("")])], [.array([.map(MapValue())])],
    // By length, then by components.
    [.vector([9])], [.vector([1, 2])], [.vector([1, 3])], [.vector([0, 0, 0])],
    // By key, then value, then the next key. A prefix comes first.
    [.map(MapValue())], [.map(MapValue([("a", .integer(1))]))],
    [.map(MapValue([("b", .null), ("a", .integer(1))]))], [.map(MapValue([("a", .integer(2))]))],
    [.map(MapValue([("aa", .null)]))], [.map(MapValue([("b", .null)]))],
    [bson(.maxKey, .null)],
  ]

  static func bson(_ type: BSONType, _ content: Value) -> Value { .map(MapValue([(type.rawValue, content)])) }

  static func bsonTime(_ seconds: Int64, _ increment: Int64) -> Value {
    bson(.timestamp, .map(MapValue([("seconds", .integer(seconds)), ("increment", .integer(increment))])))
  }

  static func regex(_ pattern: String, _ options: String) -> Value {
    bson(.regex, .map(MapValue([("pattern", .string(pattern)), ("options", .string(options))])))
  }

  @Test(arguments: ladder.indices)
  func everyPairComparesAsListed(low: Int) {
    for high in Self.ladder.indices {
      for a in Self.ladder[low] {
        for b in Self.ladder[high] {
          #expect(Value.compare(a, b) == Ordering(low, high), "\(a) compared with \(b)")
          #expect(Value.compare(b, a) == Ordering(high, low), "\(b) compared with \(a)")
        }
      }
    }
  }

  @Test func valuesAreEqualIfTheirStoredFormsAre() {
    let different: [(Value, Value)] = [
      (.integer(1), .double(1)), (.double(0), .double(-0.0)), (.string("\u{E9}"), .string("e\u{301}")),
      (.map(MapValue([("\u{E9}", .null)])), .map(MapValue([("e\u{301}", .null)]))), (.array([]), .map(MapValue())),
      (.string("x"), .reference("x")),
    ]
    for (a, b) in different {
      #expect(a != b)
      #expect(Set([a, b]).count == 2)
    }
    #expect(Value.double(.nan) == .double(Double(bitPattern: 0xFFF8_0000_0000_0001)))
    #expect(Set([Value.double(.nan), .double(Double(bitPattern: 0xFFF8_0000_0000_0001))]).count == 1)
  }

  @Test func valuesStaySmall() {
    #expect(MemoryLayout<Value>.size <= 24)
  }
}
