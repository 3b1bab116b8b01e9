import DocumentModel
import WireFormat

extension ServerClient {
  /// A row of a pipeline's results.
  struct PipelineRow {
    /// The path of the document, or `nil` if the row has no name.
    var path: ResourcePath?
    var fields: MapValue
    /// The row as the API's JSON, on one line.
    var json: [UInt8]

    /// The approximate size of the row in memory.
    var byteCount: Int { json.count }
  }

  /// A part of the response to a pipeline.
  enum PipelinePart {
    case row(PipelineRow)
    /// The explanation, as text or JSON.
    case explanation(String)
  }

  /// Runs a pipeline and passes its rows to `body` as they arrive. Memory: one row at a time.
  /// - Throws: ``CommandFailure`` with the server's message if the pipeline fails, or the error of `body`.
  func runPipeline(_ request: [UInt8], _ body: (PipelinePart) throws -> Void) throws {
    let target = target(.root) + ":executePipeline?prettyPrint=false"
    var elements = ArrayElements()
    try stream("POST", target, request) { piece in
      try elements.feed(piece) { element in
        try parse(element) { root in
          if let error = root.member("error") {
            throw CommandFailure.failed(
              "\(address) ended the response: \(error.member("status")?.text ?? ""): "
                + (error.member("message")?.text ?? ""))
          }
          for row in root.member("results")?.array ?? [] { try body(.row(try pipelineRow(row))) }
          if let text = root.member("explainStats")?.member("data")?.member("value")?.text {
            try body(.explanation(text))
          }
        }
      }
    }
    guard elements.isComplete else {
      throw CommandFailure.failed("the response of \(address) is incomplete; try again")
    }
  }

  private func pipelineRow(_ row: JSONValue) throws -> PipelineRow {
    let name = row.member("name")?.text
    var json = JSONWriter(.compact)
    json.beginObject()
    if let name {
      json.key("name")
      json.string(name)
    }
    var fields = MapValue()
    json.key("fields")
    json.beginObject()
    if case .object(var members)? = row.member("fields")?.kind {
      while let (key, member) = members.next() {
        let value = try value(member)
        fields[key.text] = value
        json.key(key.bytes)
        try DocumentJSON.append(value, to: &json)
      }
    }
    json.endObject()
    for (key, time) in [("createTime", row.member("createTime")), ("updateTime", row.member("updateTime"))] {
      guard let text = time?.text else { continue }
      Array(key.utf8).withUnsafeBytes { json.key($0) }
      json.string(text)
    }
    json.endObject()
    return PipelineRow(
      path: try name.map { try ResourceName.document(Array($0.utf8)).1.path }, fields: fields, json: json.bytes)
  }
}
