import DocumentModel
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// The work of conditions over long lists, maps and texts: what they do in time that is linear in the data, and what
/// the budget of work refuses.
@Suite struct WorkTests {
  private static func decision(_ condition: String, _ fields: [(String, Value)], on evaluator: Evaluator = Evaluator())
    throws -> Decision
  {
    let rules = try Ruleset(compiling: RulesFixture.rules(condition))
    var request = RulesFixture.request
    request.resource = EncodedFields(MapValue(fields))
    return evaluator.decide(rules, request, explaining: .outcomes)
  }

  private static func integers(_ range: Range<Int64>) -> Value { .array(range.map(Value.integer)) }

  // Each took more than the whole budget when each item was compared with each other one.
  @Test(arguments: [
    "$a.toSet().size() == $a.size()", "!$a.hasAny($b)", "$a.hasAll($reversed)", "$reversed.hasOnly($a)",
    "$a.removeAll($b).size() == 12000", "$a.toSet().union($b.toSet()).size() == 24000",
    "$a.toSet().difference($reversed.toSet()).size() == 0", "$a.toSet().intersection($b.toSet()).size() == 0",
    "$a.toSet() == $reversed.toSet()", "$maps.toSet().size() == 3000", "$nans.toSet().size() == 1",
    "!$nans.hasAny($nans)",
    "$texts.toSet().size() == $texts.size()",
  ])
  func collectionsAreComparedByHash(condition: String) throws {
    let text = condition.replacing("$", with: "resource.data.")
    let decision = try Self.decision(
      text,
      [
        ("a", Self.integers(0..<12_000)), ("b", Self.integers(12_000..<24_000)),
        ("reversed", .array((0..<12_000).reversed().map(Value.integer))),
        ("maps", .array((0..<3_000).map { .map(MapValue([("a", .array([.double(1)])), ("b", .integer($0))])) })),
        ("nans", .array(Array(repeating: .double(.nan), count: 12_000))),
        ("texts", .array((0..<8_000).map { .string("tag number \($0)") })),
      ])
    #expect(decision.isAllowed, "\(condition): \(decision.outcomes.map(\.result))")
  }

  /// A condition that a client can make expensive with the fields `s`, `t` and `l`.
  struct Attack: CustomStringConvertible, Sendable {
    let condition: String
    var s = ""
    var t = ""
    var l = Value.array([])

    var description: String { condition }
  }

  // Each ended only after a multiple of the budget, in up to half a minute.
  static let attacks = [
    Attack(condition: "int($s) == 0", s: String(repeating: "0", count: 1_000_000)),
    Attack(condition: "path($s) == /a", s: (0..<20_000).map { "{a\($0)}" }.joined(separator: "/")),
    Attack(condition: "'x'.matches($s)", s: String(repeating: "\\pL", count: 2_000)),
    Attack(condition: "'x'.matches($s)", s: String(repeating: "a?", count: 10_000)),
    Attack(condition: "'x'.matches($s)", s: String(repeating: "a{1000}", count: 400)),
    Attack(condition: "$s.matches('.*a[ab]{600}')", s: scrambled),
    Attack(condition: "$s.matches($t)", s: scrambled, t: ".*a[ab]{600}"),
    Attack(condition: "$s.split('(?:a.*c)|a').size() > 0", s: String(repeating: "a", count: 30_000)),
    Attack(condition: "$s.split('a|.+$').size() > 0", s: String(repeating: "xa", count: 30_000) + "\n"),
    Attack(condition: "$s.replace('.*', $t).size() > 0", s: scrambled, t: String(repeating: "$0", count: 100_000)),
    Attack(condition: "$s.replace('(a)|b', $t).size() > 0", s: scrambled, t: "$1$1"),
    Attack(condition: "$l.toSet().size() > 0", l: .array((0..<60_000).map { .integer(1 << 62 + $0) })),
    Attack(
      condition: (1...90).map { "!(-\($0) in $l)" }.joined(separator: " && "),
      l: integers(0..<60_000)),
    Attack(condition: (1...90).map { "$s[900\($0)] == 'c'" }.joined(separator: " || "), s: scrambled),
  ]

