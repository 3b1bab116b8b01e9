import QueryEngine

/// The explanation of a pipeline: its operators, and after a run their rows (pipelines.md, section 1.6).
package struct PipelineExplanation {
  /// An operator with those that produce its input.
  struct Node {
    let lines: [String]
    let rows: Int
    let inputs: [Node]

    init(_ root: RowOperator) {
      lines = root.text.split(separator: "\n").map(String.init)
      rows = root.rows
      inputs = root.inputs.map { Node($0) }
    }
  }

  let root: Node
  let results: Int
  let heldBytesMax: Int
  let work: QueryCost
  let elapsed: Duration
  let isExecuted: Bool

  /// The explanation as text: one operator per line, indented below the operator that takes its rows.
  package var text: String {
    var out = ""
    if isExecuted {
      out += "Execution:\n"
      out += " results returned: \(results)\n"
      out += " request peak memory usage: \(heldBytesMax) B\n"
      out += " entity row scanned: \(work.documents)\n"
      out += " index entries scanned: \(work.entries)\n"
      out += " execution time: \(microseconds) us\n\n"
      out += "Billing:\n read units: \(max(1, results))\n\n"
    }
    out += "Tree:\n"
    append(root, indent: 0, to: &out)
    return out
  }

  /// The explanation as a JSON object.
  package var json: String {
    var out = "{"
    if isExecuted {
      out += "\"execution\":{\"resultsReturned\":\(results),\"peakMemoryBytes\":\(heldBytesMax),"
      out += "\"entityRowsScanned\":\(work.documents),\"indexEntriesScanned\":\(work.entries),"
      out += "\"executionMicroseconds\":\(microseconds)},\"billing\":{\"readUnits\":\(max(1, results))},"
    }
    out += "\"tree\":"
    appendJSON(root, to: &out)
    return out + "}"
  }

  private var microseconds: Int64 {
    let (seconds, attoseconds) = elapsed.components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
  }

  private func append(_ node: Node, indent: Int, to out: inout String) {
    let space = String(repeating: "  ", count: indent)
    for (index, line) in node.lines.enumerated() {
      out += index == 0 ? "\(space)- \(line)" : "\(space)    \(line)"
      if index == 0, isExecuted { out += " (records returned: \(node.rows))" }
      out += "\n"
    }
    for input in node.inputs { append(input, indent: indent + 1, to: &out) }
  }

  private func appendJSON(_ node: Node, to out: inout String) {
    out += "{\"name\":\"\(Self.escaped(node.lines.first ?? ""))\""
    if node.lines.count > 1 {
      out += ",\"details\":[" + node.lines.dropFirst().map { "\"\(Self.escaped($0))\"" }.joined(separator: ",") + "]"
    }
    if isExecuted { out += ",\"recordsReturned\":\(node.rows)" }
    out += ",\"inputs\":["
    for (index, input) in node.inputs.enumerated() {
      if index > 0 { out += "," }
      appendJSON(input, to: &out)
    }
    out += "]}"
  }

  private static func escaped(_ text: String) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": out += "\\\""
      case "\\": out += "\\\\"
      case let control where control.value < 0x20:
        let digits = String(control.value, radix: 16)
        out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
