import Testing

/// Invalid pipelines: the status, and a part of the text, which names the stage.
@Suite struct PipelineErrorTests {
  private static let books = Pipe.collection("books")
  private static let count = Pipe.map(("n", Pipe.call("count")))

  static let cases: [(stages: [String], text: String)] = [
    ([], "A pipeline must have at least one stage."),
    ([Pipe.stage("where", Pipe.field("a"))], "Stage 1 (where): The first stage must be an input stage"),
    ([books, books], "Stage 2 (collection): This stage can only be the first of a pipeline."),
    ([books, Pipe.stage("invalid_stage")], "Stage 2 (invalid_stage): Unknown stage."),
    (
      [books, Pipe.stage("select", Pipe.field("a"))],
      "Stage 2 (select): Expected fields to be MAP_VALUE, but was FIELD_REFERENCE_VALUE."
    ),
    ([books, Pipe.stage("limit", Pipe.int(-1))], "Stage 2 (limit): limit must not be negative"),
    ([books, Pipe.stage("limit")], "Stage 2 (limit): The stage takes 1 arguments, but has 0."),
    ([books, Pipe.stage("limit", Pipe.text("x"))], "Expected limit to be INTEGER_VALUE, but was STRING_VALUE."),
    (
      [Pipe.stage("collection", Pipe.reference("/books"), options: #"{"speed": \#(Pipe.int(1))}"#)],
      "Stage 1 (collection): Unknown option \"speed\"."
    ),
    (
      [Pipe.stage("collection", Pipe.reference("/books"), options: #"{"force_index": \#(Pipe.text("abc"))}"#)],
      "force_index: the index \"abc\" does not exist."
    ),
    ([Pipe.collection("books/a")], "/books/a is not the path of a collection."),
    ([Pipe.stage("collection", Pipe.reference("books"))], "\"books\" does not begin with \"/\"."),
    (
      [Pipe.stage("documents", Pipe.reference("/books/a"), Pipe.reference("/books/a"))],
      "The document /books/a occurs twice."
    ),
    ([Pipe.stage("subcollection", Pipe.text("reviews"))], "start of a nested pipeline"),
    (
      [books, Pipe.stage("union", Pipe.nested(Pipe.stage("subcollection", Pipe.text("reviews"))))],
      "Stage 2 (union): Stage 1 (subcollection): subcollection is only allowed at the start of a nested pipeline."
    ),
    (
      [books, Pipe.stage("where", Pipe.call("no_such", Pipe.field("a")))], "Stage 2 (where): unknown function 'no_such'"
    ),
    ([books, Pipe.stage("where", Pipe.call("equal", Pipe.field("a")))], "Stage 2 (where): function 'equal' takes 2"),
    (
      [books, Pipe.stage("where", Pipe.call("equal", Pipe.field("a"), Pipe.variable("v")))],
      "Stage 2 (where): unknown variable 'v'"
    ),
    (
      [
        books, Pipe.stage("let", Pipe.map(("v", Pipe.int(1)))), Pipe.stage("aggregate", count),
        Pipe.stage("select", Pipe.map(("v", Pipe.variable("v")))),
      ], "Stage 4 (select): unknown variable 'v'"
    ),
    (
      [books, Pipe.stage("aggregate", Pipe.map(), Pipe.map(("g", Pipe.field("g"))))],
      "requires at least one accumulator"
    ),
    ([books, Pipe.stage("aggregate", Pipe.map(("n", Pipe.field("a"))))], "n: an accumulator is required"),
    (
      [books, Pipe.stage("select", Pipe.map(("a", Pipe.field("x")), ("a.b", Pipe.field("y"))))],
      "Stage 2 (select): The field a.b occurs twice, or contains another one that occurs."
    ),
    ([books, Pipe.stage("sample", Pipe.double(1.5), Pipe.text("percent"))], "percent must be from 0.0 to 1.0."),
    (
      [books, Pipe.stage("sort", Pipe.map(("direction", Pipe.text("ascending"))))],
      "ordering 1: the expression is missing."
    ),
    (
      [books, Pipe.stage("delete"), Pipe.stage("limit", Pipe.int(1))],
      "Stage 2 (delete): This stage can only be the last"
    ),
    (
      [books, Pipe.stage("distinct", Pipe.map(("a", Pipe.field("a")))), Pipe.stage("delete")],
      "Stage 3 (delete): This stage cannot follow distinct."
    ),
    ([books, Pipe.stage("select", Pipe.map(("s", Pipe.call("scalar", Pipe.nested(books)))))], "multiple results"),
    (
      [books, Pipe.stage("select", Pipe.map(("x", Pipe.call("divide", Pipe.int(1), Pipe.int(0)))))],
      "Stage 2 (select): divide: division by zero"
    ),
    ([books, Pipe.stage("replace_with", Pipe.field("title"), Pipe.text("full_replace"))], "not a map"),
    (
      [
        books, Pipe.stage("let", Pipe.map(("x", Pipe.int(5)))),
        Pipe.stage(
          "select",
          Pipe.map(
            (
              "r",
              Pipe.call(
                "array_transform", Pipe.list(Pipe.int(1), Pipe.int(2)), Pipe.text("x"),
                Pipe.call(
                  "scalar",
                  Pipe.nested(
                    Pipe.stage("literals", Pipe.map(("a", Pipe.int(1)))),
                    Pipe.stage("select", Pipe.map(("q", Pipe.variable("x")))))))
            ))),
      ], "Stage 3 (select): Stage 2 (select): unknown variable 'x'"
    ),
    (
      [books, Pipe.stage("let", Pipe.map(("\\u00003", Pipe.int(1))))],
      "Stage 2 (let): The name of a variable contains the character NUL."
    ),
    (
      [books, Pipe.stage("select", Pipe.map(("x", Pipe.variable("\\u00000"))))],
      "Stage 2 (select): The name of a variable contains the character NUL."
    ),
    (
      [books, Pipe.stage("unnest", Pipe.field("tags"), Pipe.field("__name__"))],
      "Stage 2 (unnest): A field cannot have the name __name__. Use another alias."
    ),
    (
      [books, Pipe.stage("aggregate", Pipe.map(("__name__", Pipe.call("count"))))],
      "Stage 2 (aggregate): A field cannot have the name __name__."
    ),
    (
      [
        books,
        Pipe.stage(
          "find_nearest", Pipe.field("v"),
          #"{"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": \#(Pipe.list(Pipe.double(1)))}}}"#,
          Pipe.text("euclidean"), options: #"{"distance_field": \#(Pipe.field("__name__"))}"#),
      ], "Stage 2 (find_nearest): A field cannot have the name __name__."
    ),
    (
      [
        books,
        Pipe.stage(
          "unnest", Pipe.field("tags"), Pipe.field("x"), options: #"{"index_field": \#(Pipe.field("x"))}"#),
      ], "Stage 2 (unnest): The field x occurs twice"
    ),
    ([books, Pipe.stage("replace_with", Pipe.field("info"), Pipe.text("merge"))], "unknown mode \"merge\""),
  ]

  @Test func errorsNameTheStage() throws {
    let server = try PipelineStageTests.server()
    for (stages, text) in Self.cases {
      let reply = try server.pipeline(stages)
      #expect(reply.status == 400 && reply.message.contains(text), "\(text)\n\(reply.text)")
      #expect(reply.json(0, "error", "status") == "INVALID_ARGUMENT")
    }
  }

  @Test func twentyNestedPipelinesAreTheLimit() throws {
    func nested(_ depth: Int) -> String {
      let inner =
        depth == 0
        ? Pipe.int(1)
        : Pipe.call("scalar", Pipe.nested(Pipe.stage("literals", Pipe.map(("x", Pipe.int(1)))), nested(depth - 1)))
      return Pipe.stage("select", Pipe.map(("x", inner)))
    }
    let server = try TestServer()
    let literal = Pipe.stage("literals", Pipe.map(("x", Pipe.int(1))))
    #expect(Pipe.rows(try server.pipeline([literal, nested(20)])) == ["{x: 1}"])
    let reply = try server.pipeline([literal, nested(21)])
    #expect(reply.status == 400 && reply.message.contains("more than 20 levels"), "\(reply.text)")
  }

  @Test func databaseOfTheBodyMustAgree() throws {
    let server = try TestServer()
    let stages = [Pipe.collection("books")]
    #expect(try server.pipeline(stages, more: #", "unused": 1"#).status == 400)
    func reply(_ database: String) throws -> TestServer.Response {
      try server.pipeline(stages, more: #", "database": "projects/p/databases/\#(database)""#)
    }
    #expect(try reply("(default)").status == 200)
    let other = try reply("other")
    #expect(other.json(0, "error", "status") == "INVALID_ARGUMENT", "\(other.text)")
  }
}