  /// A text of the letters a and b without a pattern.
  private static let scrambled: String = {
    var random = SplitMix(seed: 1)
    return String(decoding: (0..<200_000).map { _ in UInt8(random.chance(oneIn: 2) ? 0x61 : 0x62) }, as: UTF8.self)
  }()

  @Test(arguments: attacks) func expensiveConditionsFail(attack: Attack) throws {
    let text = ["s", "t", "l"].reduce(attack.condition) { $0.replacing("$\($1)", with: "resource.data.\($1)") }
    let decision = try Self.decision(
      text, [("s", .string(attack.s)), ("t", .string(attack.t)), ("l", attack.l)])
    #expect(!decision.isAllowed)
    #expect(decision.outcomes.first?.result.contains("more time than one decision") == true, "\(decision.outcomes)")
  }

  // Long texts of which each byte is read once or twice fit in the budget.
  @Test(arguments: [
    "$s.matches('data:image/.*')", "$s.matches('data:image/(png|jpeg);base64,[A-Za-z0-9]+')", "$s.size() > 900000",
    "$s.lower() != $s.upper()", "$t.split(',').size() == 2000", "$t.replace(', *', ';').size() > 0", "$t[4] == ' '",
    "hashing.md5($s).size() == 16", "$t.matches('([a-z]+,)*')", "'abc'.matches('[a-z]{' + string(3) + ',9}')",
    "'a@example.com'.matches('^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\\\\.[a-zA-Z]{2,}$')",
  ])
  func longTextsAreRead(condition: String) throws {
    let text = ["s", "t"].reduce(condition) { $0.replacing("$\($1)", with: "resource.data.\($1)") }
    let decision = try Self.decision(
      text,
      [
        ("s", .string("data:image/png;base64," + String(repeating: "x", count: 900_000))),
        ("t", .string(String(repeating: "some words,", count: 2_000))),
      ])
    let isMatch = !condition.hasPrefix("$t.matches")
    #expect(decision.outcomes.first?.result == String(isMatch), "\(condition): \(decision.outcomes)")
  }

  @Test func decisionsOfOneRequestShareABudget() throws {
    let evaluator = Evaluator()
    let text = Value.string(String(repeating: "a", count: 1_000_000))
    func decide(_ condition: String) throws -> Bool {
      try Self.decision(condition, [("s", text)], on: evaluator).isAllowed
    }
    let hashes = "hashing.md5(resource.data.s).size() == 16"
    evaluator.beginRequest()
    // Each takes four million steps.
    for _ in 0..<7 { #expect(try decide(hashes)) }
    #expect(try decide("true"))
    #expect(try !decide(hashes + " && " + hashes))
    #expect(try decide("true"))
    #expect(try !decide("resource.data.s.size() == 1000000"))
    evaluator.beginRequest()
    #expect(try decide(hashes))
  }

  @Test func alternativesOfAQueryShareABudget() throws {
    let values = (0..<30).map { Value.string("\($0)" + String(repeating: "a", count: 100_000)) }
    let filter = QueryFilter.field(FieldPath(field: "n"), .in, .array(values))
    #expect(
      try ProofTests.allows(
        "hashing.md5(resource.data.n).size() == 16", .field(FieldPath(field: "n"), .in, .array([values[0]]))))
    #expect(try !ProofTests.allows("hashing.md5(resource.data.n).size() == 16", filter))
  }

  // MARK: Results

