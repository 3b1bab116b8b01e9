import Testing

/// PartitionQuery over REST: its responses page by page, and its errors.
@Suite struct PartitionTests {
  private static let group = #""structuredQuery": {"from": [{"collectionId": "c", "allDescendants": true}]}"#

  private func server() throws -> TestServer {
    let server = try TestServer()
    for number in 0..<20 {
      let collection = number < 12 ? "/c" : "/p/x/c"
      #expect(try server.call("POST", "\(collection)?documentId=d\(number + 10)", "{}").status == 200)
    }
    return server
  }

  @Test func partitionsAreCursorsOnReferences() throws {
    let reply = try server().call("POST", ":partitionQuery", "{\(Self.group), \"partitionCount\": \"1\"}")
    let expected = """
      {"partitions": [{"values": [{"referenceValue": "\(TestServer.name)/c/d20"}], "before": true}]}
      """
    #expect(matches(expected, reply), "\(reply.text)")
  }

  @Test func pagesTogetherEqualTheWholeResponse() throws {
    let server = try server()
    let whole = try server.call("POST", ":partitionQuery", "{\(Self.group), \"partitionCount\": 7}")
    #expect(whole.json("nextPageToken") == nil)
    let names = Self.names(whole)
    #expect(names.count == 7)
    var pages: [String] = []
    var token = ""
    repeat {
      let reply = try server.call(
        "POST", ":partitionQuery",
        "{\(Self.group), \"partitionCount\": 7, \"pageSize\": 3, \"pageToken\": \"\(token)\"}")
      #expect(Self.names(reply).count == (pages.count < 6 ? 3 : 1), "\(reply.text)")
      pages += Self.names(reply)
      token = reply.json("nextPageToken") ?? ""
      // Commits between two pages do not change the partitions.
      for number in 0..<5 { _ = try server.call("POST", "/c?documentId=a\(pages.count)-\(number)", "{}") }
    } while !token.isEmpty
    #expect(pages == names)
  }

  private static func names(_ reply: TestServer.Response) -> [String] {
    (0..<100).compactMap { reply.json("partitions", $0, "values", 0, "referenceValue") }
  }

  @Test func emptyGroupHasNoPartitions() throws {
    let reply = try TestServer().call("POST", ":partitionQuery", "{\(Self.group), \"partitionCount\": 3}")
    #expect(matches("{}", reply), "\(reply.text)")
  }

  @Test(arguments: [
    (#""partitionCount": 0"#, "", "", "partition_count must be positive."),
    (#""partitionCount": "-1""#, "", "", "partition_count must be positive."),
    (#""pageSize": 3"#, "", "", "partition_count must be positive."),
    (#""partitionCount": 3, "pageSize": -1"#, "", "", "Page size must be nonnegative."),
    (#""partitionCount": 3, "pageToken": "AAAA""#, "", "", "invalid page token"),
    (#""partitionCount": 3, "pageToken": "*""#, "", "", "invalid page token"),
    (#""partitionCount": 3"#, "/c/d10", "", "The parent of a partition query must be the root of the documents."),
    (#""partitionCount": 3"#, "", #""limit": 3"#, "A partition query must have one collection"),
    (#""partitionCount": 3"#, "", #""offset": 3"#, "A partition query must have one collection"),
    (#""partitionCount": 3"#, "", #""startAt": {}"#, "A partition query must have one collection"),
    (
      #""partitionCount": 3"#, "", #""orderBy": [{"field": {"fieldPath": "a"}}]"#,
      "A partition query must have one collection"
    ),
    (
      #""partitionCount": 3"#, "",
      #""where": {"unaryFilter": {"field": {"fieldPath": "a"}, "op": "IS_NULL"}}"#,
      "A partition query must have one collection"
    ),
    (#""partitionCount": 3, "transaction": "AAAA""#, "", "", "Invalid JSON payload received. Unknown name"),
  ])
  func invalidPartitionQueriesAreRefused(body: String, parent: String, query: String, text: String) throws {
    let group = query.isEmpty ? Self.group : Self.group.dropLast() + ", " + query + "}"
    let reply = try server().call("POST", "\(parent):partitionQuery", "{\(group), \(body)}")
    #expect(reply.status == 400)
    #expect(reply.message.hasPrefix(text), "\(reply.text)")
  }

  @Test func queriesOfOneCollectionAreRefused() throws {
    let body = #"{"structuredQuery": {"from": [{"collectionId": "c"}]}, "partitionCount": 3}"#
    #expect(try server().call("POST", ":partitionQuery", body).status == 400)
    #expect(try server().call("POST", ":partitionQuery", #"{"partitionCount": 3}"#).status == 400)
  }
}
