import TestSupport

/// Generates values of every type in JSON, with emphasis on edge cases.
///
/// Values come from small pools, so that documents share them and transforms and orders meet equal values.
struct ValueGenerator {
  /// Canonically equivalent names that differ in bytes, names that need quotes in a path, names that look like paths.
  static let fieldNamePool = ["a", "b", "c", "d", "n", "p q", "é", "e\u{301}", "a.b", "`", "\\", "1", "_", "__", "💡"]

  /// A field that contains only server timestamps: their order may differ, because the emulator truncates them to
  /// milliseconds.
  static let timeField = "now"

  let database: TestDatabase
  /// The few names that the documents of one sequence share.
  let fieldNames: [String]

  init(database: TestDatabase, random: inout SplitMix) {
    self.database = database
    fieldNames = ["a", "b"] + random.sample(Self.fieldNamePool, count: 5)
  }

  static let integers = [
    "0", "1", "-1", "2", "3", "7", "42", "9007199254740992", "9007199254740993", "-9007199254740993",
    "9223372036854775807", "-9223372036854775808", "9223372036854775806",
  ]

  static let doubles = [
    "0", "1", "1.0", "-1.5", "2", "3.5", "0.1", "1e100", "5e-324", "-5e-324", "1.7976931348623157e308",
    "2.2250738585072014e-308", "9007199254740992", "9007199254740993.0", "9.223372036854775807e18",
    "-9223372036854775808", "1e21", "123456789.125", "1E-7", "4.35", "0.30000000000000004",
  ]

  static let doubleWords = ["NaN", "Infinity", "-Infinity", "1.5", "-3"]

  static let strings = [
    "", "a", "A", "aa", "b", "é", "e\u{301}", "😀", "\u{FFEE}", "\u{FFFF}", "a\u{0}b", "\u{0}", "\u{7F}", "tab\tline\n",
    "\"quoted\\\"", "<&>", "\u{2028}", "ﬀ", "0", "null",
    String(repeating: "x", count: 1499), String(repeating: "x", count: 1600), String(repeating: "é", count: 800),
  ]

  static let timestamps = [
    "1970-01-01T00:00:00Z", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.1Z", "2020-01-02T03:04:05.123456Z",
    "2020-01-02T03:04:05.123456789Z", "2020-01-02T03:04:05.999999999+02:00", "1969-12-31T23:59:59.9999999Z",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1900-02-28T12:00:00-11:30", "2000-02-29T23:59:59Z",
  ]

  static let bytes = ["", "AA==", "AQID", "_-8=", "/+8", "AQ", "AAAA", "//79"]

  /// A value of any type, or of a type without nested values if `depth` is 0. Arrays contain no arrays or vectors.
  func value(_ random: inout SplitMix, depth: Int = 2, inArray: Bool = false) -> JSONNode {
    let isLeaf = depth == 0
    switch random.pick(weighted: [
      (4, 0), (4, 1), (2, 2), (12, 3), (10, 4), (14, 5), (5, 6), (4, 7), (4, 8), (3, 9),
      (isLeaf ? 0 : 8, 10), (isLeaf || inArray ? 0 : 8, 11), (isLeaf || inArray ? 0 : 2, 12),
    ]) {
    case 0: return ["nullValue": .null]
    case 1: return ["booleanValue": .bool(random.chance(percent: 50))]
    case 2: return ["doubleValue": .string(random.pick(Self.doubleWords))]
    case 3: return integer(&random)
    case 4: return ["doubleValue": .number(random.pick(Self.doubles))]
    case 5: return ["stringValue": .string(random.pick(Self.strings))]
    case 6: return ["timestampValue": .string(random.pick(Self.timestamps))]
    case 7: return ["bytesValue": .string(random.pick(Self.bytes))]
    case 8: return reference(&random)
    case 9: return geoPoint(&random)
    case 10: return map(&random, depth: depth)
    case 11: return array(&random, depth: depth)
    default: return vector(&random)
    }
  }

  /// A value that a transform can add or compare.
  func number(_ random: inout SplitMix) -> JSONNode {
    switch random.number(below: 5) {
    case 0: ["doubleValue": .string(random.pick(Self.doubleWords))]
    case 1, 2: ["doubleValue": .number(random.pick(Self.doubles))]
    default: integer(&random)
    }
  }

  /// Fields of a document, sometimes none.
  func fields(_ random: inout SplitMix) -> JSONNode {
    members(&random, countMax: 5) { value(&$0) }
  }

  private func members(
    _ random: inout SplitMix, countMax: Int, _ value: (inout SplitMix) -> JSONNode
  ) -> JSONNode {
    var members: [JSONNode.Member] = []
    for name in random.sample(fieldNames, count: random.number(in: 0...countMax))
    where !members.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
      members.append(.init(name, value(&random)))
    }
    return .object(members)
  }

  private func integer(_ random: inout SplitMix) -> JSONNode {
    let text = random.pick(Self.integers)
    return ["integerValue": random.chance(percent: 70) ? .string(text) : .number(text)]
  }

  private func reference(_ random: inout SplitMix) -> JSONNode {
    let name = random.pick([
      database.name("c/a"), database.name("c/a/s/__id7__"), database.name("é/ü x"),
      "projects/other/databases/elsewhere/documents/c/a", database.name("c/__id-2__"), database.name("c/__id12__"),
    ])
    return ["referenceValue": .string(name)]
  }

  private func geoPoint(_ random: inout SplitMix) -> JSONNode {
    let latitude = random.pick(["0", "1.5", "-90", "90", "45.46"])
    let longitude = random.pick(["0", "9.19", "-180", "180", "-0.25"])
    return random.chance(percent: 10)
      ? ["geoPointValue": [:]]
      : ["geoPointValue": ["latitude": .number(latitude), "longitude": .number(longitude)]]
  }

  private func map(_ random: inout SplitMix, depth: Int) -> JSONNode {
    if random.chance(percent: 10) { return ["mapValue": [:]] }
    return ["mapValue": ["fields": members(&random, countMax: 3) { value(&$0, depth: depth - 1) }]]
  }

  private func array(_ random: inout SplitMix, depth: Int) -> JSONNode {
    let elements = (0..<random.number(in: 0...4)).map { _ in value(&random, depth: depth - 1, inArray: true) }
    return ["arrayValue": elements.isEmpty && random.chance(percent: 50) ? [:] : ["values": .array(elements)]]
  }

  private func vector(_ random: inout SplitMix) -> JSONNode {
    let components = (0..<random.number(in: 1...3)).map { _ -> JSONNode in
      ["doubleValue": .number(random.pick(["0", "1", "-2.5", "1e10"]))]
    }
    return [
      "mapValue": [
        "fields": [
          "__type__": ["stringValue": "__vector__"], "value": ["arrayValue": ["values": .array(components)]],
        ]
      ]
    ]
  }
}
