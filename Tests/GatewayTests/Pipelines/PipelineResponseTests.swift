import Testing

/// The messages of pipelines: times, transactions, explanations, writes and rules.
@Suite struct PipelineResponseTests {
  private static let books = Pipe.collection("books")
  private static let idOnly = Pipe.stage("select", Pipe.map(("__name__", Pipe.field("__name__"))))

  @Test func rowsOfASourceHaveNameAndTimes() throws {
    let server = try TestServer()
    try server.create([("c/x", #"{"a": \#(Pipe.int(1))}"#)])
    let reply = try server.pipeline([Pipe.collection("c")])
    let expected = """
      [{"results": [{"name": "\(TestServer.name)/c/x", "fields": {"a": {"integerValue": "1"}},
        "createTime": "*", "updateTime": "*"}], "executionTime": "*"}]
      """
    #expect(matches(expected, reply), "\(reply.text)")
    let beta = try server.call(
      "POST", "/v1beta1/\(TestServer.name):executePipeline", Pipe.body([Pipe.collection("c")]))
    #expect(matches(expected, beta), "\(beta.text)")
  }

  @Test func responseWithoutRowsHasATime() throws {
    let reply = try TestServer().pipeline([Pipe.collection("c"), Pipe.stage("limit", Pipe.int(0))])
    #expect(matches(#"[{"executionTime": "*"}]"#, reply), "\(reply.text)")
  }

  @Test func readTimeShowsThePast() throws {
    let server = try PipelineStageTests.server()
    let time: String = try #require(try server.pipeline([Self.books]).json(0, "executionTime"))
    #expect(try server.call("DELETE", "/books/a").status == 200)
    #expect(Pipe.rows(try server.pipeline([Self.books, Self.idOnly])) == ["b{}", "c{}", "d{}"])
    let reply = try server.pipeline([Self.books, Self.idOnly], more: #", "readTime": "\#(time)""#)
    #expect(Pipe.rows(reply) == ["a{}", "b{}", "c{}", "d{}"], "\(reply.text)")
  }

  @Test func newTransactionComesFirst() throws {
    let server = try PipelineStageTests.server()
    let reply = try server.pipeline([Self.books, Self.idOnly], more: #", "newTransaction": {"readWrite": {}}"#)
    let transaction: String = try #require(reply.json(0, "transaction"))
    #expect(reply.json(1, "transaction") == nil)
    // Another client changes a document that the transaction has read.
    #expect(try server.call("DELETE", "/books/a").status == 200)
    let write = #"{"update": {"name": "\#(TestServer.name)/books/z", "fields": {}}}"#
    let commit = try server.call(
      "POST", ":commit", #"{"transaction": "\#(transaction)", "writes": [\#(write)]}"#)
    #expect(commit.json("error", "status") == "ABORTED", "\(commit.text)")
  }

  @Test func explanationComesWithTheLastRow() throws {
    let server = try PipelineStageTests.server()
    func explained(_ mode: String, _ format: String = "text") throws -> TestServer.Response {
      let options = Pipe.map(("mode", Pipe.text(mode)), ("output_format", Pipe.text(format)))
      return try server.pipeline(
        [Self.books, Pipe.stage("where", Pipe.call("greater_than", Pipe.field("rating"), Pipe.int(3)))],
        options: #"{"explain_options": \#(options)}"#)
    }
    let analyzed = try explained("analyze")
    #expect(Pipe.rows(analyzed).count == 2)
    let text: String = try #require(analyzed.json(1, "explainStats", "data", "value"))
    #expect(text.contains("Execution:") && text.contains("results returned: 2") && text.contains("- collection, where"))
    #expect(analyzed.json(0, "explainStats") as String? == nil)
    let planned = try explained("explain", "json")
    #expect(Pipe.rows(planned).isEmpty)
    let json: String = try #require(planned.json(0, "explainStats", "data", "value"))
    // The source evaluates the condition.
    #expect(json.hasPrefix(#"{"tree":{"name":"collection, where""#), "\(json)")
    #expect(Pipe.rows(try explained("execute")).count == 2)
  }

  @Test func deleteAndUpdateReportTheirNumber() throws {
    let server = try PipelineStageTests.server()
    let high = Pipe.stage("where", Pipe.call("greater_than", Pipe.field("rating"), Pipe.int(3)))
    let updated = try server.pipeline([
      Self.books, high, Pipe.stage("remove_fields", Pipe.field("tags")),
      Pipe.stage("update", Pipe.map(("rating", Pipe.call("add", Pipe.field("rating"), Pipe.int(10))))),
    ])
    #expect(Pipe.rows(updated) == ["{documents_modified: 2}"], "\(updated.text)")
    let rows = try server.pipeline([
      Self.books, Pipe.stage("sort", Pipe.order(Pipe.field("rating"), descending: true)),
      Pipe.stage("select", Pipe.map(("r", Pipe.field("rating")), ("t", Pipe.field("tags")))),
    ])
    #expect(Pipe.rows(rows) == ["{r: 15}", "{r: 14}", "{r: 2}", "{}"], "\(rows.text)")
    #expect(Pipe.rows(try server.pipeline([Self.books, high, Pipe.stage("delete")])) == ["{documents_modified: 2}"])
    #expect(Pipe.rows(try server.pipeline([Self.books, Self.idOnly])) == ["c{}", "d{}"])
    let missing = Pipe.map(("__name__", Pipe.reference("\(TestServer.name)/books/x")), ("a", Pipe.int(1)))
    let none = try server.pipeline([Pipe.stage("literals", missing), Pipe.stage("update")])
    #expect(Pipe.rows(none) == ["{documents_modified: 0}"], "\(none.text)")
  }

  @Test func resultsOfManyRowsArriveInSlices() throws {
    let server = try TestServer()
    let text = String(repeating: "x", count: 2000)
    try server.create((0..<400).map { ("c/n\(1000 + $0)", #"{"t": \#(Pipe.text(text)), "i": \#(Pipe.int($0))}"#) })
    let sorted = Pipe.stage("sort", Pipe.order(Pipe.call("subtract", Pipe.int(0), Pipe.field("i"))))
    let reply = try server.pipeline([Pipe.collection("c"), sorted, Self.idOnly])
    #expect(Pipe.rows(reply) == (0..<400).reversed().map { "n\(1000 + $0){}" })
    let product = try server.pipeline([
      Pipe.collection("c"), Pipe.stage("where", Pipe.call("less_than", Pipe.field("i"), Pipe.int(40))),
      Pipe.stage("let", Pipe.map(("v", Pipe.field("i")))),
      Pipe.stage(
        "select",
        Pipe.map(
          (
            "n",
            Pipe.call(
              "scalar",
              Pipe.nested(
                Pipe.collection("c"),
                Pipe.stage("where", Pipe.call("less_than_or_equal", Pipe.field("i"), Pipe.variable("v"))),
                Pipe.stage("aggregate", Pipe.map(("n", Pipe.call("count"))))))
          ))),
    ])
    #expect(Pipe.rows(product) == (1...40).map { "{n: \($0)}" })
  }
}
