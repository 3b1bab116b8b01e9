import DocumentModel
import DocumentStore
import KeyEncoding
import Testing
import TestSupport
import WireFormat

private func code(_ value: Value, budget: Int = .max) throws -> (bytes: [UInt8], isWhole: Bool) {
  var map = MapValue()
  map["v"] = value
  return try EncodedFields(map).withMap { (map) throws(WireError) in
    guard let value = try map.value(for: "v") else { preconditionFailure("the field was just set") }
    var bytes: [UInt8] = []
    let isWhole = try OrderedCode.append(value, to: &bytes, budget: budget)
    return (bytes, isWhole)
  }
}

@Suite struct OrderedCodeTests {
  private static func bson(_ type: BSONType, _ content: Value) -> Value { .map(MapValue([(type.rawValue, content)])) }

  private static func bsonTime(_ seconds: Int64, _ increment: Int64) -> Value {
    bson(.timestamp, map(("seconds", .integer(seconds)), ("increment", .integer(increment))))
  }

  private static func regex(_ pattern: String, _ options: String) -> Value {
    bson(.regex, map(("pattern", .string(pattern)), ("options", .string(options))))
  }

  /// Values in ascending order. The values of one row are equal.
  private static let ladder: [[Value]] = [
    [.null], [bson(.minKey, .null)],
    [false], [true],
    [.double(.nan), .double(-.nan), .double(.signalingNaN), bson(.decimal128, "NaN")],
    [.double(-.infinity)],
    [.double(-.greatestFiniteMagnitude)],
    [.double((-0x1p63).nextDown)],
    [.integer(.min), .double(-0x1p63)],
    [.integer(.min + 1)],
    [.integer(.min + 1023)],
    [.integer(.min + 1024), .double((-0x1p63).nextUp)],
    [.integer(-(1 << 53) - 2), .double(-0x1p53 - 2)],
    [.integer(-(1 << 53) - 1)],
    [.integer(-(1 << 53)), .double(-0x1p53)],
    [.integer(-(1 << 53) + 1), .double(-0x1p53 + 1)],
    [.integer(-2)], [.double(-1.5)], [.integer(-1), .double(-1)],
    [.double(-.leastNonzeroMagnitude)],
    [.integer(0), .double(0), .double(-0.0)],
    [.double(.leastNonzeroMagnitude)], [.double(0.1)],
    [.integer(1), .double(1), bson(.int32, 1), bson(.decimal128, "1")],
    [.double(1.0.nextUp)],
    [.integer((1 << 53) - 1), .double(0x1p53 - 1)],
    [.integer(1 << 53), .double(0x1p53)],
    [.integer((1 << 53) + 1)],
    [.integer((1 << 53) + 2), .double(0x1p53 + 2)],
    [.integer((1 << 53) + 3)],
    [.integer((1 << 53) + 4), .double(0x1p53 + 4)],
    [.integer(1 << 62), .double(0x1p62)],
    [.integer((1 << 62) + 1)],
    [.double(0x1p63.nextDown), .integer(.max - 1023)],
    [.integer(.max - 1)], [.integer(.max)],
    [.double(0x1p63)], [.double(0x1p63.nextUp)], [.double(.greatestFiniteMagnitude)], [.double(.infinity)],
    [.timestamp(.earliest)], [.timestamp(Timestamp(uncheckedMicroseconds: -1))],
    [.timestamp(Timestamp(uncheckedMicroseconds: 0))], [.timestamp(.latest)],
    [bsonTime(1, 2)], [bsonTime(1, 0xFFFF_FFFF)], [bsonTime(2, 0)],
    [""], ["\u{0}"], ["\u{0}\u{0}"], ["\u{0}\u{1}"], ["\u{0}a"], ["\u{1}"], ["a"], ["a\u{0}"], ["a\u{0}\u{0}"],
    ["a\u{1}"],
    ["a\u{2}"], ["ab"], ["b"], ["e\u{301}"], ["\u{7F}"], ["\u{80}"], ["\u{E9}"], ["\u{FFFF}"], ["\u{1F600}"],
    [.bytes([])], [.bytes([0])], [.bytes([0, 0])], [.bytes([0, 1])], [.bytes([0, 0xFF])], [.bytes([1])],
    [.bytes([0xFE])], [.bytes([0xFF])], [.bytes([0xFF, 0])], [.bytes([0xFF, 0xFF])],
    [bson(.binary, .bytes([1]))], [bson(.binary, .bytes([1, 0]))], [bson(.binary, .bytes([2]))],
    [.reference("projects/p/databases/a/documents/c/x")],
    [.reference("projects/p/databases/d/documents/c/__id-9223372036854775808__")],
    [.reference("projects/p/databases/d/documents/c/__id-2__")],
    [.reference("projects/p/databases/d/documents/c/__id7__")],
    [.reference("projects/p/databases/d/documents/c/__id7__/s/a")],
    [.reference("projects/p/databases/d/documents/c/__id12__")],
    [.reference("projects/p/databases/d/documents/c/12")], [.reference("projects/p/databases/d/documents/c/7")],
    [.reference("projects/p/databases/d/documents/c/A")], [.reference("projects/p/databases/d/documents/c/A/s/x")],
    [.reference("projects/p/databases/d/documents/c/Aa")], [.reference("projects/p/databases/d/documents/c/__id")],
    [.reference("projects/p/databases/d/documents/c/a")], [.reference("projects/p/databases/d/documents/c/a\u{0}")],
    [.reference("projects/p/databases/d/documents/cc/a")], [.reference("projects/q/databases/a/documents/c/a")],
    [bson(.objectID, "0123456789abcdef01234567")], [bson(.objectID, "0123456789abcdef01234568")],
    [.geoPoint(GeoPoint(latitude: -90, longitude: 180))], [.geoPoint(GeoPoint(latitude: 0, longitude: -1))],
    [
      .geoPoint(GeoPoint(latitude: 0, longitude: 0)), .geoPoint(GeoPoint(latitude: -0.0, longitude: -0.0)),
    ],
    [.geoPoint(GeoPoint(latitude: 0, longitude: 1))], [.geoPoint(GeoPoint(latitude: 1, longitude: -180))],
    [regex("a", "i")], [regex("a", "s")], [regex("a\u{0}", "")], [regex("b", "")],
    [[]], [[.null]], [[.null, .null]], [[false]], [[.integer(1)], [.double(1)]], [[1, .null]], [[1, 2]], [[2]], [["a"]],
    [["a", "b"]], [["ab"]], [[.vector([1])]], [[map()]], [[map(("a", [1]))]],
    [.vector([5])], [.vector([6])], [.vector([0, 0])], [.vector([0, 1])], [.vector(Array(repeating: 0, count: 239))],
    [.vector(Array(repeating: 0, count: 240))], [.vector(Array(repeating: 0, count: 2048))],
    [map()], [map(("", .null))], [map(("a", .null))], [map(("a", .null), ("b", 1))], [map(("a", 1)), map(("a", 1.0))],
    [map(("a", 1), ("b", 1))], [map(("a", "x"))], [map(("a", map(("b", 1))))], [map(("a", map(("b", 1))), ("c", 1))],
    [map(("a\u{0}", .null))], [map(("ab", .null))], [map(("b", .null))],
    [bson(.maxKey, .null)],
  ]

