import Testing

/// The stages of pipelines over REST: the rows of a response, in a short form.
@Suite struct PipelineStageTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let stages: [String]
    let rows: [String]

    init(_ name: String, _ stages: [String], _ rows: [String]) {
      testDescription = name
      self.stages = stages
      self.rows = rows
    }
  }

  private static let books = Pipe.collection("books")
  private static let idOnly = Pipe.stage("select", Pipe.map(("__name__", Pipe.field("__name__"))))
  private static func titles(_ more: (String, String)...) -> String {
    let fields = ([("t", Pipe.field("title"))] + more).map { #""\#($0.0)": \#($0.1)"# }.joined(separator: ",")
    return Pipe.stage("select", #"{"mapValue": {"fields": {\#(fields)}}}"#)
  }
  private static func sorted(_ field: String, descending: Bool = false) -> String {
    Pipe.stage("sort", Pipe.order(Pipe.field(field), descending: descending))
  }

  static let cases: [Case] = [
    Case("a collection in name order", [books, idOnly], ["a{}", "b{}", "c{}", "d{}"]),
    Case(
      "a collection group",
      [Pipe.stage("collection_group", Pipe.reference(""), Pipe.text("reviews")), idOnly], ["r1{}", "r2{}", "r3{}"]),
    Case(
      "a collection group below a document",
      [Pipe.stage("collection_group", Pipe.reference("/books/a"), Pipe.text("reviews")), idOnly], ["r1{}", "r2{}"]),
    Case(
      "the whole database",
      [
        Pipe.stage("database"),
        Pipe.stage("aggregate", Pipe.map(("n", Pipe.call("count"))), Pipe.map()),
      ], ["{n: 7}"]),
    Case(
      "documents, one missing",
      [
        Pipe.stage("documents", Pipe.reference("/books/c"), Pipe.reference("/books/x"), Pipe.reference("/books/a")),
        idOnly,
      ],
      ["c{}", "a{}"]),
    Case(
      "literals with an expression",
      [
        Pipe.stage(
          "literals", Pipe.map(("x", Pipe.int(1))), Pipe.map(("x", Pipe.call("add", Pipe.int(1), Pipe.int(2)))))
      ],
      ["{x: 1}", "{x: 3}"]),
    Case(
      "where keeps only true",
      [books, Pipe.stage("where", Pipe.call("greater_than", Pipe.field("rating"), Pipe.int(3))), idOnly],
      ["a{}", "b{}"]),
    Case(
      "where drops null, absent and errors",
      [books, Pipe.stage("where", Pipe.call("not", Pipe.field("title"))), idOnly], []),
    Case(
      "select of nested aliases merges maps",
      [
        books, Pipe.stage("limit", Pipe.int(1)),
        Pipe.stage("select", Pipe.map(("m.x", Pipe.field("rating")), ("m.y", Pipe.field("title")))),
      ], ["{m: {x: 5, y: 'Emma'}}"]),
    Case(
      "select leaves absent values out",
      [books, titles(("r", Pipe.field("rating"))), Pipe.stage("offset", Pipe.int(3))],
      ["{t: 'Dune'}"]),
    Case(
      "add_fields and remove_fields",
      [
        books, Pipe.stage("limit", Pipe.int(1)),
        Pipe.stage("add_fields", Pipe.map(("info.pages", Pipe.int(7)), ("rating", Pipe.field("nowhere")))),
        Pipe.stage("remove_fields", Pipe.field("title"), Pipe.field("info.year")),
      ], ["a{genre: 'novel', info: {pages: 7}, tags: ['x', 'y']}"]),
    Case(
      "sort has null and absent first", [books, sorted("rating"), titles(("r", Pipe.field("rating")))],
      ["{t: 'Dune'}", "{r: 2, t: 'Cats'}", "{r: 4, t: 'Bible'}", "{r: 5, t: 'Emma'}"]),
    Case(
      "sort with limit", [books, sorted("rating", descending: true), Pipe.stage("limit", Pipe.int(2)), idOnly],
      ["a{}", "b{}"]),
    Case(
      "offset after limit", [books, Pipe.stage("limit", Pipe.int(3)), Pipe.stage("offset", Pipe.int(2)), idOnly],
      ["c{}"]),
    Case("limit 0", [books, Pipe.stage("limit", Pipe.int(0))], []),
    Case(
      "aggregate with groups",
      [
        books,
        Pipe.stage(
          "aggregate", Pipe.map(("n", Pipe.call("count")), ("best", Pipe.call("maximum", Pipe.field("rating")))),
          Pipe.map(("g", Pipe.field("genre")))), sorted("g"),
      ], ["{best: null, n: 1}", "{best: 5, g: 'novel', n: 2}", "{best: 4, g: 'other', n: 1}"]),
    Case(
      "aggregate over no rows",
      [
        Pipe.collection("nothing"),
        Pipe.stage("aggregate", Pipe.map(("n", Pipe.call("count")), ("s", Pipe.call("sum", Pipe.field("x"))))),
      ], ["{n: 0, s: 0}"]),
    Case(
      "aggregate with groups over no rows",
      [
        Pipe.collection("nothing"),
        Pipe.stage("aggregate", Pipe.map(("n", Pipe.call("count"))), Pipe.map(("g", Pipe.field("x")))),
      ], []),
    Case(
      "distinct",
      [
        books, Pipe.stage("where", Pipe.call("exists", Pipe.field("genre"))),
        Pipe.stage("distinct", Pipe.map(("g", Pipe.field("genre")))), sorted("g"),
      ], ["{g: 'novel'}", "{g: 'other'}"]),
    Case(
      "unnest with an index",
      [
        books, Pipe.stage("limit", Pipe.int(2)),
        Pipe.stage("unnest", Pipe.field("tags"), Pipe.field("tag"), options: #"{"index_field": \#(Pipe.field("i"))}"#),
        titles(("tag", Pipe.field("tag")), ("i", Pipe.field("i"))),
      ], ["{i: 0, t: 'Emma', tag: 'x'}", "{i: 1, t: 'Emma', tag: 'y'}", "{i: null, t: 'Bible'}"]),
    Case(
      "unnest of an empty array gives no row",
      [
        Pipe.stage("literals", Pipe.map(("x", Pipe.list()))), Pipe.stage("unnest", Pipe.field("x"), Pipe.field("y")),
      ], []),
    Case(
      "replace_with",
      [
        books, Pipe.stage("limit", Pipe.int(1)),
        Pipe.stage("replace_with", Pipe.field("info"), Pipe.text("full_replace")),
      ], ["{year: 1815}"]),
    Case(
      "replace_with keeps existing fields",
      [
        Pipe.stage("literals", Pipe.map(("a", Pipe.int(1)), ("m", Pipe.map(("a", Pipe.int(2)), ("b", Pipe.int(3)))))),
        Pipe.stage("replace_with", Pipe.field("m"), Pipe.text("merge_keep_existing")),
        Pipe.stage("remove_fields", Pipe.field("m")),
      ], ["{a: 1, b: 3}"]),
    Case(
      "sample of all",
      [
        books, Pipe.stage("sample", Pipe.int(10), Pipe.text("documents")), sorted("title"), idOnly,
      ], ["b{}", "c{}", "d{}", "a{}"]),
    Case("sample of nothing", [books, Pipe.stage("sample", Pipe.double(0), Pipe.text("percent"))], []),
    Case(
      "union",
      [
        books, Pipe.stage("limit", Pipe.int(1)),
        Pipe.stage("union", Pipe.nested(books, Pipe.stage("limit", Pipe.int(2)))),
        idOnly,
      ], ["a{}", "a{}", "b{}"]),
    Case(
      "let, then sort, then the variable",
      [
        books, Pipe.stage("let", Pipe.map(("v", Pipe.field("rating")))), sorted("title"),
        Pipe.stage("limit", Pipe.int(2)),
        Pipe.stage("select", Pipe.map(("v", Pipe.variable("v")))),
      ], ["{v: 4}", "{v: 2}"]),
    Case(
      "array of a nested pipeline, correlated by a variable",
      [
        books, Pipe.stage("let", Pipe.map(("g", Pipe.field("genre")))), Pipe.stage("limit", Pipe.int(2)),
        titles(
          (
            "same",
            Pipe.call(
              "array",
              Pipe.nested(
                books, Pipe.stage("where", Pipe.call("equal", Pipe.field("genre"), Pipe.variable("g"))), titles()))
          )),
      ], ["{same: ['Emma', 'Cats'], t: 'Emma'}", "{same: ['Bible'], t: 'Bible'}"]),
    Case(
      "scalar of a subcollection",
      [
        books, Pipe.stage("limit", Pipe.int(3)),
        titles(
          (
            "n",
            Pipe.call(
              "scalar",
              Pipe.nested(
                Pipe.stage("subcollection", Pipe.text("reviews")),
                Pipe.stage("aggregate", Pipe.map(("n", Pipe.call("count"))))))
          )),
      ], ["{n: 2, t: 'Emma'}", "{n: 1, t: 'Bible'}", "{n: 0, t: 'Cats'}"]),
    Case(
      "scalar without rows is null",
      [
        Pipe.stage("literals", Pipe.map(("x", Pipe.int(1)))),
        Pipe.stage("select", Pipe.map(("s", Pipe.call("scalar", Pipe.nested(Pipe.collection("nothing")))))),
      ], ["{s: null}"]),
  ]

  @Test func stagesGiveTheirRows() throws {
    let server = try Self.server()
    for example in Self.cases {
      let reply = try server.pipeline(example.stages)
      #expect(Pipe.rows(reply) == example.rows, "\(example.testDescription): \(reply.text.prefix(500))")
    }
  }

  static func server() throws -> TestServer {
    let server = try TestServer()
    try server.create([
      (
        "books/a",
        """
        {"title": \(Pipe.text("Emma")), "genre": \(Pipe.text("novel")), "rating": \(Pipe.int(5)),
         "tags": \(Pipe.list(Pipe.text("x"), Pipe.text("y"))), "info": \(Pipe.map(("year", Pipe.int(1815))))}
        """
      ),
      (
        "books/b",
        """
        {"title": \(Pipe.text("Bible")), "genre": \(Pipe.text("other")), "rating": \(Pipe.int(4)),
         "note": \(Pipe.text("A <b>Review</b>"))}
        """
      ),
      (
        "books/c",
        """
        {"title": \(Pipe.text("Cats")), "genre": \(Pipe.text("novel")), "rating": \(Pipe.int(2)),
         "note": \(Pipe.text("Reviews, reviewed"))}
        """
      ),
      ("books/d", #"{"title": \#(Pipe.text("Dune")), "note": \#(Pipe.text("review"))}"#),
      ("books/a/reviews/r1", #"{"stars": \#(Pipe.int(3))}"#), ("books/a/reviews/r2", #"{"stars": \#(Pipe.int(4))}"#),
      ("books/b/reviews/r3", #"{"stars": \#(Pipe.int(5))}"#),
    ])
    return server
  }
}
