package import DocumentModel

/// Random valid IDs, values and fields, with many edge cases.
extension SplitMix {
  private static let doubles: [Double] = [
    0, -0.0, 1, -1, 0.1, 2.5, 0x1p53, 0x1p53 + 2, -0x1p53, 0x1p63, -0x1p63, 0x1p62, 1e300, -1e300, .infinity,
    -.infinity, .nan, .leastNonzeroMagnitude, -.leastNonzeroMagnitude, .greatestFiniteMagnitude, .pi, 1e15, 1e16, 1e21,
    1e-7, 3e100, 123_456_789.125,
  ]
  private static let integers: [Int64] = [
    0, 1, -1, 2, 1 << 53, 1 << 53 + 1, 1 << 53 - 1, -(1 << 53) - 1, -(1 << 53), .max, .max - 1, .min, .min + 1, 1 << 62,
    1 << 62 + 1, 255, 256,
  ]
  private static let texts = [
    "", "a", "ab", "b", "\u{0}", "a\u{0}", "a\u{0}b", "a\u{1}", "a\u{2}", "\u{E9}", "e\u{301}", "\u{FFFD}", "\u{FFFF}",
    "\u{1F600}", "z", "\u{7F}", "\u{80}", "\"quoted\"\\", "line\nbreak\ttab\r\u{8}\u{C}", "\u{0}\u{1F}", "</script>",
    "\u{2028}\u{2029}", "plain text",
  ]
  private static let ids = [
    "a", "b", "ab", "a\u{0}", "a\u{0}b", "a\u{1}", "A", "7", "12", "__id7__", "__id12__", "__id-2__", "__id255__",
    "__id256__", "__id-9223372036854775808__", "__id9223372036854775807__", "__id", "__id1_", "_id1__", "\u{E9}",
    "e\u{301}", "\u{1F600}", "x y", "a:b", "a%2Fb", "\u{7F}", "\u{10FFFF}",
  ]

  /// Returns a double: an edge case, a small number, or random bits.
  package mutating func double() -> Double {
    switch Int.random(in: 0..<3, using: &self) {
    case 0: pick(Self.doubles)
    case 1: Double(Int.random(in: -40...40, using: &self)) / 4
    default: Double(bitPattern: next())
    }
  }

  /// Returns an integer: an edge case, a small number, or any number.
  package mutating func integer() -> Int64 {
    switch Int.random(in: 0..<3, using: &self) {
    case 0: pick(Self.integers) &+ Int64.random(in: -2...2, using: &self)
    case 1: Int64.random(in: -10...10, using: &self)
    default: Int64(bitPattern: next() >> UInt64.random(in: 0...63, using: &self))
    }
  }

  /// Returns a text: an edge case, or a few letters. Rarely longer than the indexed length.
  package mutating func text() -> String {
    switch Int.random(in: 0..<20, using: &self) {
    case 0:
      return String(repeating: pick(["a", "\u{0}", "\u{E9}"]), count: pick([740, 1498, 1499, 1500, 1501]))
        + pick(["", "x", "y"])
    case 1..<10: return pick(Self.texts)
    default:
      return String(
        String.UnicodeScalarView(
          (0..<Int.random(in: 0...4, using: &self)).map { _ in
            pick(Array("ab\u{0}\u{1}z\u{E9}".unicodeScalars))
          }))
    }
  }

  /// Returns a document ID: an edge case, a short ID, or one longer than a key of the storage engine.
  package mutating func documentID() -> String {
    switch Int.random(in: 0..<12, using: &self) {
    case 0: String(repeating: pick(["k", "\u{E9}"]), count: pick([505, 600, 740])) + pick(["", "1", "2"])
    case 1..<7: pick(Self.ids)
    default: "d\(Int.random(in: 0...9, using: &self))"
    }
  }