  @Test func codesSortAsTheirValues() throws {
    for (i, row) in Self.ladder.enumerated() {
      for (j, other) in Self.ladder.enumerated() {
        for a in row {
          for b in other {
            let expected = Ordering(i, j)
            #expect(Value.compare(a, b) == expected, "\(a) against \(b)")
            #expect(Ordering.bytes(try code(a).bytes, try code(b).bytes) == expected, "codes of \(a) against \(b)")
          }
        }
      }
    }
  }

  @Test func codesOfRandomPairsSortAsTheirValues() throws {
    let seed: UInt64 = 0xC0DE
    var random = SplitMix(seed: seed)
    for round in 0..<6000 {
      let a = random.value()
      let b = random.chance(oneIn: 2) ? random.variation(of: a) : random.value()
      let order = Value.compare(a, b)
      let (codeA, codeB) = (try code(a), try code(b))
      try #require(codeA.isWhole && codeB.isWhole)
      try #require(Ordering.bytes(codeA.bytes, codeB.bytes) == order, "seed \(seed) round \(round): \(a) against \(b)")
      // At worst, codes that are cut are equal.
      let budget = random.pick([0, 1, 2, 5, 9, 20, 1500])
      let (cutA, cutB) = (try code(a, budget: budget), try code(b, budget: budget))
      let cutOrder = Ordering.bytes(cutA.bytes, cutB.bytes)
      let isRight = cutOrder == order || (cutOrder == .equal && !(cutA.isWhole && cutB.isWhole))
      try #require(isRight, "seed \(seed) round \(round), budget \(budget): \(a) against \(b)")
      if cutOrder == .equal, order != .equal {
        try #require(!cutA.isWhole && !cutB.isWhole, "a whole code equals a cut one: \(a) against \(b)")
      }
    }
  }

