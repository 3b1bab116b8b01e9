import DatabaseService
import DocumentModel
import FixtureTree
import RulesEngine
import RulesTesting
import WireFormat

extension Command {
  /// Shows how rules decide a request, with the value of every expression.
  static let rulesExplain = Command(
    name: "rules explain", summary: "Shows why rules allow or deny a request, with the value of every expression.",
    operands: "METHOD PATH", operandCount: 2...2,
    options: [
      .value("rules", "FILE", "the rules (required)"),
      .value("as", "UID|JSON", "the caller: a user ID, or {\"uid\": …, \"token\": {claims}} (default: no user)"),
      .value("data", "JSON", "the fields of a create, set or update, or the properties of an upload"),
      .value("file", "JSON", "with storage rules, the properties of the existing file (default: no such file)"),
      .value("query", "JSON", "the query of a list: {\"where\": [[\"owner\", \"==\", \"ann\"]], \"limit\": 10}"),
      .value("time", "TIME", "the value of request.time (default: now)"),
      .value("documents", "FILE", "read the documents from a file in any format that `hearth import` reads"),
    ]
      + DatabaseChoice.serverOptions.map { option in
        option.name == "server" ? option.withHelp("read the documents from a running server") : option
      },
    details: """
      METHOD is get, list, listGroup, create, set, update, delete or commit. For commit, PATH is a JSON array of
      writes. With storage rules, METHOD is read, get, list, create, update or delete, and PATH is NAME or
      b/BUCKET/o/NAME.

      The documents come from the file of --documents or from the server of --server, which is only read. Without
      either, no documents exist. The request is not sent to the server.

      The exit code is 0 if the rules allow the request, and 1 if they deny it.
      """,
    examples: [
      ("hearth rules explain --rules chat.rules --documents chat.json --as ann get rooms/r1", "documents from a file"),
      (
        "hearth rules explain --rules chat.rules --server http://127.0.0.1:8080 --as ann delete rooms/r1",
        "documents from a running server"
      ),
      (
        #"hearth rules explain --rules storage.rules --as ann create avatars/ann --data '{"size": 2048}'"#,
        "an upload"
      ),
    ],
    run: { arguments in
      guard let file = arguments.value("rules") else { throw CommandFailure.usage("'--rules FILE' is required") }
      try arguments.exclude("documents", "server")
      let text = try RulesFile.read(file)
      let ruleset = try RulesFile.compile(text, file: file)
      let isOfFiles = ruleset.service == FileRules.service
      guard isOfFiles || !arguments.has("file") else {
        throw CommandFailure.usage("'--file' requires rules for \(FileRules.service)")
      }
      let client = arguments.has("server") ? try ServerClient(arguments) : nil
      var suite = try request(arguments, rulesFile: file, isOfFiles: isOfFiles)
      guard let test = suite.tests.first else { throw CommandFailure.usage("give METHOD and PATH") }
      let verdict = try evaluate(test, by: ruleset, over: &suite.documents, client)
      for part in verdict.parts {
        var lines = DecisionText.lines(part, ruleset, file: file).map(TerminalText.line)
        let head = lines.removeFirst()
        Terminal.output.write(Terminal.output.bold(head) + "\n")
        for line in lines { Terminal.output.write(line + "\n") }
      }
      return verdict.isAllowed ? 0 : ExitCode.failure
    })

  /// Returns a test suite with the request as its only case, so that it is parsed and checked like a test case.
  private static func request(
    _ arguments: Arguments, rulesFile: String, isOfFiles: Bool
  ) throws -> RuleTestSuite {
    let method = arguments.operands[0]
    let methods =
      isOfFiles
      ? ["read", "get", "list", "create", "update", "delete"]
      : ["get", "list", "listGroup", "create", "set", "update", "delete", "commit"]
    guard methods.contains(method) else {
      let hint = NearestMatch.find(method, in: methods).map { "did you mean '\($0)'?" }
      throw CommandFailure.usage(
        "unknown method '\(method)'; \(hint ?? "the methods are \(methods.joined(separator: ", "))")")
    }
    var json = JSONWriter(.compact)
    json.string(arguments.operands[1])
    let target = method == "commit" ? arguments.operands[1] : String(decoding: json.bytes, as: UTF8.self)
    var text = "{"
    if let file = arguments.value("file") {
      text += "\"files\": {\(String(decoding: json.bytes, as: UTF8.self)): \(file)},\n"
    }
    text += "\"cases\": [{\"it\": \"\(method)\",\n\"expect\": \"allow\",\n\"\(method)\": \(target)"
    if let user = arguments.value("as") {
      json = JSONWriter(.compact)
      json.string(user)
      let isJSON = user.hasPrefix("{") || user == "null"
      text += ",\n\"as\": " + (isJSON ? user : String(decoding: json.bytes, as: UTF8.self))
    }
    for name in ["data", "query"] {
      if let value = arguments.value(name) { text += ",\n\"\(name)\": \(value)" }
    }
    if let time = arguments.value("time") { text += ",\n\"time\": \"\(time)\"" }
    text += "}]}"
    let reader = SuiteReader(rulesFile: rulesFile, now: RulesTestRun.now())
    var suite = try reader.read(Array(text.utf8), file: "the request")
    guard let file = arguments.value("documents") else { return suite }
    var documents = try FixtureReader(ByteSource(file: file), database: try DatabaseChoice.database(arguments))
    while let document = try documents.next() { suite.documents[document.key.path] = document.fields }
    return suite
  }

  /// Evaluates the request. With a server, it fetches the documents that the evaluation needs and repeats it until no
  /// further documents are needed.
  private static func evaluate(
    _ test: RuleTest, by ruleset: Ruleset, over documents: inout TestDocuments, _ client: ServerClient?
  ) throws -> Verdict {
    let runner = TestCaseRunner()
    var wanted: [ResourcePath] = []
    switch test.operation {
    case .get(let key): wanted = [key.path]
    case .commit(let writes): wanted = writes.map(\.key.path)
    case .list, .pipeline, .hosted, .file: break
    }
    var known: Set<ResourcePath> = []
    while true {
      for path in wanted where known.insert(path).inserted {
        guard let client, let key = DocumentKey(path) else { continue }
        documents[path] = try client.get(key)?.fields
      }
      let verdict = runner.run(test, by: ruleset, over: documents, explaining: .trace)
      wanted = verdict.lookups.filter { !known.contains($0) }
      if wanted.isEmpty || client == nil { return verdict }
    }
  }
}
