import DocumentModel
import FixtureTree
import WireFormat

/// The SplitMix64 generator, which produces the same sequence for the same seed.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &self) == 0 }

  mutating func pick<T>(_ items: [T]) -> T { items[Int.random(in: 0..<items.count, using: &self)] }
}

/// Random documents in nested collections, with names that are hard to escape.
extension SeededGenerator {
  static let names = [
    "a", "b", "users", "habits", "metrics", "$ref", "$", "$$", "$fields", "$missing", "$collections", "a.b",
    "with space",
    " ", "\"quoted\"", "back\\slash", "tab\t", "new\nline", "\u{0}", "\u{1F}", "\u{E9}", "e\u{301}", "読書", "📚👩‍👩‍👧",
    "`tick`", "*", "__id7__", "__id-3__", "__id", "value", "12", "7", "\u{2028}", "\u{7F}", "{\"x\": 1}", "projects",
    "2025-04-29T16:30:12", String(repeating: "long", count: 40), "...", "__datatype__", "path", "%2F",
  ]

  mutating func documentID() -> String {
    let id = pick(Self.names)
    return ResourceID.isReserved(id.utf8) && ResourceID.number(id.utf8) == nil ? "d" : id
  }

  /// Returns a collection ID or a field name.
  mutating func name() -> String {
    let name = pick(Self.names)
    return ResourceID.isReserved(name.utf8) ? "c" : name
  }

  static let doubles: [Double] = [
    0, -0.0, 1, -1, 0.1, 1e15, 1e16, 1e21, 1e-7, 9_007_199_254_740_992, 9_007_199_254_740_993.5, -2.5,
    .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity, -.infinity, .nan, .pi,
  ]
  static let references = [
    "projects/demo/databases/(default)/documents/users/u1", "projects/demo/databases/other/documents/users/u1",
    "projects/demo/databases/(default)/documents/projects/p/databases/d/documents/x",
    "projects/demo/databases/(default)/documents/$a/\u{E9}/b c/\"d\"", "projects/p/databases/d/documents/c/__id7__",
  ]

  mutating func value(depth: Int, inArray: Bool = false) -> Value {
    switch Int.random(in: 0...(depth >= 4 ? 9 : 13), using: &self) {
    case 0: return .null
    case 1: return .boolean(chance(2))
    case 2: return .integer(pick([0, 1, -1, .max, .min, 1 << 53, Int64.random(in: .min ... .max, using: &self)]))
    case 3: return .double(pick(Self.doubles))
    case 4: return .double(Double(bitPattern: next()))
    case 5:
      let range = Timestamp.earliest.microseconds...Timestamp.latest.microseconds
      return .timestamp(
        Timestamp(uncheckedMicroseconds: pick([0, -1, 1_500_000, Int64.random(in: range, using: &self)])))
    case 6: return .string(chance(3) ? pick(Self.names) + pick(Self.names) : pick(Self.names))
    case 7:
      return .bytes((0..<Int.random(in: 0...9, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) })
    case 8: return .reference(pick(Self.references))
    case 9:
      return .geoPoint(
        GeoPoint(
          latitude: pick([0, -0.0, 90, -45, Double.random(in: -90...90, using: &self)]),
          longitude: pick([0, -0.0, -180, Double.random(in: -180...180, using: &self)])))
    case 10:
      return .vector((0..<Int.random(in: 1...40, using: &self)).map { _ in pick([0, -0.0, 1, 0.5, .infinity, 1e300]) })
    case 11 where !inArray:
      return .array((0..<Int.random(in: 0...6, using: &self)).map { _ in value(depth: depth + 1, inArray: true) })
    default: return .map(map(depth: depth + 1))
    }
  }

  mutating func map(depth: Int) -> MapValue {
    MapValue((0..<pick([0, 1, 2, 5])).map { _ in (name(), value(depth: depth)) })
  }

  /// Returns documents in name order. Some parents are missing, and fields often share a name with a subcollection.
  mutating func tree() -> [FixtureDocument] {
    var byKey: [DocumentKey: FixtureDocument] = [:]
    for _ in 0..<Int.random(in: 0...30, using: &self) {
      var path = ResourcePath.root
      for _ in 0..<pick([1, 1, 2, 2, 3, 4]) {
        path = path.appending(name()).appending(documentID())
      }
      guard let key = DocumentKey(path) else { continue }
      byKey[key] = FixtureDocument(key: key, fields: EncodedFields(map(depth: 0)), line: 0)
    }
    return byKey.values.sorted { $0.key < $1.key }
  }
}
