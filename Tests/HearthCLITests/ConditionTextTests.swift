import DocumentModel
import Testing
import TestSupport

@testable import HearthCLI

/// The parsing of conditions, values and orders.
@Suite struct ConditionTextTests {
  private static let database = DatabaseID(project: "demo").unsafelyUnwrapped
  private static let root = database.documentsRoot

  private static func is1(_ path: String, _ op: FieldOperator, _ value: Value = 1) -> QueryFilter {
    .field(field(path), op, value)
  }
  private static func time(_ text: String) -> Value { .timestamp(Timestamp(rfc3339: text.utf8).unsafelyUnwrapped) }

  private static let conditions: [(String, QueryFilter)] = [
    ("a == 1", is1("a", .equal)), ("a==1", is1("a", .equal)), ("  a  ==  1  ", is1("a", .equal)),
    ("a != 1", is1("a", .notEqual)), ("a < 1", is1("a", .lessThan)), ("a <= 1", is1("a", .lessThanOrEqual)),
    ("a > 1", is1("a", .greaterThan)), ("a >= 1", is1("a", .greaterThanOrEqual)),
    ("a>=1", is1("a", .greaterThanOrEqual)),
    ("a in [1, 2]", is1("a", .in, [1, 2])), ("a in []", is1("a", .in, [])),
    ("a in [[1], [2]]", is1("a", .in, [[1], [2]])),
    ("a not-in [1]", is1("a", .notIn, [1])), ("a not in [1]", is1("a", .notIn, [1])),
    ("a contains 1", is1("a", .arrayContains)), ("a array-contains 1", is1("a", .arrayContains)),
    ("a contains-any [1]", is1("a", .arrayContainsAny, [1])),
    ("a array-contains-any [1]", is1("a", .arrayContainsAny, [1])),
    ("a is null", .unary(field("a"), .isNull)), ("a is not null", .unary(field("a"), .isNotNull)),
    ("a is nan", .unary(field("a"), .isNaN)), ("a is not NaN", .unary(field("a"), .isNotNaN)),
    ("a == null", .unary(field("a"), .isNull)), ("a != null", .unary(field("a"), .isNotNull)),
    ("a == NaN", .unary(field("a"), .isNaN)), ("a != NaN", .unary(field("a"), .isNotNaN)),
    ("a == b", is1("a", .equal, "b")),
    ("a in [b, 'c d', 2025-03-01]", is1("a", .in, .array(["b", "c d", time("2025-03-01T00:00:00Z")]))),
    ("a == -1.5", is1("a", .equal, -1.5)), ("a == 1e3", is1("a", .equal, .double(1000))),
    ("a == 1.0", is1("a", .equal, 1.0)),
    ("a == true", is1("a", .equal, true)), ("a < Infinity", is1("a", .lessThan, .double(.infinity))),
    (#"a == "b c""#, is1("a", .equal, "b c")), (#"a == "b \"c\" \n""#, is1("a", .equal, "b \"c\" \n")),
    (#"a == 'b "c"'"#, is1("a", .equal, #"b "c""#)), ("a == ''", is1("a", .equal, "")),
    ("t >= 2025-03-01", is1("t", .greaterThanOrEqual, time("2025-03-01T00:00:00Z"))),
    ("t >= 2025-03-01T14:30", is1("t", .greaterThanOrEqual, time("2025-03-01T14:30:00Z"))),
    ("t >= 2025-03-01T14:30:01.5Z", is1("t", .greaterThanOrEqual, time("2025-03-01T14:30:01.5Z"))),
    ("t >= 2025-03-01T14:30:00+02:00", is1("t", .greaterThanOrEqual, time("2025-03-01T12:30:00Z"))),
    (
      "t in [2025-03-01, 2025-03-02]",
      is1("t", .in, .array([time("2025-03-01T00:00:00Z"), time("2025-03-02T00:00:00Z")]))
    ),
    (#"t == "2025-03-01""#, is1("t", .equal, "2025-03-01")),
    (#"u == {"$ref": "users/ann"}"#, is1("u", .equal, .reference("\(root)/users/ann"))),
    (#"u in [{"$ref": "users/ann"}, 'x']"#, is1("u", .in, .array([.reference("\(root)/users/ann"), "x"]))),
    (#"m == {"x": [1, {"$double": 2}]}"#, is1("m", .equal, map(("x", [1, 2.0])))),
    ("__name__ > ann", is1("__name__", .greaterThan, .reference("\(root)/c/ann"))),
    (#"__name__ == "x y""#, is1("__name__", .equal, .reference("\(root)/c/x y"))),
    ("__name__ in [a, d/b]", is1("__name__", .in, .array([.reference("\(root)/c/a"), .reference("\(root)/d/b")]))),
    // A slash is a separator even if a combining mark follows it.
    ("__name__ > d/\u{301}b", is1("__name__", .greaterThan, .reference("\(root)/d/\u{301}b"))),
    ("a.`b c`.d == 1", is1("a.`b c`.d", .equal)), ("`a == b` == 1", is1("`a == b`", .equal)),
    ("a == 1 and b == 1", .and([is1("a", .equal), is1("b", .equal)])),
    ("a == 1 or b == 1", .or([is1("a", .equal), is1("b", .equal)])),
    ("a == 1 or b == 1 and c == 1", .or([is1("a", .equal), .and([is1("b", .equal), is1("c", .equal)])])),
    ("(a == 1 or b == 1) and c == 1", .and([.or([is1("a", .equal), is1("b", .equal)]), is1("c", .equal)])),
    ("order == 1", is1("order", .equal)), ("a == 'x' or(b == 1)", .or([is1("a", .equal, "x"), is1("b", .equal)])),
  ]

  @Test(arguments: conditions) func conditionsAreParsed(text: String, filter: QueryFilter) throws {
    #expect(try ConditionText.filter(text, in: collection("c"), of: Self.database) == filter)
  }

  @Test(
    arguments: [
      ("", 64, "expected the name of a field (at its end)"), ("a", 64, "expected an operator after a: ==, !="),
      ("a = 1", 64, "write == instead of ="), ("a => 1", 64, "write == instead of ="),
      ("a ==", 64, "expected a value (at its end)"),
      ("a == and", 64, "expected a value (at character 6)"),
      ("a == New York", 64, "or the end; text with spaces needs quotes (at character 10)"),
      ("a == True", 64, #"'True' is ambiguous; write true, or for text "True" (at character 6)"#),
      ("a == 00123", 64, #"'00123' is neither a number nor a date; for text, write "00123""#),
      ("a == 1 b", 64, "expected 'and' or 'or', or the end"),
      ("a is 1", 64, "expected 'null' or 'nan' after 'is'"), ("a not 1", 64, "expected 'in' after 'not'"),
      ("a in 1", 64, "expected a list such as [1, 2]"), ("a in [1", 64, "expected ',' or ']'"),
      ("a == 'x", 64, "has no closing quote (at character 6)"), (#"a == "x"#, 64, "has no closing quote"),
      (#"a == {"x": 1"#, 64, "is not closed"), ("t > 2025-13-01", 64, "'2025-13-01' is not a valid date"),
      ("t > 2025-03-01T1", 64, "is not a valid date"), ("(a == 1", 64, "expected ')', 'and' or 'or'"),
      ("a..b == 1", 64, "'a..b' is not a field path"), ("__name__ == a/b/c", 64, "expected the ID of a document"),
      (String(repeating: "(", count: 40) + "a == 1", 64, "nested deeper than 20"),
      (#"a == {"$ref": 1}"#, 65, "the value of --where"),
      (#"a == {"$timestamp": "x"}"#, 65, #"the value of --where:1:16: "x" is not a timestamp"#),
      (#"a == {"k": {"$timestamp": "x"}}"#, 65, #"the value of --where:1:22: field "k": "x" is not a timestamp"#),
      ("a == 1x", 64, #"'1x' is neither a number nor a date; for text, write "1x" (at character 6)"#),
      ("a == 99999999999999999999999999999999999999e999", 65, "the value of --where"),
    ] as [(String, Int32, String)])
  func mistakesAreExplained(text: String, code: Int32, message: String) {
    let error = #expect(throws: (any Error).self) {
      try ConditionText.filter(text, in: collection("c"), of: Self.database)
    }
    let failure = error.map { CommandFailure($0) }
    #expect(failure?.exitCode == code)
    #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
  }

  private static let assignments: [(String, Value)] = [
    ("Bob", "Bob"), ("Bob Smith", "Bob Smith"), (" a, b (c) ", "a, b (c)"), (#""12""#, "12"), ("'12'", "12"),
    ("''", ""),
    ("12", 12), (" 12 ", 12), ("-1.5", -1.5), ("true", true), ("null", .null), ("NaN", .double(.nan)),
    ("2025-01-01", time("2025-01-01T00:00:00Z")), ("2025-01-01T10:00+02:00", time("2025-01-01T08:00:00Z")),
    ("+39 055", "+39 055"), ("a=b", "a=b"), ("in", "in"), ("[a, 1, 'x y']", ["a", 1, "x y"]), ("[]", []),
    (#"{"x": {"$double": 1}}"#, map(("x", 1.0))), (#"{"$ref": "users/ann"}"#, .reference("\(root)/users/ann")),
    ("Zoë", "Zoë"), ("-", "-"), ("it's", "it's"),
  ]

  /// The values of `set` and `update` follow the rules of conditions.
  @Test(arguments: assignments) func assignedValuesAreParsed(text: String, value: Value) throws {
    let parsed = try ValueText.assigned(text, to: "f", of: Self.database)
    #expect(parsed == value || "\(parsed)" == "\(value)")
  }

  @Test(
    arguments: [
      ("", "'f=' has no value"), ("00123", #"'00123' is neither a number nor a date; for text, write 'f="00123"'"#),
      ("12 Main Street", "is neither a number nor a date; for text, write"), ("2025-02-30", "is not a valid date"),
      ("NULL", "'NULL' is ambiguous; write null, or for text"), ("'a", "has no closing quote (at character 3)"),
      (#""a" b"#, "expected one value, or the end"), ("[a b]", "expected ',' or ']'"), ("{", "is not closed"),
    ] as [(String, String)])
  func ambiguousValuesAreExplained(text: String, message: String) {
    let error = #expect(throws: CommandFailure.self) { try ValueText.assigned(text, to: "f", of: Self.database) }
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }

  @Test(arguments: [("/c/d/", "c/d"), ("//c", "c"), ("/\u{301}c/d", "\u{301}c/d"), ("/", "")])
  func slashesAroundAPathAreIgnored(written: String, path: String) throws {
    #expect(try DatabaseChoice.path(written).bytes == Array(path.utf8))
  }

  private static func options(_ words: String...) throws -> QueryOptions {
    try QueryOptions(try Arguments(words, for: .query), database)
  }

  @Test func optionsBecomeAQuery() throws {
    let options = try Self.options(
      "users/u1/history", "--where", "a == 1", "--where", "b > 2", "--order", "b:desc,__name__", "--order", "c",
      "--limit",
      "5", "--offset", "2", "--select", "a, m.x", "--start-after", "3, h7", "--end-at", "1", "--at", "2025-03-01T10:00")
    var query = Query(parent: document("users/u1").path, collectionID: "history")
    query.filter = .and([Self.is1("a", .equal), Self.is1("b", .greaterThan, 2)])
    query.orders = [Order(field("b"), isDescending: true), Order(field("__name__")), Order(field("c"))]
    query.limit = 5
    query.offset = 2
    query.projection = mask("a", "m.x")
    query.start = QueryBound([3, .reference("\(Self.root)/users/u1/history/h7")], isBefore: false)
    query.end = QueryBound([1], isBefore: false)
    #expect(options.query == query)
    #expect(options.readTime == Timestamp(rfc3339: "2025-03-01T10:00:00Z".utf8))
    let group = try Self.options(
      "/users/u1/history/", "--group", "--start-at", "2025-03-01", "--where", "t > 2024-01-01")
    #expect(group.query.includesDescendants)
    #expect(group.query.start == QueryBound([Self.time("2025-03-01T00:00:00Z")], isBefore: true))
    #expect(
      try Self.options("c", "--end-before", "x").query.end
        == QueryBound([.reference("\(Self.root)/c/x")], isBefore: true))
    let numbers = try Self.options("c", "--count", "--sum", "a,b", "--avg", "m.x", "--analyze")
    #expect(numbers.aggregations.map(\.alias) == ["count", "sum(a)", "sum(b)", "avg(m.x)"])
    #expect(numbers.explain == .analyze)
  }

  @Test(
    arguments: [
      (["users/ann"], "show it with `hearth get users/ann`"), (["users/*/habits"], "--group"),
      (["/"], "give the path of a collection"),
      (["c", "--order", "a:down"], "expected 'asc' or 'desc'"), (["c", "--order", "a b"], "expected ':', ','"),
      (["c", "--select", ""], "the name of a field"), (["c", "--limit", "-1"], "whole number"),
      (["c", "--start-at", "1", "--start-after", "2"], "exclude each other"),
      (["c", "--at", "noon"], "must be a time"),
      (["c", "--count", "--select", "a"], "cannot be used with"), (["c", "--start-at", "1 2"], "expected ','"),
    ] as [([String], String)])
  func invalidOptionsAreExplained(words: [String], message: String) {
    let failure = #expect(throws: CommandFailure.self) {
      try QueryOptions(try Arguments(words, for: .query), Self.database)
    }
    #expect(failure?.exitCode == 64)
    #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
  }

  @Test func arraysAreSplitWhereverTheirPiecesEnd() throws {
    let elements = [#"{"a":"x\"]}{\\"}"#, #"{"b":[{"c":[]},"{"]}"#, "{}"]
    let text = Array("[\(elements.joined(separator: ",\n"))]".utf8)
    for size in 1...text.count {
      var cutter = ArrayElements()
      var found: [String] = []
      for start in stride(from: 0, to: text.count, by: size) {
        #expect(!cutter.isComplete)
        try cutter.feed(Array(text[start..<min(start + size, text.count)])) {
          found.append(String(decoding: $0, as: UTF8.self))
        }
      }
      #expect(found == elements)
      #expect(cutter.isComplete)
    }
  }
}
