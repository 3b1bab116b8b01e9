import Testing

/// The messages of explained queries over REST.
@Suite struct ExplainTests {
  private static let equality = """
    "structuredQuery": {"from": [{"collectionId": "c"}], "where": {"fieldFilter":
      {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}}}
    """
  private static let summary = """
    {"indexesUsed": [{"query_scope": "Collection", "properties": "(a ASC, __name__ ASC)",
      "plan": "scan entries of c: a == …"}]}
    """

  private func server() throws -> TestServer {
    let server = try TestServer()
    for (id, a) in [("x", 1), ("y", 1), ("z", 2)] {
      let fields = "{\"fields\": {\"a\": {\"integerValue\": \"\(a)\"}}}"
      #expect(try server.call("POST", "/c?documentId=\(id)", fields).status == 200)
    }
    return server
  }

  @Test func planAloneReturnsNoDocument() throws {
    let reply = try server().call("POST", ":runQuery", "{\(Self.equality), \"explainOptions\": {}}")
    #expect(matches("[{\"explainMetrics\": {\"planSummary\": \(Self.summary)}}]", reply), "\(reply.text)")
  }

  @Test func analyzedQueryEndsWithItsStatistics() throws {
    let reply = try server().call("POST", ":runQuery", "{\(Self.equality), \"explainOptions\": {\"analyze\": true}}")
    let stats = """
      {"resultsReturned": "2", "executionDuration": "*", "readOperations": "2", "debugStats": {
        "documents_scanned": "2", "index_entries_scanned": "2", "billing_details":
          {"documents_billable": "2", "index_entries_billable": "0", "min_query_cost": "0"}}}
      """
    let expected = """
      [{"document": "*", "readTime": "*"}, {"document": "*", "readTime": "*",
        "explainMetrics": {"planSummary": \(Self.summary), "executionStats": \(stats)}}]
      """
    #expect(matches(expected, reply), "\(reply.text)")
    let duration: String? = reply.json(1, "explainMetrics", "executionStats", "executionDuration")
    #expect(duration?.wholeMatch(of: /0\.\d{6}s/) != nil && duration != "0.000000s", "\(duration ?? "none")")
  }

  /// The last result is known only at the end of the results, also if the response is sent in many parts.
  @Test func metricsComeWithTheLastResult() throws {
    let server = try server()
    for number in 0..<300 {
      let text = String(repeating: "x", count: 5000)
      let fields = "{\"fields\": {\"a\": {\"integerValue\": \"9\"}, \"t\": {\"stringValue\": \"\(text)\"}}}"
      #expect(try server.call("POST", "/c?documentId=n\(1000 + number)", fields).status == 200)
    }
    let query = Self.equality.replacing("\"1\"", with: "\"9\"")
    let reply = try server.call("POST", ":runQuery", "{\(query), \"explainOptions\": {\"analyze\": true}}")
    let messages = try #require(reply.json as? [[String: Any]])
    #expect(messages.count == 300)
    let names = messages.compactMap { ($0["document"] as? [String: Any])?["name"] as? String }
    #expect(names == (0..<300).map { "\(TestServer.name)/c/n\(1000 + $0)" })
    #expect(messages.indices.filter { messages[$0]["explainMetrics"] != nil } == [299])
    #expect(messages.allSatisfy { $0["readTime"] != nil })
  }

  @Test func emptyResultIsExplainedInOneMessage() throws {
    let query = Self.equality.replacing("\"1\"", with: "\"7\"")
    let reply = try server().call("POST", ":runQuery", "{\(query), \"explainOptions\": {\"analyze\": true}}")
    #expect(reply.json(0, "explainMetrics", "executionStats", "resultsReturned") == "0")
    #expect(reply.json(0, "explainMetrics", "executionStats", "readOperations") == "1")
    #expect((reply.json as? [Any])?.count == 1)
  }

  @Test func skippedDocumentsAreBilled() throws {
    let query = Self.equality.dropLast() + ", \"offset\": 1}"
    let reply = try server().call("POST", ":runQuery", "{\(query), \"explainOptions\": {\"analyze\": true}}")
    #expect(reply.json(0, "skippedResults", as: Int.self) == 1, "\(reply.text)")
    #expect(reply.json(1, "explainMetrics", "executionStats", "resultsReturned") == "1", "\(reply.text)")
    #expect(reply.json(1, "explainMetrics", "executionStats", "readOperations") == "2")
  }

