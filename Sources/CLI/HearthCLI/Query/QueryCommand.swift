import DocumentModel
import WireFormat

extension Command {
  /// Runs a query on a running server.
  static let query = Command(
    name: "query", summary: "Queries a collection, or counts, sums and averages over it.", operands: "PATH",
    operandCount: 0...1,
    options: DatabaseChoice.placeOptions + [
      .repeated("where", "CONDITION", "return only documents that match; several conditions must all match"),
      .repeated("order", "FIELD[:desc]", "sort by this field; several may be separated by commas"),
      .value("limit", "N", "the maximum number of documents"),
      .value("offset", "N", "skip this many documents first"),
      .repeated("select", "FIELD,…", "return only these fields"),
      .value("start-at", "VALUES", "begin at this position of the order; values are separated by commas"),
      .value("start-after", "VALUES", "begin after this position"),
      .value("end-at", "VALUES", "end at this position of the order"),
      .value("end-before", "VALUES", "end before this position"),
      .flag("group", "query all collections with that ID, at any depth below the path's document or the root"),
      .flag("count", "return the number of documents instead of the documents"),
      .repeated("sum", "FIELD", "return the sum of this field"),
      .repeated("avg", "FIELD", "return the average of this field"),
      .value("pipeline", "FILE", "run the pipeline in this file instead of a query; - is standard input"),
      .value("at", "TIME", "read as of a time such as 2025-03-01T14:30:00Z, at most an hour ago (default: now)"),
      .flag("explain", "show the plan of the query without running it"),
      .flag("analyze", "show the results, the plan and the cost"),
      .flag("json", "print the API's JSON, one document or row per line"),
    ],
    details: """
      CONDITION is FIELD OPERATOR VALUE. The operators are `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not-in`,
      `contains`, `contains-any`, `is null`, `is nan`, `is not null` and `is not nan`. Conditions can be joined with
      `and` and `or`, and grouped with parentheses. FIELD may be a path into maps, or `__name__`, whose VALUE is the ID
      of a document in the collection, or a path.

      \(ValueText.details)

      With --pipeline, the stages in FILE replace PATH and the other options of the query. FILE contains stages such as
      `collection(/users)`, `where(age >= 18 and city == "Turin")`, `aggregate(n: count() by city)` and `sort(n desc)`,
      or JSON as for `executePipeline`. docs/pipelines.md describes both.
      """,
    examples: [
      (
        "hearth query users/u1/habits/Running/history --where 'timestamp >= 2025-03-01' --order timestamp:desc "
          + "--limit 10",
        "the newest ten"
      ),
      (#"hearth query users --where 'age < 30 or (city == "Turin" and tags contains "new")'"#, "a disjunction"),
      ("hearth query history --group --where 'metrics.Distance > 10' --count --avg metrics.Distance", "aggregations"),
      ("hearth query orders --order placed:desc,__name__ --start-after '2025-03-01, o17' --json", "the next page"),
      ("hearth query users --where 'age > 30' --analyze", "with the plan and the cost"),
      ("hearth query --pipeline weekly.pipeline", "the rows of a pipeline"),
      ("hearth query --pipeline - --json < weekly.pipeline", "the same as JSON, from standard input"),
    ],
    run: { arguments in
      if let file = arguments.value("pipeline") {
        try PipelineCommand.run(arguments, file: file)
        return 0
      }
      guard !arguments.operands.isEmpty else {
        throw CommandFailure.usage("an operand is missing: PATH, or --pipeline FILE")
      }
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let options = try QueryOptions(arguments, client.database)
      if arguments.has("json") {
        try printLines(options, client)
      } else {
        try printTable(options, client, columns: try QueryOptions.columns(arguments))
      }
      return 0
    })

  private static func printLines(_ options: QueryOptions, _ client: ServerClient) throws {
    let text = DocumentText(database: client.database)
    var out: [UInt8] = []
    try client.run(options) { part in
      switch part {
      case .document(let document): out += try text.json(document, .compact)
      case .numbers(let numbers):
        var json = JSONWriter(.compact)
        json.beginObject()
        for (alias, value) in numbers.entries {
          Array(alias.utf8).withUnsafeBytes { json.key($0) }
          try DocumentJSON.append(value, to: &json)
        }
        json.endObject()
        out += json.bytes + [UInt8(ascii: "\n")]
      case .explanation(_, let json): out += json + [UInt8(ascii: "\n")]
      }
      if out.count >= 64 << 10 {
        Terminal.output.write(out)
        out.removeAll(keepingCapacity: true)
      }
    }
    Terminal.output.write(out)
  }

  private static func printTable(_ options: QueryOptions, _ client: ServerClient, columns: [FieldPath]) throws {
    let query = options.query
    let isAggregation = !options.aggregations.isEmpty
    let chosen = isAggregation ? options.aggregations.map { FieldPath(field: $0.alias) } : columns
    let nameTitle = isAggregation ? nil : query.includesDescendants ? "path" : "id"
    var table = TextTable(of: client.database, nameTitle: nameTitle, chosen: chosen)
    var explanation: ExplainText?
    try client.run(options) { part in
      switch part {
      case .document(let document):
        let path = document.key.path
        let row = TextTable.Row(
          name: query.includesDescendants ? path.text : path.id, fields: try document.fields.decoded())
        Terminal.output.write(table.add(row, byteCount: document.fields.bytes.count))
      case .numbers(let numbers):
        Terminal.output.write(table.add(TextTable.Row(name: "", fields: numbers), byteCount: 64))
      case .explanation(let text, _): explanation = text
      }
    }
    Terminal.output.write(table.flush())
    if !isAggregation, options.explain != .plan {
      let count = table.count == 0 ? "no documents" : CountText.of(table.count, "document")
      let isFull = query.limit.map { $0 > 0 && $0 == table.count } ?? false
      Terminal.output.write(Terminal.output.faint("\(count)\(isFull ? " (the limit)" : "")") + "\n")
    }
    if let explanation { Terminal.output.write((options.explain == .plan ? "" : "\n") + explanation.text) }
  }
}