  /// Returns a valid field name.
  package mutating func fieldName() -> String {
    let name = chance(oneIn: 4) ? text() : pick(["a", "b", "c", "n", "list"])
    return name.isEmpty || ResourceID.isReserved(name.utf8) || name.utf8.count > Limits.fieldNameBytesMax ? "f" : name
  }

  /// Returns any valid value. Arrays and maps nest to a depth of 3. A negative `depth` lets them nest deeper.
  package mutating func value(depth: Int = 0, inArray: Bool = false) -> Value {
    switch Int.random(in: 0...(depth >= 3 ? 9 : 12), using: &self) {
    case 0: return .null
    case 1: return .boolean(chance(oneIn: 2))
    case 2: return .integer(integer())
    case 3: return .double(double())
    case 4:
      return .timestamp(
        Timestamp(
          uncheckedMicroseconds: pick([
            0, -1, 1, Timestamp.earliest.microseconds, Timestamp.latest.microseconds,
            Int64.random(in: Timestamp.earliest.microseconds...Timestamp.latest.microseconds, using: &self),
          ])))
    case 5, 6: return .string(text())
    case 7:
      return .bytes((0..<Int.random(in: 0...4, using: &self)).map { _ in pick([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]) })
    case 8:
      return .reference(
        "projects/\(pick(["p", "q"]))/databases/\(pick(["(default)", "x"]))/documents/\(pick(["c", "cc"]))/\(pick(Self.ids))"
          + (chance(oneIn: 3) ? "/s/\(pick(Self.ids))" : ""))
    case 9:
      return .geoPoint(
        GeoPoint(
          latitude: pick([0, -0.0, 90, -90, Double.random(in: -90...90, using: &self)]),
          longitude: pick([0, -0.0, 180, -180, Double.random(in: -180...180, using: &self)])))
    case 10: return .vector((0..<Int.random(in: 1...5, using: &self)).map { _ in pick([0, -0.0, 1, -1, 0.5]) })
    case 11 where !inArray:
      return .array((0..<Int.random(in: 0...4, using: &self)).map { _ in value(depth: depth + 1, inArray: true) })
    default: return .map(mapValue(depth: depth + 1))
    }
  }

  /// Returns any valid fields.
  package mutating func mapValue(depth: Int = 0) -> MapValue {
    MapValue((0..<Int.random(in: 0...4, using: &self)).map { _ in (fieldName(), value(depth: depth)) })
  }

  /// Returns a value close to another one, so that comparisons reach the first difference, or find none.
  package mutating func variation(of value: Value) -> Value {
    switch value {
    case .integer(let number):
      switch Int.random(in: 0..<3, using: &self) {
      case 0: return .double(Double(number))
      case 1: return .double(pick([Double(number).nextUp, Double(number).nextDown]))
      default: return .integer(number &+ pick([-1, 0, 1]))
      }
    case .double(let number):
      if let exact = Int64(exactly: number) { return .integer(exact &+ pick([-1, 0, 1])) }
      return .double(pick([number, -number, number.nextUp, number.nextDown]))
    case .string(let text): return .string(text + pick(["", "\u{0}", "\u{1}", "a", "\u{1F600}"]))
    case .bytes(let bytes): return .bytes(bytes + pick([[], [0], [1], [0xFF]]))
    case .reference(let name): return .reference(name + pick(["", "/s/a", "/s/__id3__", "\u{0}"]))
    case .array(var elements):
      switch Int.random(in: 0..<3, using: &self) {
      case 0: elements.append(self.value(depth: 3, inArray: true))
      case 1: _ = elements.popLast()
      default:
        if let index = elements.indices.randomElement(using: &self) { elements[index] = variation(of: elements[index]) }
      }
      return .array(elements)
    case .map(var map):
      guard map.vectorComponents == nil, let entry = map.entries.randomElement(using: &self) else { return value }
      map[entry.key] = chance(oneIn: 3) ? nil : variation(of: entry.value)
      return .map(map)
    default: return value
    }
  }
}