  @Test func skippingFindsTheEnd() throws {
    let seed: UInt64 = 0x5C1F
    var random = SplitMix(seed: seed)
    var id: [UInt8] = []
    for round in 0..<3000 {
      let value = random.value()
      let budget = random.pick([0, 3, 12, 30, 1500, Int.max])
      var (bytes, isWhole) = try code(value, budget: budget)
      // The code of a document ID follows, as in an index key.
      id = Array(random.documentID().utf8)
      OrderedCode.append(lastID: id, to: &bytes)
      let (extent, found) = bytes.withUnsafeBytes { bytes in
        var rest = bytes
        let extent = OrderedCode.skipValue(&rest)
        var found: [UInt8] = []
        let isID = OrderedCode.decode(lastID: rest, into: &found)
        return (extent, isID ? found : nil)
      }
      try #require(extent == (isWhole ? .whole : .cut), "seed \(seed) round \(round) \(value)")
      try #require(found == id, "seed \(seed) round \(round) \(value)")
    }
  }

  @Test func skippingEdgeCasesFindsTheEnd() throws {
    for value in Self.ladder.joined() {
      let bytes = try code(value).bytes + [0xAA]
      bytes.withUnsafeBytes { bytes in
        var rest = bytes
        #expect(OrderedCode.skipValue(&rest) == .whole && rest.count == 1, "\(value)")
      }
    }
  }

  @Test func skippingADamagedCodeTerminates() throws {
    let seed: UInt64 = 0xDA3A6E
    var random = SplitMix(seed: seed)
    for _ in 0..<3000 {
      var (bytes, _) = try code(random.value(), budget: 1500)
      if random.chance(oneIn: 2) {
        bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
      }
      if !bytes.isEmpty {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = random.pick([0, 1, 2, 5, 50, 0xFF])
      }
      bytes.withUnsafeBytes { bytes in
        var rest = bytes
        _ = OrderedCode.skipValue(&rest)
        #expect(rest.count <= bytes.count)
      }
    }
  }

  @Test func codesAreCutAtTheBudget() throws {
    let long = String(repeating: "x", count: 3000)
    let (whole, isWhole) = try code(.string(String(repeating: "x", count: 1499)), budget: 1500)
    #expect(isWhole && whole.count == 1502)
    for value: Value in [
      .string(long), [.string(long)], map(("k", .string(long))), .array(Array(repeating: 1, count: 500)),
    ] {
      let (bytes, isWhole) = try code(value, budget: 1500)
      #expect(!isWhole)
      #expect(bytes.count <= 1520, "\(bytes.count) bytes")
    }
    // A zero byte takes two bytes in a code, so a code has at most twice the budget.
    let (zeros, areWhole) = try code(.bytes(Array(repeating: 0, count: 3000)), budget: 1500)
    #expect(!areWhole && zeros.count <= 3002)
  }

