import DocumentModel
import WireFormat

/// The form of `hearth query` that runs a pipeline.
enum PipelineCommand {
  /// The options that describe a query, which a pipeline replaces.
  private static let otherOptions = [
    "where", "order", "limit", "offset", "select", "start-at", "start-after", "end-at", "end-before", "group", "count",
    "sum", "avg",
  ]

  /// Runs the pipeline in the file that `--pipeline` names and prints its rows.
  /// - Throws: ``CommandFailure`` if the command line or the file is malformed, or the server refuses the pipeline.
  static func run(_ arguments: Arguments, file: String) throws {
    guard arguments.operands.isEmpty else {
      throw CommandFailure.usage("--pipeline takes no PATH; the first stage of the pipeline names the collection")
    }
    if let other = otherOptions.first(where: { arguments.has($0) }) {
      throw CommandFailure.usage("'--\(other)' cannot be used with --pipeline; write it as a stage of the pipeline")
    }
    let client = try ServerClient(ofServerOrDirectory: arguments)
    var pipeline = try PipelineFile.read(file, in: client.database)
    let asJSON = arguments.has("json")
    let explain: ExplainMode? = arguments.has("analyze") ? .analyze : arguments.has("explain") ? .plan : nil
    if let explain {
      pipeline.options.removeAll { $0.key == "explain_options" }
      let members: [(String, Value)] = [
        ("mode", .string(explain == .plan ? "explain" : "analyze")),
        ("output_format", .string(asJSON ? "json" : "text")),
      ]
      pipeline.options.append(.init("explain_options", .constant(.map(MapValue(members)))))
    }
    let body = try PipelineJSON.body(pipeline, at: try QueryOptions.readTime(arguments))
    var output: any PipelineOutput = asJSON ? PipelineLines() : PipelineTable(client.database)
    try client.runPipeline(body) { part in try output.add(part) }
    output.end(isPlanOnly: explain == .plan)
  }
}

/// The destination of the rows of a pipeline.
private protocol PipelineOutput {
  mutating func add(_ part: ServerClient.PipelinePart) throws
  mutating func end(isPlanOnly: Bool)
}

/// Prints rows as a table.
private struct PipelineTable: PipelineOutput {
  private let database: DatabaseID
  private var table: TextTable?
  private var isNamed = false
  private var count = 0
  private var explanation = ""

  init(_ database: DatabaseID) { self.database = database }

  mutating func add(_ part: ServerClient.PipelinePart) throws {
    switch part {
    case .row(let row):
      // Rows with and without names have different columns.
      if table == nil || isNamed != (row.path != nil) {
        if let text = table?.flush() { Terminal.output.write(text + "\n") }
        isNamed = row.path != nil
        table = TextTable(of: database, nameTitle: isNamed ? "path" : nil)
      }
      count += 1
      let text = table?.add(TextTable.Row(name: row.path?.text ?? "", fields: row.fields), byteCount: row.byteCount)
      Terminal.output.write(text ?? "")
    case .explanation(let text): explanation += text
    }
  }

  mutating func end(isPlanOnly: Bool) {
    Terminal.output.write(table?.flush() ?? "")
    if !isPlanOnly {
      Terminal.output.write(Terminal.output.faint(count == 0 ? "no rows" : CountText.of(count, "row")) + "\n")
    }
    guard !explanation.isEmpty else { return }
    // The explanation contains names of collections and fields, which other users chose.
    let lines = explanation.split(separator: "\n", omittingEmptySubsequences: false).map {
      TerminalText.line(String($0))
    }
    Terminal.output.write((isPlanOnly ? "" : "\n") + lines.joined(separator: "\n") + (lines.last == "" ? "" : "\n"))
  }
}

/// Prints each row as the API's JSON on one line.
private struct PipelineLines: PipelineOutput {
  private var out: [UInt8] = []

  mutating func add(_ part: ServerClient.PipelinePart) throws {
    switch part {
    case .row(let row): out += row.json
    case .explanation(let json): out += Array(#"{"explainStats":\#(json)}"#.utf8)
    }
    out.append(UInt8(ascii: "\n"))
    if out.count >= 64 << 10 { end(isPlanOnly: false) }
  }

  mutating func end(isPlanOnly: Bool) {
    Terminal.output.write(out)
    out.removeAll(keepingCapacity: true)
  }
}
