import WireFormat

/// Formats the explanation of a query: its plan, the indexes that it reads, and the cost of running it.
struct ExplainText {
  private var plan = ""
  private var indexes: [String] = []
  private var costs: [String] = []

  /// Reads an ExplainMetrics object.
  init(_ metrics: JSONValue) {
    for index in metrics.member("planSummary")?.member("indexesUsed")?.array ?? [] {
      if let text = index.member("plan")?.text { plan = text }
      let scope = index.member("query_scope")?.text ?? ""
      if let properties = index.member("properties")?.text { indexes.append("\(scope) \(properties)") }
    }
    guard let stats = metrics.member("executionStats") else { return }
    func number(_ value: JSONValue?) -> String { value?.text ?? value?.integer.map { String($0) } ?? "0" }
    let details = stats.member("debugStats")
    func count(_ value: JSONValue?, _ one: String, _ many: String) -> String {
      let text = number(value)
      return "\(text) \(text == "1" ? one : many)"
    }
    costs = [
      count(stats.member("resultsReturned"), "result", "results")
        + " in \(stats.member("executionDuration")?.text ?? "?")",
      count(stats.member("readOperations"), "read operation", "read operations"),
      count(details?.member("documents_scanned"), "document", "documents") + " and "
        + count(details?.member("index_entries_scanned"), "index entry", "index entries") + " read",
    ]
  }

  /// The explanation as lines of text.
  var text: String {
    var lines: [String] = []
    if !plan.isEmpty { lines.append(plan) }
    for index in indexes { lines.append("index: \(index)") }
    if !costs.isEmpty { lines.append(costs.joined(separator: ", ")) }
    // The lines contain names of collections and fields, which other users chose.
    return lines.map { TerminalText.line($0) + "\n" }.joined()
  }
}
