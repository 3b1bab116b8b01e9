import DocumentModel
import Matching
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// Proofs from filters on numbers. Queries compare ints and floats exactly, and rules convert ints to floats first.
@Suite struct NumberProofTests {
  private static let n = FieldPath(field: "n")

  // The first comparison of each pair is the filter's, the second the rule's. Beyond 2^53, a filter finds numbers that
  // the same comparison of a rule denies.
  @Test(arguments: [
    ("F < 9007199254740993", FieldOperator.lessThan, Value.integer(9_007_199_254_740_993)),
    ("F > 9007199254740995", .greaterThan, .integer(9_007_199_254_740_995)),
    ("F > 9223372036854775807", .greaterThan, .integer(.max)),
    ("F != 9223372036854775807", .notEqual, .integer(.max)),
    ("9007199254740993 > F", .lessThan, .integer(9_007_199_254_740_993)),
    ("F != 9007199254740993", .notEqual, .integer(9_007_199_254_740_993)),
    ("F != 9007199254740992.0", .notEqual, .integer(9_007_199_254_740_992)),
    ("F != 9007199254740992.0", .notEqual, .double(9_007_199_254_740_992)),
    ("F != 9007199254740993", .notIn, .array([.integer(9_007_199_254_740_993), .integer(1)])),
    ("F != 9007199254740992.0", .greaterThan, .double(9_007_199_254_740_992)),
    ("F < 9007199254740993", .equal, .integer(9_007_199_254_740_992)),
    ("F != 9007199254740993", .equal, .integer(9_007_199_254_740_992)),
  ])
  func roundedComparisonsProveNothing(condition: String, operation: FieldOperator, operand: Value) throws {
    let text = condition.replacing("F", with: "resource.data.n")
    #expect(try !ProofTests.allows(text, .field(Self.n, operation, operand)), "\(text)")
  }

  // Exact comparisons still prove, also of great numbers.
  @Test(arguments: [
    ("F < 5", FieldOperator.lessThan, Value.integer(5)), ("F < 5.5", .lessThan, .integer(5)),
    ("F < 5.5", .lessThan, .double(5.5)), ("F <= 5", .lessThan, .integer(5)), ("F > -5", .greaterThan, .integer(-5)),
    ("F >= 0", .greaterThanOrEqual, .integer(0)), ("F >= 0.0", .greaterThanOrEqual, .double(-0.0)),
    ("F != 5", .notEqual, .integer(5)), ("F != 5.0", .notEqual, .integer(5)), ("F != 5.5", .notEqual, .double(5.5)),
    ("F != 5", .notIn, .array([.integer(5), .integer(6)])), ("F != 5", .greaterThan, .integer(5)),
    ("F != 5.0", .lessThan, .integer(5)), ("F == 5", .equal, .integer(5)), ("F == 5.0", .equal, .integer(5)),
    ("F < 6", .equal, .integer(5)), ("F > 9007199254740992", .greaterThan, .integer(9_007_199_254_740_994)),
    ("F < 9007199254740992", .lessThan, .integer(9_007_199_254_740_992)),
    ("F <= 9007199254740993", .lessThanOrEqual, .integer(9_007_199_254_740_993)),
    ("F < 9223372036854775807", .lessThan, .integer(1_000_000_000_000)),
    ("F > -9223372036854775807", .greaterThan, .integer(0)), ("F < 1.0 / 0.0", .lessThan, .integer(5)),
    ("F == 9007199254740993", .equal, .integer(9_007_199_254_740_993)),
    ("F != 9007199254740994", .notEqual, .integer(9_007_199_254_740_994)),
  ])
  func exactComparisonsProve(condition: String, operation: FieldOperator, operand: Value) throws {
    let text = condition.replacing("F", with: "resource.data.n")
    #expect(try ProofTests.allows(text, .field(Self.n, operation, operand)), "\(text)")
  }

  private static let bases: [Int64] = [
    1 << 53, -(1 << 53), 1 << 54, 1 << 62, Int64.max, Int64.min, Int64.max - 512, Int64.min + 1024, 0, 3, 1 << 60,
  ]
  private static let operators: [FieldOperator] = [
    .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .equal, .notEqual,
  ]
  private static let doubles: [Double] = [
    .infinity, -.infinity, .nan, -0.0, 0.5, 0x1p63, -0x1p63, 0x1p64, .leastNonzeroMagnitude, -.leastNonzeroMagnitude,
  ]

  /// Returns a number near a limit of int64, of exact doubles, or of ordinary size.
  private static func number(_ random: inout SplitMix) -> Value {
    let base = random.pick(bases)
    let whole = base &+ Int64.random(in: -3...3, using: &random)
    if random.chance(oneIn: 2) { return .integer(whole) }
    if random.chance(oneIn: 8) {
      return .double(random.pick(doubles))
    }
    let double = Double(whole)
    return .double(random.pick([double, double.nextUp, double.nextDown]))
  }

  /// Returns a BSON number, for rules a map.
  private static func bsonNumber(_ random: inout SplitMix) -> Value {
    let whole = Int64.random(in: -4...4, using: &random)
    let (type, content) =
      random.chance(oneIn: 2)
      ? (BSONType.int32, Value.integer(whole)) : (.decimal128, .string(random.pick(["\(whole)", "\(whole).5", "NaN"])))
    return .map(MapValue([(type.rawValue, content)]))
  }

