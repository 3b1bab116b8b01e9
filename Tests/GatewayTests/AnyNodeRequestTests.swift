import Testing
import TestSupport
@testable import FirestoreAPI
@testable import GatewayCore
@testable import Transport

/// Which requests a node of a cluster handles itself if it does not own the project.
@Suite struct AnyNodeRequestTests {
  private static let root = "/v1/projects/p/databases/(default)/documents"
  private static let parent = "projects/p/databases/(default)/documents"

  /// Calls `body` with a request.
  private func with<R>(
    _ method: HTTPMethod, _ target: String, body bytes: [UInt8] = [], isGRPC: Bool = false, prefix: String? = nil,
    _ body: (borrowing HTTPRequest) -> R
  ) throws -> R {
    var part = RequestPart()
    part.method = method
    part.target = Array(target.utf8)
    part.body = bytes
    if isGRPC { part.fields.append((Array("content-type".utf8), Array("application/grpc".utf8))) }
    if let prefix { part.fields.append((Array("google-cloud-resource-prefix".utf8), Array(prefix.utf8))) }
    let result = part.withRequest(isHTTP2: isGRPC, body)
    return try #require(result)
  }

  private func database(
    _ method: HTTPMethod, _ target: String, _ text: String = "", prefix: String? = nil
  ) throws -> String? {
    try with(method, target, body: Array(text.utf8), prefix: prefix) { request in
      AnyNodeRequests.forDocuments.form(of: request) == nil
        ? nil : AnyNodeRequests.databaseRead(by: request, of: "p")
    }
  }

  @Test(arguments: [
    (HTTPMethod.get, "/c/a", ""), (.head, "/c/a", ""), (.get, "/c?pageSize=1&mask.fieldPaths=%60a%60", ""),
    (.post, ":runQuery", #"{"structuredQuery": {"from": [{"collectionId": "c"}]}}"#), (.post, "/c/a:runQuery", "{}"),
    (.post, ":batchGet", #"{"documents": []}"#), (.post, ":runAggregationQuery", "{}"),
    (.post, ":partitionQuery", "{}"), (.post, ":listCollectionIds", "{}"), (.get, "/c:listen", ""),
    (.get, ":changes", ""),
  ]) func readsOverREST(method: HTTPMethod, path: String, body: String) throws {
    #expect(try database(method, Self.root + path, body) == "(default)")
    #expect(try database(method, Self.root.replacing("/p/", with: "/other/") + path, body) == nil)
  }

  /// A transaction is in the owner's process, and only the owner can promise that no commit comes at or below a time.
  @Test(arguments: [
    (HTTPMethod.get, "/c/a?transaction=AQ==", ""), (.get, "/c/a?readTime=2026-01-01T00:00:00Z", ""),
    (.get, "/c/a?read%54ime=2026-01-01T00:00:00Z", ""), (.get, "/c/a?%74ransaction=AQ==", ""), (.get, "/c/a?%zz", ""),
    (.get, "/c/a?read__time=2026-01-01T00:00:00Z", ""), (.get, "/c/a?read_Time=2026-01-01T00:00:00Z", ""),
    (.post, ":runQuery", #"{"newTransaction": {}}"#), (.post, ":batchGet", #"{"transaction": "AQ=="}"#),
    (.post, ":runQuery", #"{"read_time": "2026-01-01T00:00:00Z"}"#), (.post, ":batchGet", #"{"new_transaction": {}}"#),
    (.post, ":batchGet", #"{"\u0074ransactio\u006e": "AQ=="}"#), (.post, ":listCollectionIds", #"{"readTime": "x"}"#),
  ]) func readsOfATransactionOrATimeAreTheOwners(method: HTTPMethod, path: String, body: String) throws {
    #expect(try database(method, Self.root + path, body) == nil)
  }

  @Test(arguments: [
    (HTTPMethod.post, root + ":commit"), (.post, root + ":batchWrite"), (.post, root + "/c"), (.patch, root + "/c/a"),
    (.delete, root + "/c/a"), (.post, root + ":beginTransaction"), (.post, root + ":rollback"),
    (.post, root + ":executePipeline"), (.post, "/v1/accounts:signUp"), (.get, "/"), (.get, "/v0/b/p/o/a"),
    (.post, "/google.firestore.v1.Firestore/Listen/channel?VER=8"), (.put, root + "/c/a"),
    (.get, "/.well-known/jwks.json"),
  ]) func theRestIsTheOwners(method: HTTPMethod, target: String) throws {
    #expect(try database(method, target) == nil)
  }

  /// A message with fields of a number and a text each.
  private func message(_ fields: [(UInt8, String)], isCompressed: Bool = false) -> [UInt8] {
    let bytes = fields.flatMap { [$0.0 << 3 | 2, UInt8($0.1.utf8.count)] + Array($0.1.utf8) }
    return [isCompressed ? 1 : 0, 0, 0, 0, UInt8(bytes.count)] + bytes
  }

  private func database(_ method: String, _ body: [UInt8]) throws -> String? {
    try with(.post, "/google.firestore.v1.Firestore/\(method)", body: body, isGRPC: true) { request in
      #expect(AnyNodeRequests.forDocuments.form(of: request) == .whole)
      return AnyNodeRequests.databaseRead(by: request, of: "p")
    }
  }

  @Test(
    arguments: [
      ("GetDocument", [3, 5]), ("ListDocuments", [8, 10]), ("BatchGetDocuments", [4, 5, 7]), ("RunQuery", [5, 6, 7]),
      ("RunAggregationQuery", [4, 5, 6]), ("PartitionQuery", [6]), ("ListCollectionIds", [4]),
    ] as [(String, [UInt8])]) func readsOverGRPC(method: String, ofOwner: [UInt8]) throws
  {
    #expect(try database(method, message([(1, Self.parent)])) == "(default)")
    #expect(try database(method, message([(1, "projects/p/databases/b"), (2, "x")])) == "b")
    for number in ofOwner { #expect(try database(method, message([(1, Self.parent), (number, "x")])) == nil) }
    #expect(try database(method, message([(15, "a field of a later version"), (1, Self.parent)])) == nil)
    #expect(try database(method, message([(1, Self.parent)], isCompressed: true)) == nil)
    #expect(try database(method, message([(1, "projects/other/databases/b")])) == nil)
    #expect(try database(method, message([(1, "projects/p")])) == nil)
    #expect(try database(method, message([])) == nil)
    #expect(try database(method, []) == nil)
    // The last field counts.
    #expect(try database(method, message([(1, Self.parent), (1, "projects/p/databases/b")])) == "b")
  }

  @Test func aStreamNamesItsDatabaseInItsHead() throws {
    let target = "/google.firestore.v1.Firestore/Listen"
    func found(_ prefix: String?) throws -> String? {
      try with(.post, target, isGRPC: true, prefix: prefix) { request in
        #expect(AnyNodeRequests.forDocuments.form(of: request) == .stream)
        return AnyNodeRequests.databaseRead(by: request, of: "p")
      }
    }
    #expect(try found("projects/p/databases/b") == "b")
    #expect(try found("projects/other/databases/b") == nil)
    #expect(try found(nil) == nil)
  }
}
