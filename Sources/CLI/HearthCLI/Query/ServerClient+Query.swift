import DocumentModel
import WireFormat

extension ServerClient {
  /// A part of the response to a query.
  enum QueryPart {
    case document(Found)
    /// The results of aggregations, by their alias.
    case numbers(MapValue)
    /// The explanation of the query, formatted and as the server's JSON.
    case explanation(ExplainText, json: [UInt8])
  }

  /// Runs a query and passes its results to `body` as they arrive. Memory: one result at a time.
  /// - Throws: ``CommandFailure`` with the server's message if the query fails, or the error of `body`.
  func run(_ options: QueryOptions, _ body: (QueryPart) throws -> Void) throws {
    let verb = options.aggregations.isEmpty ? ":runQuery" : ":runAggregationQuery"
    let target = target(options.query.parent) + verb + "?prettyPrint=false"
    var elements = ArrayElements()
    try stream("POST", target, try QueryJSON.body(options)) { piece in
      try elements.feed(piece) { element in
        try parse(element) { root in try part(root, element, body) }
      }
    }
    guard elements.isComplete else {
      throw CommandFailure.failed("the response of \(address) is incomplete; try again")
    }
  }

  private func part(_ root: JSONValue, _ element: [UInt8], _ body: (QueryPart) throws -> Void) throws {
    if let error = root.member("error") {
      throw CommandFailure.failed(
        "\(address) ended the response: \(error.member("status")?.text ?? ""): \(error.member("message")?.text ?? "")")
    }
    if let document = root.member("document") { try body(.document(try found(document))) }
    if let fields = root.member("result")?.member("aggregateFields"), case .object(var members) = fields.kind {
      var numbers = MapValue()
      while let (name, value) = members.next() { numbers[name.text] = try self.value(value) }
      try body(.numbers(numbers))
    }
    if let metrics = root.member("explainMetrics") { try body(.explanation(ExplainText(metrics), json: element)) }
  }
}