  @Test func documentIDsSortInNameOrder() throws {
    let ascending = [
      "__id-9223372036854775808__", "__id-2__", "__id-1__", "__id1__", "__id7__", "__id12__", "__id255__", "__id256__",
      "__id9223372036854775807__", "\u{1}", "12", "7", "A", "Aa", "__id", "__id01__", "__id0__",
      "__id1_", "__id9223372036854775808__", "_id1__", "a", "a\u{0}", "a\u{0}b", "a\u{1}", "ab", "\u{1F600}",
    ]
    for (i, a) in ascending.enumerated() {
      for (j, b) in ascending.enumerated() {
        let expected = Ordering(i, j)
        #expect(ResourceID.compare(Array(a.utf8), Array(b.utf8)) == expected, "\(a) against \(b)")
        var (lastA, lastB, segmentA, segmentB): ([UInt8], [UInt8], [UInt8], [UInt8]) = ([], [], [], [])
        OrderedCode.append(lastID: Array(a.utf8), to: &lastA)
        OrderedCode.append(lastID: Array(b.utf8), to: &lastB)
        OrderedCode.append(segment: Array(a.utf8), to: &segmentA)
        OrderedCode.append(segment: Array(b.utf8), to: &segmentB)
        #expect(Ordering.bytes(lastA, lastB) == expected, "\(a) against \(b)")
        #expect(Ordering.bytes(segmentA, segmentB) == expected, "\(a) against \(b)")
        if i != j { #expect(!segmentB.starts(with: segmentA), "\(a) is a prefix of \(b)") }
        var decoded: [UInt8] = []
        #expect(lastA.withUnsafeBytes { OrderedCode.decode(lastID: $0, into: &decoded) })
        #expect(decoded == Array(a.utf8))
        decoded = []
        (segmentA + [9]).withUnsafeBytes { bytes in
          var rest = bytes
          #expect(OrderedCode.take(segment: &rest, into: &decoded))
          #expect(rest.elementsEqual([9]))
        }
        #expect(decoded == Array(a.utf8))
      }
    }
  }

  @Test func numbersAndVersionsRoundTripInOrder() throws {
    var random = SplitMix(seed: 7)
    var numbers: [UInt64] = [0, 1, 0xEF, 0xF0, 0xFF, 0x100, 0xFFFF, 0x10000, 1 << 32, .max - 1, .max]
    for _ in 0..<500 { numbers.append(random.next() >> UInt64.random(in: 0...63, using: &random)) }
    numbers.sort()
    var last: [UInt8] = []
    for number in numbers {
      var bytes: [UInt8] = []
      OrderedCode.append(number: number, to: &bytes)
      #expect(Ordering.bytes(last, bytes) != .greater)
      last = bytes
      bytes.append(0xAB)
      bytes.withUnsafeBytes { bytes in
        var rest = bytes
        #expect(OrderedCode.takeNumber(&rest) == number)
        #expect(rest.elementsEqual([0xAB]))
      }
      for cut in 0..<(last.count) {
        Array(last.prefix(cut)).withUnsafeBytes { bytes in
          var rest = bytes
          #expect(OrderedCode.takeNumber(&rest) == nil)
        }
      }
    }
    let versions: [Int64] = [.min, -1, 0, 1, 1_800_000_000_000_000, .max]
    var lastVersion: [UInt8] = []
    for version in versions {
      var bytes: [UInt8] = []
      OrderedCode.append(version: version, to: &bytes)
      #expect(Ordering.bytes(lastVersion, bytes) == .less)
      lastVersion = bytes
      #expect(([1, 2] + bytes).withUnsafeBytes { OrderedCode.version(atEndOf: $0) } == version)
    }
    #expect([UInt8](arrayLiteral: 1, 2).withUnsafeBytes { OrderedCode.version(atEndOf: $0) } == nil)
  }
}
