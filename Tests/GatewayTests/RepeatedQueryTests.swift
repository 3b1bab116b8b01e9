import Foundation
import Testing
import TestSupport

/// The server keeps the meaning of request bodies that come again, but never their results.
@Suite struct RepeatedQueryTests {
  private static let query = """
    {"structuredQuery": {"from": [{"collectionId": "c"}], "where": {"fieldFilter": {"field": {"fieldPath": "done"}, \
    "op": "EQUAL", "value": {"booleanValue": true}}}, "orderBy": [{"field": {"fieldPath": "n"}}]}}
    """
  /// More than the number after which a body is kept.
  private static let repetitions = 4

  private func set(_ server: TestServer, _ path: String, done: Bool = true, _ number: Int) throws {
    let reply = try server.call(
      "PATCH", path,
      #"{"fields": {"done": {"booleanValue": \#(done)}, "n": {"integerValue": "\#(number)"}}}"#)
    #expect(reply.status == 200, "\(reply.text)")
  }

  /// Returns the IDs of the documents that each repetition finds, which must be equal.
  private func results(_ server: TestServer, _ target: String, _ body: String = query) throws -> [String] {
    var found: Set<[String]> = []
    for _ in 0..<Self.repetitions {
      let reply = try server.call("POST", target, body)
      #expect(reply.status == 200, "\(reply.text)")
      let messages = try #require(reply.json as? [[String: Any]])
      let names = messages.compactMap { ($0["document"] as? [String: Any])?["name"] as? String }
      found.insert(names.compactMap { $0.components(separatedBy: "/").last })
    }
    #expect(found.count == 1)
    return found.first ?? []
  }

  @Test func eachRepetitionReadsTheNewestState() throws {
    let server = try TestServer()
    #expect(try results(server, ":runQuery") == [])
    try set(server, "/c/a", 2)
    #expect(try results(server, ":runQuery") == ["a"])
    try set(server, "/c/b", 1)
    #expect(try results(server, ":runQuery") == ["b", "a"])
    try set(server, "/c/a", done: false, 2)
    #expect(try results(server, ":runQuery") == ["b"])
  }

  @Test func theSameBodyIsAnotherQueryBelowAnotherParentOrInAnotherDatabase() throws {
    let server = try TestServer()
    let other = "/v1/projects/p/databases/other/documents"
    try set(server, "/c/top", 1)
    try set(server, "/x/y/c/below", 1)
    try set(server, "\(other)/c/other", 1)
    for _ in 0..<2 {
      #expect(try results(server, ":runQuery") == ["top"])
      #expect(try results(server, "/x/y:runQuery") == ["below"])
      #expect(try results(server, "\(other):runQuery") == ["other"])
    }
  }

  @Test func eachRepetitionBeginsATransactionOfItsOwn() throws {
    let server = try TestServer()
    try set(server, "/c/a", 1)
    let body = Self.query.dropLast() + #", "newTransaction": {"readOnly": {}}}"#
    var transactions: Set<String> = []
    for _ in 0..<Self.repetitions {
      let reply = try server.call("POST", ":runQuery", String(body))
      transactions.insert(try #require(reply.json(0, "transaction"), "\(reply.text)"))
    }
    #expect(transactions.count == Self.repetitions)
  }

  @Test func anInvalidQueryIsRefusedEachTime() throws {
    let server = try TestServer()
    let negative = #"{"structuredQuery": {"from": [{"collectionId": "c"}], "limit": -1}}"#
    let malformed = #"{"structuredQuery": {"from": 1}}"#
    for body in [negative, malformed, #"{"parent": 1"#] {
      var texts: Set<String> = []
      for _ in 0..<Self.repetitions {
        let reply = try server.call("POST", ":runQuery", body)
        #expect(reply.status == 400)
        texts.insert(reply.text)
      }
      #expect(texts.count == 1)
    }
  }
}
