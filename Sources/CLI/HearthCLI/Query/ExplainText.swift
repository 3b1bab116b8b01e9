import WireFormat

/// What a query tells of itself, for people: the plan, the indexes it reads, and what running it cost.
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
    costs = [
      "\(number(stats.member("resultsReturned"))) results in \(stats.member("executionDuration")?.text ?? "?")",
      "\(number(stats.member("readOperations"))) read operations",
      "\(number(details?.member("documents_scanned"))) documents and "
        + "\(number(details?.member("index_entries_scanned"))) index entries read",
    ]
  }

  /// The lines for a terminal.
  var text: String {
    var lines: [String] = []
    if !plan.isEmpty { lines.append(plan) }
    for index in indexes { lines.append("index: \(index)") }
    if !costs.isEmpty { lines.append(costs.joined(separator: ", ")) }
    // They name collections and fields.
    return lines.map { TerminalText.line($0) + "\n" }.joined()
  }
}
