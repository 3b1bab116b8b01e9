import Foundation
import Testing
import TestSupport

/// `hearth query --pipeline` against a running server.
@Suite(.needs(.hearth)) struct PipelineVerbTests {
  private let directory: TemporaryDirectory
  private let server: HearthProcess

  init() throws {
    directory = try TemporaryDirectory()
    let tree = """
      {"$collections": ["users"], "users": {
        "ann": {"city": "Turin", "age": 30}, "ben": {"city": "Oslo", "age": 20}, "cy": {"city": "Turin", "age": 40}}}
      """
    server = try HearthProcess(
      arguments: [
        "--emulator", "--project", "demo", "--quiet", "--import", directory.write("users.json", tree),
      ])
  }

  private func run(_ text: String, _ options: String...) throws -> (exit: ProcessExit?, output: String) {
    defer { server.process.stop() }
    let file = try directory.write("p.pipeline", text)
    return try HearthBinary.run(
      ["query", "--pipeline", file, "--server", "http://127.0.0.1:\(server.port)", "--project", "demo"] + options)
  }

  @Test func rowsAreShownAsATable() throws {
    #expect(
      try run("collection(/users) aggregate(n: count(), oldest: maximum(age) by city) sort(n desc)").output == """
        city   n  oldest
        Turin  2      40
        Oslo   1      20
        2 rows

        """)
  }

  @Test func documentsHaveTheirPaths() throws {
    #expect(
      try run("collection(/users) where(age >= 30) sort(age)").output == """
        path       age  city
        users/ann   30  Turin
        users/cy    40  Turin
        2 rows

        """)
  }

  @Test func jsonIsAccepted() throws {
    let stages =
      #"[{"name": "collection", "args": [{"referenceValue": "/users"}]}, {"name": "limit", "args": [{"integerValue": "1"}]}]"#
    let forms = [stages, #"{"stages": \#(stages)}"#, #"{"structuredPipeline": {"pipeline": {"stages": \#(stages)}}}"#]
    for (index, form) in forms.enumerated() { _ = try directory.write("\(index).json", form) }
    defer { server.process.stop() }
    for index in forms.indices {
      let result = try HearthBinary.run([
        "query", "--pipeline", directory.file("\(index).json"), "--json", "--server", "http://127.0.0.1:\(server.port)",
        "--project", "demo",
      ])
      #expect(
        result.output.hasPrefix(
          #"{"name":"projects/demo/databases/(default)/documents/users/ann","fields":{"age":{"integerValue":"30"},"#),
        "\(result.output)")
      #expect(result.output.split(separator: "\n").count == 1)
    }
  }

  @Test func plansAreShown() throws {
    let plan = try run("collection(/users) where(age > 25)", "--explain").output
    #expect(plan.hasPrefix("Tree:\n") && !plan.contains("rows\n"), "\(plan)")
  }

  @Test func analysesFollowTheRows() throws {
    let text = try run("collection(/users) where(age > 25)", "--analyze").output
    #expect(text.contains("\n2 rows\n\nExecution:\n results returned: 2\n"), "\(text)")
  }

  @Test func analysesAreJSONToo() throws {
    let lines = try run("collection(/users) where(age > 25)", "--analyze", "--json").output.split(separator: "\n")
    #expect(lines.count == 3)
    let stats = try JSONSerialization.jsonObject(with: Data((lines.last ?? "").utf8)) as? [String: [String: Any]]
    #expect(stats?["explainStats"]?["tree"] != nil, "\(lines)")
  }

  @Test func anEmptyResultIsSaid() throws {
    #expect(try run("collection(/none)").output == "no rows\n")
  }

  static let failures: [(text: String, options: [String], code: Int32, hint: String)] = [
    ("collection(/users)\nwhere(age = 1)", [], 65, "p.pipeline:2:11: write == instead of ="),
    ("collection(/users)\nwhere(no_such(age))", [], 1, "Stage 2 (where): unknown function 'no_such'"),
    ("collection(/users)\nlimit(-1)", [], 1, "Stage 2 (limit): limit must not be negative"),
    ("", [], 65, "is empty"),
    (#"{"a": 1}"#, [], 65, "the JSON is not a pipeline"),
    (#"[{"name": 1}]"#, [], 65, "stage 1: "),
    ("collection(/users)", ["--limit", "3"], 64, "'--limit' cannot be used with --pipeline"),
    ("collection(/users)", ["--at", "soon"], 64, "must be a time"),
  ]

  @Test(arguments: failures.indices) func failuresSayWhatToDo(row: Int) throws {
    let (text, options, code, hint) = Self.failures[row]
    defer { server.process.stop() }
    let file = try directory.write("p.pipeline", text)
    let result = try HearthBinary.run(
      ["query", "--pipeline", file, "--server", "http://127.0.0.1:\(server.port)", "--project", "demo"] + options)
    #expect(result.exit == .code(code), "\(result.output)")
    #expect(result.output.contains(hint), "\(result.output)")
  }

  @Test func aPathIsNotNeeded() throws {
    defer { server.process.stop() }
    let file = try directory.write("p.pipeline", "collection(/users)")
    #expect(try HearthBinary.run(["query", "users", "--pipeline", file]).output.contains("--pipeline takes no PATH"))
    #expect(try HearthBinary.run(["query"]).output.contains("PATH, or --pipeline FILE"))
  }
}