  @Test func transactionComesBeforeThePlan() throws {
    let reply = try server().call(
      "POST", ":runQuery", "{\(Self.equality), \"newTransaction\": {}, \"explainOptions\": {}}")
    #expect(reply.json(0, "transaction") != nil)
    #expect(reply.json(1, "explainMetrics", as: Any.self) != nil, "\(reply.text)")
  }

  @Test(arguments: [false, true]) func aggregationsAreExplained(analyze: Bool) throws {
    let body = """
      {"structuredAggregationQuery": {\(Self.equality), "aggregations": [{"alias": "n", "count": {}},
        {"alias": "s", "sum": {"field": {"fieldPath": "a"}}}]}, "explainOptions": {"analyze": \(analyze)}}
      """
    let reply = try server().call("POST", ":runAggregationQuery", body)
    let summary = Self.summary.replacing("scan", with: "count, sum of a\\n  scan")
    let stats = """
      {"resultsReturned": "1", "executionDuration": "*", "readOperations": "1", "debugStats": {
        "documents_scanned": "2", "index_entries_scanned": "2", "billing_details":
          {"documents_billable": "1", "index_entries_billable": "0", "min_query_cost": "0"}}}
      """
    let result = #"{"aggregateFields": {"n": {"integerValue": "2"}, "s": {"integerValue": "2"}}}"#
    let expected =
      analyze
      ? """
      [{"result": \(result), "readTime": "*",
        "explainMetrics": {"planSummary": \(summary), "executionStats": \(stats)}}]
      """ : "[{\"explainMetrics\": {\"planSummary\": \(summary)}}]"
    #expect(matches(expected, reply), "\(reply.text)")
  }

  @Test(arguments: [
    (#""from": [{"collectionId": "c"}]"#, "Collection", "(__name__ ASC)"),
    (#""from": [{"collectionId": "c", "allDescendants": true}]"#, "Collection group", "(__name__ ASC)"),
    (
      #""from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "a"}, "direction": "DESCENDING"}]"#,
      "Collection", "(a DESC, __name__ DESC)"
    ),
    (
      #""from": [{"collectionId": "c"}], "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "IN", "value": {"arrayValue": {"values": [{"integerValue": "1"}, {"integerValue": "2"}]}}}}"#,
      "Collection", "(a ASC, __name__ ASC)"
    ),
    (
      #""from": [{"collectionId": "c", "allDescendants": true}], "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}}, "findNearest": {"vectorField": {"fieldPath": "v"}, "queryVector": {"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values": [{"doubleValue": 1}, {"doubleValue": 2}, {"doubleValue": 3}]}}}}}, "distanceMeasure": "EUCLIDEAN", "limit": 3}"#,
      "Collection group", "(a ASC, __name__ ASC, v VECTOR<3>)"
    ),
  ])
  func indexesAreNamedAsClientsExpect(query: String, scope: String, properties: String) throws {
    let reply = try server().call("POST", ":runQuery", "{\"structuredQuery\": {\(query)}, \"explainOptions\": {}}")
    #expect(reply.json(0, "explainMetrics", "planSummary", "indexesUsed", 0, "query_scope") == scope, "\(reply.text)")
    #expect(reply.json(0, "explainMetrics", "planSummary", "indexesUsed", 0, "properties") == properties)
  }

  @Test func averageOfAFieldReadsItsIndex() throws {
    let body = """
      {"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "c"}]},
        "aggregations": [{"avg": {"field": {"fieldPath": "a"}}}]}, "explainOptions": {}}
      """
    let reply = try server().call("POST", ":runAggregationQuery", body)
    #expect(
      reply.json(0, "explainMetrics", "planSummary", "indexesUsed", 0, "properties") == "(a ASC, __name__ ASC)",
      "\(reply.text)")
  }

  @Test func unknownOptionIsRefused() throws {
    let reply = try server().call("POST", ":runQuery", "{\(Self.equality), \"explainOptions\": {\"verbose\": true}}")
    #expect(reply.status == 400)
    #expect(
      reply.message
        == "Invalid JSON payload received. Unknown name \"verbose\" at 'explain_options': Cannot find field.")
  }
}