  // A filter on numbers also finds BSON numbers in an enterprise database, and rules read these as maps.
  @Test(arguments: [
    ("F < 5", FieldOperator.lessThan, Value.integer(5)), ("F <= 5", .lessThanOrEqual, .integer(5)),
    ("F > 5", .greaterThan, .double(5)), ("F >= 5", .greaterThanOrEqual, .integer(5)), ("F == 5", .equal, .integer(5)),
    ("F is number", .lessThan, .integer(5)), ("F is number", .equal, .integer(5)), ("F != 6", .equal, .integer(5)),
    ("F is map", .lessThan, int32(5)), ("F is map", .equal, int32(5)), ("F is map", .equal, decimal("5")),
    ("F == {'__decimal128__': '5'}", .equal, decimal("5")), ("5 in F", .arrayContains, .integer(5)),
    ("{'__decimal128__': '5'} in F", .arrayContains, decimal("5")),
    ("F == [{'__decimal128__': '5'}]", .equal, .array([decimal("5")])),
  ])
  func filtersOnNumbersDoNotExcludeBSONNumbers(condition: String, operation: FieldOperator, operand: Value) throws {
    let text = condition.replacing("F", with: "resource.data.n")
    let filter = QueryFilter.field(Self.n, operation, operand)
    #expect(try !ProofTests.allows(text, filter, edition: .enterprise), "\(text)")
    // Rules do not order maps, so a range of them proves nothing in any database.
    if case .map = operand, operation != .equal { return }
    #expect(try ProofTests.allows("resource.data.n != null", filter, edition: .enterprise))
  }

  @Test func aFilterForNaNDoesNotExcludeDecimals() throws {
    let filter = QueryFilter.unary(Self.n, .isNaN)
    for condition in ["is number", "is float"] {
      #expect(try ProofTests.allows("resource.data.n \(condition)", filter))
      #expect(try !ProofTests.allows("resource.data.n \(condition)", filter, edition: .enterprise))
    }
  }

  @Test func filtersOnOtherTypesProveInEnterpriseDatabases() throws {
    for (text, filter) in [
      ("F == 'a'", QueryFilter.field(Self.n, .equal, .string("a"))),
      ("F < 'b'", .field(Self.n, .lessThan, .string("a"))),
      ("F != 5", .field(Self.n, .notEqual, .integer(5))),
    ] {
      let text = text.replacing("F", with: "resource.data.n")
      #expect(try ProofTests.allows(text, filter, edition: .enterprise), "\(text)")
    }
  }

  private static func int32(_ number: Int64) -> Value { .map(MapValue([(BSONType.int32.rawValue, .integer(number))])) }
  private static func decimal(_ text: String) -> Value {
    .map(MapValue([(BSONType.decimal128.rawValue, .string(text))]))
  }

  private static func literal(_ value: Value) -> String {
    switch value {
    case .integer(.min): "(-9223372036854775807 - 1)"
    case .integer(let number): "(\(number))"
    case .double(let number) where number.isNaN: "(0.0 / 0.0)"
    case .double(let number) where number.isInfinite: number > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)"
    case .double(let number): "float('\(number)')"
    default: "null"
    }
  }

  private static func filter(_ random: inout SplitMix) -> QueryFilter {
    let operand = number(&random)
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return .field(n, .in, .array([operand, number(&random)]))
    case 1: return .field(n, .notIn, .array([operand, number(&random)]))
    case 2: return .unary(n, random.pick([UnaryOperator.isNotNull, .isNotNaN, .isNaN]))
    case 3: return .and([.field(n, .greaterThan, operand), .field(n, .lessThan, number(&random))])
    default:
      return .field(n, random.pick(operators), operand)
    }
  }

  /// No filter that counts as a proof finds a number for which the rule's comparison is false.
  @Test(arguments: TestSeeds.of("RULES_SEED", otherwise: [1, 2]), [Edition.standard, .enterprise])
  func proofsHoldForEveryNumber(seed: UInt64, edition: Edition) throws {
    var random = SplitMix(seed: seed)
    let database = try #require(DatabaseID(project: "p"))
    let evaluator = Evaluator()
    var proofs = 0
    for _ in 0..<6_000 {
      let k = Self.number(&random)
      let operation = random.pick(["<", "<=", ">", ">=", "==", "!="])
      let sides = ["resource.data.n", Self.literal(k)]
      let condition = (random.chance(oneIn: 4) ? sides.reversed() : sides).joined(separator: " \(operation) ")
      let rules = try Ruleset(compiling: RulesFixture.rules(condition, methods: "get, list"))
      for _ in 0..<6 {
        var request = RulesRequest(.list, RulesFixture.path("t"), time: RulesFixture.time)
        var query = Query(collectionID: "t")
        // Half of the operands are the rule's number, else few filters would prove a condition.
        query.filter =
          random.chance(oneIn: 2)
          ? .field(Self.n, random.pick(Self.operators), k) : Self.filter(&random)
        request.query = query
        request.edition = edition
        guard evaluator.decide(rules, request).isAllowed else { continue }
        proofs += 1
        var matcher = DocumentMatcher(query.filter, in: database)
        for _ in 0..<40 {
          let isBSON = edition.hasBSONTypes && random.chance(oneIn: 2)
          let value = isBSON ? Self.bsonNumber(&random) : Self.number(&random)
          let document = EncodedFields(MapValue([("n", value)]))
          let path = RulesFixture.path("t/z")
          guard try document.withMap({ try matcher.matches($0, at: path) }) else { continue }
          var get = RulesRequest(.get, path, time: RulesFixture.time)
          get.resource = document
          let text = "\(condition) for \(String(describing: query.filter)) but not \(value), seed \(seed)"
          #expect(evaluator.decide(rules, get).isAllowed, Comment(rawValue: text))
        }
      }
    }
    #expect(
      proofs > (edition == .standard ? 2_000 : 100), "too few queries were proved for a meaningful test, seed \(seed)")
  }
}
