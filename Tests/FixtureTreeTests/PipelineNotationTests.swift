import DocumentModel
import FixtureTree
import Testing

/// The notation of pipelines in files.
@Suite struct PipelineNotationTests {
  private static let database = DatabaseID(project: "demo").unsafelyUnwrapped

  private static func call(_ name: String, _ arguments: PipelineArgument...) -> PipelineArgument {
    .function(PipelineCall(name, arguments))
  }
  private static func int(_ number: Int64) -> PipelineArgument { .constant(.integer(number)) }
  private static func text(_ text: String) -> PipelineArgument { .constant(.string(text)) }
  private static func path(_ path: String) -> PipelineArgument { .constant(.reference(path)) }
  private static func order(_ expression: PipelineArgument, _ direction: String) -> PipelineArgument {
    .entries([.init("direction", text(direction)), .init("expression", expression)])
  }
  private static let a = PipelineArgument.field("a")
  private static let b = PipelineArgument.field("b")

  static let stages: [(String, PipelineCall)] = [
    ("collection(/users)", PipelineCall("collection", [path("/users")])),
    ("documents(/a/b, /a/c)", PipelineCall("documents", [path("/a/b"), path("/a/c")])),
    (#"collection_group("items")"#, PipelineCall("collection_group", [path(""), text("items")])),
    (#"collection_group(/shops/s1, "items")"#, PipelineCall("collection_group", [path("/shops/s1"), text("items")])),
    ("database()", PipelineCall("database")),
    (
      "literals({a: 1, 'b c': \"x\"})",
      PipelineCall("literals", [.entries([.init("a", int(1)), .init("b c", text("x"))])])
    ),
    ("limit(3)", PipelineCall("limit", [int(3)])),
    (
      #"find_nearest(a, [1, 0.5], "cosine", limit: 2)"#,
      PipelineCall(
        "find_nearest", [a, .constant(.vector([1, 0.5])), text("cosine")], options: [.init("limit", int(2))])
    ),
    (
      "select(a, n.m: a + 1)",
      PipelineCall("select", [.entries([.init("a", a), .init("n.m", call("add", a, int(1)))])])
    ),
    (
      "aggregate(n: count(), s: sum(a) by b, k: to_lower(a))",
      PipelineCall(
        "aggregate",
        [
          .entries([.init("n", call("count")), .init("s", call("sum", a))]),
          .entries([.init("b", b), .init("k", call("to_lower", a))]),
        ])
    ),
    ("aggregate(n: count())", PipelineCall("aggregate", [.entries([.init("n", call("count"))]), .entries([])])),
    (
      "sort(a desc, b asc, a)",
      PipelineCall("sort", [order(a, "descending"), order(b, "ascending"), order(a, "ascending")])
    ),
    ("unnest(a, b, index_field: i)", PipelineCall("unnest", [a, b], options: [.init("index_field", .field("i"))])),
    (
      "union(collection(/x) limit(1))",
      PipelineCall(
        "union",
        [
          .pipeline([
            PipelineCall("collection", [path("/x")]), PipelineCall("limit", [int(1)]),
          ])
        ])
    ),
    ("remove_fields(a, `b c`.d)", PipelineCall("remove_fields", [a, .field("`b c`.d")])),
  ]

  @Test(arguments: stages.indices) func stagesAreParsed(row: Int) throws {
    let (text, stage) = Self.stages[row]
    #expect(try PipelineNotation.parse(Array(text.utf8), file: "f", in: Self.database) == [stage])
  }

  static let conditions: [(String, PipelineArgument)] = [
    ("a == 1", call("equal", a, int(1))), ("a!=-1", call("not_equal", a, int(-1))),
    ("a <= 1.5", call("less_than_or_equal", a, .constant(.double(1.5)))),
    (
      "a > 2025-03-01", call("greater_than", a, .constant(.timestamp(Timestamp(rfc3339: "2025-03-01T00:00:00Z".utf8)!)))
    ),
    (
      "a < 2025-03-01T10:30:00Z",
      call("less_than", a, .constant(.timestamp(Timestamp(rfc3339: "2025-03-01T10:30:00Z".utf8)!)))
    ),
    (#"a in ["x", b]"#, call("equal_any", a, .elements([text("x"), b]))),
    (
      "a == 1 and b == 2 or not exists(a)",
      call("or", call("and", call("equal", a, int(1)), call("equal", b, int(2))), call("not", call("exists", a)))
    ),
    (
      "a == 1 and (b == 2 or b == 3)",
      call("and", call("equal", a, int(1)), call("or", call("equal", b, int(2)), call("equal", b, int(3))))
    ),
    ("not(a) and b", call("and", call("not", a), b)),
    (
      "a + b * 2 - 1 == a / b",
      call("equal", call("subtract", call("add", a, call("multiply", b, int(2))), int(1)), call("divide", a, b))
    ),
    ("a-1 == 2", call("equal", call("subtract", a, int(1)), int(2))),
    ("$v == null", call("equal", .variable("v"), .constant(.null))),
    ("a == /users/ann", call("equal", a, path("projects/demo/databases/(default)/documents/users/ann"))),
    (#"a == "x\n\"y\"""#, call("equal", a, text("x\n\"y\""))), (#"a == 'x\n"'"#, call("equal", a, text(#"x\n""#))),
    ("array_contains(a, 1) # why\n", call("array_contains", a, int(1))),
    (
      "scalar(subcollection('x') aggregate(n: count())) > 1",
      call(
        "greater_than",
        call(
          "scalar",
          .pipeline([
            PipelineCall("subcollection", [text("x")]),
            PipelineCall("aggregate", [.entries([.init("n", call("count"))]), .entries([])]),
          ])), int(1))
    ),
    ("a == 1e3", call("equal", a, .constant(.double(1000)))),
    ("a == -Infinity", call("equal", a, .constant(.double(-.infinity)))),
  ]

  @Test(arguments: conditions.indices) func expressionsAreParsed(row: Int) throws {
    let (condition, argument) = Self.conditions[row]
    let text = "collection(/c)\n  where(\(condition))"
    #expect(
      try PipelineNotation.parse(Array(text.utf8), file: "f", in: Self.database)
        == [PipelineCall("collection", [Self.path("/c")]), PipelineCall("where", [argument])])
  }

  static let mistakes: [(String, line: Int, column: Int, String)] = [
    ("collection(/c)\nwhere(a = 1)", 2, 9, "write == instead of ="),
    ("collection(/c)\nwhere a == 1", 2, 7, "expected '(' after 'where'"),
    ("collection(/c) where(a ==", 1, 26, "expected a value, a field or a function, but the text ends"),
    ("collection(/c) where(\"x)", 1, 22, "the string that begins here has no closing quote"),
    ("collection(/c) select(1)", 1, 23, "expected a name and ':' before this expression"),
    ("collection(/c) limit(3", 1, 23, "expected ')' or ',', but the text ends"),
    ("collection(/c) limit(3x)", 1, 22, "'3x' is neither a number nor a time"),
    ("collection(/c) | limit(3)", 1, 16, "expected the name of a stage, such as where"),
    ("collection(/c) where(a.b(1))", 1, 22, "'a.b' is not the name of a function"),
    ("collection(/c) where(\(String(repeating: "(", count: 99))a", 1, 82, "nested deeper than 60"),
  ]

  @Test(arguments: mistakes.indices) func mistakesHaveAPlace(row: Int) throws {
    let (text, line, column, message) = Self.mistakes[row]
    let error = #expect(throws: FixtureTreeError.self) {
      try PipelineNotation.parse(Array(text.utf8), file: "f", in: Self.database)
    }
    #expect(error?.line == line && error?.column == column, "\(String(describing: error))")
    #expect(error?.message.contains(message) == true, "\(String(describing: error))")
  }
}
