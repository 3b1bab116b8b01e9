import DocumentModel
import WireFormat

extension JSONWriter {
  /// Appends a member `explainMetrics` with an ExplainMetrics object.
  mutating func explainMetrics(_ metrics: ExplainMetrics) {
    key("explainMetrics")
    beginObject()
    key("planSummary")
    beginObject()
    key("indexesUsed")
    beginArray()
    for members in metrics.indexStructs { append(members) }
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
    key("executionDuration")
    string(Self.duration(execution.microseconds))
    key("readOperations")
    int64(Int64(execution.readOperations))
    key("debugStats")
    append(execution.debugStruct)
    endObject()
  }

  private mutating func append(_ members: [StructMember]) {
    beginObject()
    for (name, value) in members {
      key(name)
      switch value {
      case .text(let text): string(text)
      case .object(let inner): append(inner)
      }
    }
    endObject()
  }

  /// Returns a `google.protobuf.Duration` of whole microseconds.
  private static func duration(_ microseconds: Int64) -> String {
    let fraction = "\(microseconds % 1_000_000)"
    return "\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.utf8.count))\(fraction)s"
  }
}