  private static func value(_ random: inout SplitMix, depth: Int = 0) -> Value {
    switch Int.random(in: 0..<(depth < 2 ? 12 : 9), using: &random) {
    case 0: return .integer(Int64.random(in: -2...2, using: &random))
    case 1: return .double(Double(Int.random(in: -2...2, using: &random)))
    case 2: return .double(random.pick([0, -0.0, Double.nan, .infinity, 0x1p53, 0x1p63]))
    case 3: return .integer(random.pick([Int64.max, .min, 1 << 53, 1 << 53 + 1, .max - 1]))
    case 4: return .string(random.pick(["", "a", "b", "é"]))
    case 5: return .bytes(random.pick([[], [0x61]]))
    case 6: return .timestamp(Timestamp(uncheckedMicroseconds: Int64.random(in: 0...1, using: &random)))
    case 7: return .reference("projects/p/databases/(default)/documents/t/\(random.pick(["a", "b"]))")
    case 8: return random.pick([Value.null, .boolean(true), .geoPoint(GeoPoint(latitude: -0.0, longitude: 1))])
    case 9, 10:
      let entries = (0..<Int.random(in: 0...2, using: &random)).map { ("k\($0)", value(&random, depth: depth + 1)) }
      return .map(MapValue(entries))
    default:
      if depth > 0 { return .null }
      return .map(MapValue([("l", .array((0...1).map { _ in value(&random, depth: depth + 1) }))]))
    }
  }

  /// Functions that compare by hash have the results of comparing each item with each other one, which `in` does.
  @Test(arguments: TestSeeds.of("RULES_SEED", otherwise: [1, 2])) func hashesDoNotChangeResults(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    for _ in 0..<25 {
      let p = (0..<Int.random(in: 9...24, using: &random)).map { _ in Self.value(&random) }
      let q = (0..<Int.random(in: 9...24, using: &random)).map { _ in Self.value(&random) }
      let fields: [(String, Value)] = [("p", .array(p)), ("q", .array(q))]
      func result(_ expression: String) throws -> String {
        let rules = try Ruleset(
          compiling: RulesFixture.rules(
            "debug(\(expression))",
            functions: "function p() { return resource.data.p; } function q() { return resource.data.q; }"))
        var request = RulesFixture.request
        request.resource = EncodedFields(MapValue(fields))
        return rules.decide(request, explaining: .trace).trace.last?.value ?? "nothing"
      }
      func holds(_ condition: String) throws -> Bool { try result(condition) == "{\"boolValue\":true}" }
      func listed(_ items: [Int]) throws -> String {
        try result("[\(items.map { "q()[\($0)]" }.joined(separator: ", "))]")
      }

      let inP = try q.indices.map { try holds("q()[\($0)] in p()") }
      let inSet = try q.indices.map { try holds("q()[\($0)] in p().toSet()") }
      var distinct: [Int] = []
      for item in q.indices where try !distinct.contains(where: { try holds("q()[\(item)] in [q()[\($0)]].toSet()") }) {
        distinct.append(item)
      }
      let text = Comment(rawValue: "p = \(p), q = \(q), seed \(seed)")
      #expect(try holds("p().hasAny(q())") == inP.contains(true), text)
      #expect(try holds("p().hasAll(q())") == inP.allSatisfy(\.self), text)
      #expect(try holds("q().hasOnly(p())") == inP.allSatisfy(\.self), text)
      #expect(try holds("p().toSet().hasAny(q().toSet())") == inSet.contains(true), text)
      #expect(try holds("p().toSet().hasAll(q())") == inSet.allSatisfy(\.self), text)
      #expect(try result("q().removeAll(p())") == listed(q.indices.filter { !inP[$0] }), text)
      func outer(_ text: String) -> Substring { text.drop { $0 != ":" } }
      #expect(try outer(result("q().toSet()")) == outer(listed(distinct)), text)
      #expect(
        try outer(result("q().toSet().difference(p().toSet())")) == outer(listed(distinct.filter { !inSet[$0] })), text)
      #expect(
        try outer(result("q().toSet().intersection(p().toSet())")) == outer(listed(distinct.filter { inSet[$0] })), text
      )
      #expect(try holds("q().toSet() == q().concat(q()).toSet()"), text)
    }
  }
}
