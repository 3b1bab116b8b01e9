import Dispatch
import DocumentModel
import Glibc
import Testing
import TestSupport

@testable import FirestoreAPI

/// Requests that another thread than the event loop decodes get the same responses as small ones.
@Suite struct LargeRequestTests {
  private static let root = TestServer.name

  @Test func anotherThreadDecodes() {
    for (count, isLarge) in [(Limits.decodedOnLoopBytesMax, false), (Limits.decodedOnLoopBytesMax + 1, true)] {
      [UInt8](repeating: 0, count: count).withUnsafeBytes { #expect(LargeRequests.contains($0) == isLarge) }
    }
    let (caller, decoder) = (pthread_self(), Observed<pthread_t?>(nil))
    let isDone = DispatchSemaphore(value: 0)
    LargeRequests.run {
      decoder.update { $0 = pthread_self() }
      isDone.signal()
    }
    #expect(isDone.wait(timeout: .now() + 60) == .success)
    #expect(decoder.value != nil && decoder.value != caller)
  }

  /// Methods, their bodies in JSON, and whether the server must accept them.
  private static let requests: [(path: String, body: String, status: Int)] = [
    (":batchGet", #"{"documents": ["ROOT/c/b", "ROOT/c/none", "ROOT/c/a", "ROOT/c/b"]}"#, 200),
    (":batchGet", "{}", 200), (":batchGet", #"{"documents": 5}"#, 400), (":batchGet", #"{"documents": ["x"]}"#, 400),
    (":batchGet", "{", 400), (":batchGet", #"{"documents": ["ROOT/c/a"], "transaction": "AAAA"}"#, 400),
    (":runQuery", #"{"structuredQuery": {"from": [{"collectionId": "c"}]}}"#, 200), (":runQuery", "{}", 400),
    (":runQuery", #"{"structuredQuery": {"from": 5}}"#, 400), (":runQuery", "[1, 2", 400),
    (":runQuery", #"{"structuredQuery": {"from": [{"collectionId": "c"}], "limit": -1}}"#, 400),
    (
      ":runAggregationQuery",
      #"{"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "c"}]}, "#
        + #""aggregations": [{"alias": "n", "count": {}}]}}"#, 200
    ),
    (":runAggregationQuery", #"{"structuredAggregationQuery": {"structuredQuery": {}}}"#, 400),
    (":commit", "{}", 200), (":commit", #"{"writes": [{"delete": "ROOT/c/none"}]}"#, 200),
    (":commit", #"{"writes": [{"delete": 5}]}"#, 400), (":commit", #"{"transaction": "AAAA"}"#, 400),
    (
      ":commit", #"{"writes": [{"delete": "ROOT/c/a", "currentDocument": {"updateTime": "2001-01-01T00:00:00Z"}}]}"#,
      400
    ),
    (":batchWrite", #"{"writes": [{"delete": "ROOT/c/none"}, {"delete": "ROOT/c/x"}]}"#, 200),
    (":batchWrite", #"{"writes": [{}]}"#, 400),
  ]

  private static func server() throws -> TestServer {
    let server = try TestServer()
    for name in ["a", "b"] {
      #expect(try server.call("PATCH", "/c/\(name)", #"{"fields": {"n": {"integerValue": "1"}}}"#).status == 200)
    }
    return server
  }

  /// A response without its times, which differ from request to request.
  private static func text(_ response: TestServer.Response) -> String {
    response.text.replacing(/"(readTime|commitTime)": *"[^"]*"/, with: "TIME")
  }

  @Test(arguments: requests.indices) func responsesOverRESTAreTheSame(index: Int) throws {
    let server = try Self.server()
    let request = Self.requests[index]
    let body = request.body.replacing("ROOT", with: Self.root)
    let spaces = String(repeating: " ", count: Limits.decodedOnLoopBytesMax)
    let small = try server.call("POST", request.path, body)
    let large = try server.call("POST", request.path, spaces + body)
    #expect(small.status == request.status, "\(small.text)")
    #expect(large.status == small.status)
    #expect(Self.text(large) == Self.text(small))
    #expect(large.headers.map(\.name) == small.headers.map(\.name))
  }

  @Test func responsesOverGRPCAreTheSame() throws {
    let server = try Self.server()
    let grpc = try GRPCConnection(port: server.port)
    func text(_ field: UInt8, _ text: String) -> [UInt8] { [field << 3 | 2, UInt8(text.utf8.count)] + text.utf8 }
    let database = text(1, "projects/p/databases/(default)")
    // A field that no message has: number 1000, of a length with three digits to the base of 128.
    let count = Limits.decodedOnLoopBytesMax
    let unknown: [UInt8] =
      [0xC2, 0x3E] + [UInt8(count & 0x7F | 0x80), UInt8(count >> 7 & 0x7F | 0x80), UInt8(count >> 14)]
      + [UInt8](repeating: 0, count: count)
    let query = [18, 5, 18, 3] + text(2, "c")
    let parent = text(1, Self.root)
    let messages: [(method: String, message: [UInt8], status: Int)] = [
      ("BatchGetDocuments", database + text(2, "\(Self.root)/c/none") + text(2, "\(Self.root)/c/a"), 0),
      ("BatchGetDocuments", database + text(2, "x"), 3), ("BatchGetDocuments", database + text(4, "x"), 3),
      ("Commit", database, 0), ("Commit", database + text(3, "x"), 3),
      ("BatchWrite", database + [18] + [UInt8(Self.root.utf8.count + 9)] + text(2, "\(Self.root)/c/none"), 0),
      ("RunQuery", parent + query, 0), ("RunQuery", parent, 3), ("RunAggregationQuery", parent, 3),
    ]
    for (method, message, status) in messages {
      let small = try grpc.call(method, message)
      let large = try grpc.call(method, message + unknown)
      #expect(small.status == status, "\(method): \(small.statusMessage)")
      #expect(large.status == small.status && large.statusMessage == small.statusMessage, "\(method)")
      #expect(large.messages.map(\.count) == small.messages.map(\.count), "\(method)")
    }
  }

  /// The names of a large batch, in any order and repeated, are answered in name order.
  @Test func aLargeBatchIsAnsweredInOrder() throws {
    let server = try Self.server()
    var random = SplitMix(seed: 1)
    let ids = (0..<8000).map { "n\(10_000 + $0)" } + ["a", "b"]
    let names = (ids + ids.prefix(100)).shuffled(using: &random).map { "\"\(Self.root)/c/\($0)\"" }
    let reply = try server.call("POST", ":batchGet", #"{"documents": [\#(names.joined(separator: ","))]}"#)
    #expect(reply.status == 200)
    let elements = try #require(reply.json as? [[String: Any]])
    let found = elements.compactMap { ($0["found"] as? [String: Any])?["name"] as? String }
    let missing = elements.compactMap { $0["missing"] as? String }
    #expect(found == ["\(Self.root)/c/a", "\(Self.root)/c/b"])
    #expect(missing == ids.prefix(8000).map { "\(Self.root)/c/\($0)" })
  }
}
