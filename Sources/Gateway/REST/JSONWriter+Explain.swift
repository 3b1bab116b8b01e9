import DocumentModel
import WireFormat

extension JSONWriter {
  /// Appends a member `explainMetrics` with an ExplainMetrics object.
  ///
  /// The plan for people stands in the first of the indexes used, as `plan`: these are free-form objects, so that
  /// clients read over it.
  mutating func explainMetrics(_ metrics: ExplainMetrics) {
    key("explainMetrics")
    beginObject()
    key("planSummary")
    beginObject()
    key("indexesUsed")
    beginArray()
    for (index, use) in metrics.indexesUsed.enumerated() {
      beginObject()
      member("query_scope", use.scope)
      member("properties", use.properties)
      if index == 0 { member("plan", metrics.plan) }
      endObject()
    }
    endArray()
    endObject()
    if let execution = metrics.execution { append(execution) }
    endObject()
  }

  private mutating func append(_ execution: ExplainMetrics.Execution) {
    key("executionStats")
    beginObject()
    key("resultsReturned")
    int64(Int64(execution.results))
    member("executionDuration", Self.duration(execution.microseconds))
    key("readOperations")
    int64(Int64(execution.readOperations))
    key("debugStats")
    beginObject()
    member("documents_scanned", "\(execution.documentsScanned)")
    member("index_entries_scanned", "\(execution.indexEntriesScanned)")
    key("billing_details")
    beginObject()
    member("documents_billable", "\(execution.readOperations)")
    member("index_entries_billable", "0")
    member("min_query_cost", "0")
    endObject()
    endObject()
    endObject()
  }

  private mutating func member(_ name: StaticString, _ text: String) {
    key(name)
    string(text)
  }

  /// A `google.protobuf.Duration` of whole microseconds.
  private static func duration(_ microseconds: Int64) -> String {
    let fraction = "\(microseconds % 1_000_000)"
    return "\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.utf8.count))\(fraction)s"
  }
}
