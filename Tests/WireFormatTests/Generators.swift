import DocumentModel

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

  mutating func pick<C: RandomAccessCollection>(_ items: C) -> C.Element {
    items[items.index(items.startIndex, offsetBy: Int.random(in: 0..<items.count, using: &self))]
  }
}

/// Random values and fields that a document may have.
extension SeededGenerator {
  static let doubles: [Double] = [
    0, -0.0, 1, -1, 0.1, 1e21, 1e-7, Double.leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity, -.infinity,
    .nan, 9007199254740992,
    123456789.125, 1e16, 3.0e100,
  ]
  static let texts = [
    "", "a", "b", "plain text", "\u{E9}", "e\u{301}", "\"quoted\"\\", "line\nbreak\ttab\r\u{8}\u{C}", "\u{0}\u{1F}",
    "\u{2028}\u{2029}", "日本語", "😀", "</script>", "\u{7F}", String(repeating: "long ", count: 60),
  ]

  mutating func text() -> String {
    chance(2)
      ? Self.texts[Int.random(in: 0..<Self.texts.count, using: &self)]
      : String(
        (0..<Int.random(in: 0...12, using: &self))
          .map { _ in pick(Array("abcxyz01_. -")) })
  }

  mutating func key() -> String {
    let candidate = text()
    return candidate.isEmpty || ResourceID.isReserved(candidate.utf8) ? "k" : candidate
  }

  mutating func value(depth: Int = 0, inArray: Bool = false) -> Value {
    switch Int.random(in: 0...(depth >= 5 ? 8 : 12), using: &self) {
    case 0: return .null
    case 1: return .boolean(chance(2))
    case 2: return .integer(pick([0, 1, -1, .max, .min, 42, 1 << 40, Int64.random(in: .min ... .max, using: &self)]))
    case 3: return .double(chance(2) ? pick(Self.doubles) : Double(bitPattern: next()))
    case 4:
      let range = Timestamp.earliest.microseconds...Timestamp.latest.microseconds
      let count = pick([0, -1, 1_500_000, 1_000_000, Int64.random(in: range, using: &self)])
      return .timestamp(Timestamp(uncheckedMicroseconds: count))
    case 5: return .string(text())
    case 6:
      return .bytes((0..<Int.random(in: 0...40, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) })
    case 7: return .reference("projects/p/databases/(default)/documents/c/\(pick(["d", "é", "__id7__", "a b"]))")
    case 8:
      let point = GeoPoint(
        latitude: pick([0, -0.0, 90, Double.random(in: -90...90, using: &self)]),
        longitude: pick([0, -180, Double.random(in: -180...180, using: &self)]))
      return .geoPoint(point)
    case 9:
      let components = (0..<Int.random(in: 1...5, using: &self)).map { _ in Double.random(in: -1...1, using: &self) }
      return .vector(components)
    case 10 where !inArray:
      return .array((0..<Int.random(in: 0...5, using: &self)).map { _ in value(depth: depth + 1, inArray: true) })
    default: return .map(map(depth: depth + 1))
    }
  }

  mutating func map(depth: Int = 0) -> MapValue {
    MapValue((0..<Int.random(in: 0...6, using: &self)).map { _ in (key(), value(depth: depth)) })
  }
}
