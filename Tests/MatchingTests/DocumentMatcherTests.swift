import DocumentModel
import Matching
import Testing
import TestSupport
import WireFormat

@Suite struct DocumentMatcherTests {
  private let database = DatabaseID(project: "p").unsafelyUnwrapped

  @Test(arguments: 1...20) func matcherAgreesWithTheDefinition(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    let model = QueryModel(database)
    let documents = generator.documents().map { ($0, EncodedFields($0.fields)) }
    for round in 0..<60 {
      let filter = generator.filter()
      var matcher = DocumentMatcher(filter, in: database)
      for (document, encoded) in documents {
        let found = try encoded.withMap { (map) throws(WireError) in try matcher.matches(map, at: document.path) }
        #expect(
          found == model.matches(filter, document),
          "seed \(seed), filter \(round) \(filter) on \(document.path) \(document.fields.entries)")
      }
    }
  }

  @Test(arguments: 1...20) func matcherAgreesOnAnyValues(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let model = QueryModel(database)
    let path = document("c/x").path
    for _ in 0..<300 {
      let value = random.value()
      let operand = random.variation(of: value)
      let fields = MapValue([("f", value)])
      for op in FieldOperator.allCases {
        let isList = op == .in || op == .notIn || op == .arrayContainsAny
        let filter = QueryFilter.field(field("f"), op, isList ? .array([operand]) : operand)
        var matcher = DocumentMatcher(filter, in: database)
        let found = try EncodedFields(fields).withMap { (map) throws(WireError) in try matcher.matches(map, at: path) }
        #expect(found == model.matches(filter, (path, fields)), "seed \(seed): \(value) \(op) \(operand)")
      }
    }
  }

  @Test func noFilterMatchesEveryDocument() throws {
    var matcher = DocumentMatcher(nil, in: database)
    let found = try EncodedFields(MapValue()).withMap { (map) throws(WireError) in
      try matcher.matches(map, at: document("c/x").path)
    }
    #expect(found)
  }

  /// The rules of firestore-api.md, section 4.3, as examples.
  private static let rows: [(filter: QueryFilter, value: Value, expected: Bool)] = [
    (.field(field("f"), .equal, .null), .null, false),
    (.field(field("f"), .equal, .double(.nan)), .double(.nan), false),
    (.field(field("f"), .equal, 1), 1.0, true),
    (.field(field("f"), .lessThanOrEqual, 2), .double(.nan), false),
    (.field(field("f"), .greaterThan, .double(-.infinity)), .double(.nan), false),
    (.field(field("f"), .greaterThan, 1), "a", false),
    (.field(field("f"), .notEqual, 1), "a", true),
    (.field(field("f"), .notEqual, 1), .double(.nan), true),
    (.field(field("f"), .notEqual, 1), .null, false),
    (.field(field("f"), .notEqual, .null), 1, false),
    (.field(field("f"), .in, [.null, .double(.nan)]), .null, false),
    (.field(field("f"), .in, [1, [2]]), [2.0], true),
    (.field(field("f"), .notIn, [1, .null]), 2, false),
    (.field(field("f"), .notIn, [.double(.nan)]), .double(.nan), false),
    (.field(field("f"), .arrayContains, 1), [2, 1.0], true),
    (.field(field("f"), .arrayContains, .null), [.null], false),
    (.field(field("f"), .arrayContainsAny, [3, "a"]), ["a"], true),
    (.unary(field("f"), .isNotNull), .double(.nan), true),
    (.unary(field("f"), .isNotNaN), "a", true),
    (.unary(field("f"), .isNotNaN), .null, false),
    (.field(field("f.k"), .equal, 1), map(("k", 1)), true),
    (.field(field("f.k"), .equal, 1), 1, false),
    (.field(field("f"), .equal, map(("k", 1.0))), map(("k", 1)), true),
    (.and([]), 1, true),
  ]

  @Test(arguments: rows) func matchesTheDocumentedExamples(filter: QueryFilter, value: Value, expected: Bool) throws {
    var matcher = DocumentMatcher(filter, in: database)
    let found = try fields(("f", value)).withMap { (map) throws(WireError) in
      try matcher.matches(map, at: document("c/x").path)
    }
    #expect(found == expected, "\(filter) on \(value)")
  }
}
