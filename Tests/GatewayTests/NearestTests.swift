import Testing

/// Vector searches over REST: in transactions, at past read times, and during changes.
@Suite struct NearestTests {
  private static func vector(_ components: Double...) -> String {
    let values = components.map { "{\"doubleValue\": \($0)}" }.joined(separator: ", ")
    return """
      {"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"},
        "value": {"arrayValue": {"values": [\(values)]}}}}}
      """
  }

  private static let search = """
    "structuredQuery": {"from": [{"collectionId": "c"}], "findNearest": {"vectorField": {"fieldPath": "v"},
      "queryVector": \(vector(0, 0)), "distanceMeasure": "EUCLIDEAN", "limit": {"value": 2},
      "distanceThreshold": {"value": 10}, "distanceResultField": "d"}}
    """

  private func server() throws -> TestServer {
    let server = try TestServer()
    for (id, x) in [("near", 1.0), ("middle", 2), ("far", 3), ("beyond", 30)] {
      try Self.put(id, x, server)
    }
    return server
  }

  private static func put(_ id: String, _ x: Double, _ server: TestServer) throws {
    let body = "{\"fields\": {\"n\": {\"integerValue\": \"1\"}, \"v\": \(vector(x, 0))}}"
    #expect(try server.call("PATCH", "/c/\(id)", body).status == 200)
  }

  private static func ids(_ reply: TestServer.Response) -> [String] {
    (0..<10).compactMap {
      (reply.json($0, "document", "name", as: String.self))?.split(separator: "/").last.map(String.init)
    }
  }

  @Test func nearestComeFirstWithTheirDistances() throws {
    let reply = try server().call("POST", ":runQuery", "{\(Self.search)}")
    #expect(Self.ids(reply) == ["near", "middle"], "\(reply.text)")
    #expect(reply.json(1, "document", "fields", "d", "doubleValue", as: Double.self) == 2)
  }

  @Test func pastReadsAndTransactionsSeeTheirSnapshot() throws {
    let server = try server()
    let before = try server.call("POST", ":runQuery", "{\(Self.search), \"newTransaction\": {\"readWrite\": {}}}")
    let transaction = try #require(before.json(0, "transaction") as String?)
    let readTime = try #require(before.json(1, "readTime") as String?)
    #expect(Self.ids(before) == ["near", "middle"], "\(before.text)")
    try Self.put("far", 0.5, server)
    #expect(Self.ids(try server.call("POST", ":runQuery", "{\(Self.search)}")) == ["far", "near"])
    for selector in ["\"transaction\": \"\(transaction)\"", "\"readTime\": \"\(readTime)\""] {
      #expect(Self.ids(try server.call("POST", ":runQuery", "{\(Self.search), \(selector)}")) == ["near", "middle"])
    }
  }

  /// A new document that would be nearer conflicts with a transaction that searched, even if it only aggregated the
  /// results.
  @Test(arguments: [false, true]) func transactionConflictsWithNearerDocuments(counts: Bool) throws {
    let server = try server()
    let begun = try server.call("POST", ":beginTransaction", "{}")
    let transaction = try #require(begun.json("transaction") as String?)
    let body =
      counts
      ? """
      {"structuredAggregationQuery": {\(Self.search), "aggregations": [{"sum": {"field": {"fieldPath": "n"}}}]},
       "transaction": "\(transaction)"}
      """ : "{\(Self.search), \"transaction\": \"\(transaction)\"}"
    #expect(try server.call("POST", counts ? ":runAggregationQuery" : ":runQuery", body).status == 200)
    try Self.put("beyond", 0, server)
    let write = "{\"update\": {\"name\": \"\(TestServer.name)/other/x\", \"fields\": {}}}"
    let commit = try server.call("POST", ":commit", "{\"writes\": [\(write)], \"transaction\": \"\(transaction)\"}")
    #expect(commit.json("error", "status") == "ABORTED", "\(commit.text)")
  }

  @Test func aggregationsReadTheStoredFields() throws {
    let body = """
      {"structuredAggregationQuery": {\(Self.search), "aggregations": [{"alias": "n", "count": {}},
        {"alias": "s", "sum": {"field": {"fieldPath": "n"}}}]}}
      """
    let reply = try server().call("POST", ":runAggregationQuery", body)
    #expect(reply.json(0, "result", "aggregateFields", "n", "integerValue") == "2", "\(reply.text)")
    #expect(reply.json(0, "result", "aggregateFields", "s", "integerValue") == "2")
  }

  @Test(arguments: [
    (
      "\"limit\": {\"value\": 2}", "\"limit\": {\"values\": 2}",
      "Invalid JSON payload received. Unknown name \"values\""
    ),
    ("\"limit\": {\"value\": 2}", "\"limit\": 0", "FindNearest.limit must be a positive integer"),
    ("\"limit\": {\"value\": 2},", "", "FindNearest.limit must be a positive integer"),
    ("\"EUCLIDEAN\"", "\"MANHATTAN\"", "Invalid value at 'structured_query.find_nearest.distance_measure'"),
    ("\"EUCLIDEAN\"", "0", "Unknown Distance Measure."),
    ("\"distanceMeasure\": \"EUCLIDEAN\",", "", "Unknown Distance Measure."),
    (vector(0, 0), "{\"integerValue\": \"1\"}", "Query Value must be of type vector."),
    ("\"queryVector\": \(vector(0, 0)),", "", "Cannot convert firestore.v1.Value with type unset."),
    ("\"vectorField\": {\"fieldPath\": \"v\"},", "", "Invalid empty property path string."),
    ("\"findNearest\": {", "\"limit\": 3, \"findNearest\": {", "A query limit cannot be used with FindNearest"),
    ("{\"value\": 10}", "\"NaN\"", "distanceThreshold must be a finite number."),
    ("\"distanceResultField\": \"d\"", "\"distanceResultField\": \"__d__\"", "The distanceResultField.property.name"),
  ])
  func invalidSearchesAreRefused(part: String, replacement: String, text: String) throws {
    let search = Self.search.replacing(part, with: replacement)
    #expect(search != Self.search)
    let reply = try server().call("POST", ":runQuery", "{\(search)}")
    #expect(reply.status == 400)
    #expect(reply.message.hasPrefix(text), "\(reply.text)")
  }
}
