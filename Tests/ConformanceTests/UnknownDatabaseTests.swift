import Foundation
import Testing
import TestSupport

/// Requests to an emulator may name any project and database. Reads of those that do not exist cost nothing that
/// remains, and the number of those that exist is limited.
@Suite(.needs(.hearth)) struct UnknownDatabaseTests {
  private static let owner = [("Authorization", "Bearer owner")]

  @Test(.timeLimit(.minutes(5)), arguments: [false, true]) func readsCreateNothing(isStored: Bool) async throws {
    try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let server = try HearthProcess(arguments: ["--emulator"] + (isStored ? ["--data", directory.path] : []))
      defer { server.process.stop() }
      let client = TestHTTPClient(port: server.port)
      for number in 0..<50 { try Self.read(number, client) }
      let before = try Self.use(of: server)
      for number in 50..<5050 { try Self.read(number, client) }
      let after = try Self.use(of: server)
      #expect(after.descriptors <= before.descriptors + 8, "\(before) \(after)")
      #expect(after.kilobytes < before.kilobytes + (16 << 10), "\(before) \(after)")
      let folder = "\(directory.path)/databases"
      #expect((try? FileManager.default.contentsOfDirectory(atPath: folder))?.isEmpty ?? true)
      // A write creates the database, and the read time of an earlier read remains valid.
      let query = try client.send("POST", "\(Self.root(9)):runQuery", headers: Self.owner, body: Array(Self.query.utf8))
      let time = try #require(query.text.firstMatch(of: /"readTime": "([^"]+)"/)?.output.1)
      let path = "\(Self.root(9))/c/x"
      #expect(try client.send("PATCH", path, headers: Self.owner, body: Array("{}".utf8)).status == 200)
      #expect(try client.send("GET", path, headers: Self.owner).status == 200)
      #expect(try client.send("GET", "\(path)?readTime=\(time)", headers: Self.owner).status == 404)
    }
  }

  private static let query = #"{"structuredQuery": {"from": [{"collectionId": "c"}]}}"#

  private static func root(_ number: Int) -> String {
    number.isMultiple(of: 2)
      ? "/v1/projects/p\(number)/databases/(default)/documents" : "/v1/projects/p/databases/d\(number)/documents"
  }

  private static func read(_ number: Int, _ client: TestHTTPClient) throws {
    let root = root(number)
    let count =
      #"{"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "c"}]}, "#
      + #""aggregations": [{"count": {}, "alias": "n"}]}}"#
    let (method, path, body, status) =
      switch number % 7 {
      case 0: ("GET", "/c/x", "", 404)
      case 1: ("GET", "/c", "", 200)
      case 2: ("POST", ":runQuery", query, 200)
      case 3: ("POST", ":runAggregationQuery", count, 200)
      case 4: ("POST", ":batchGet", #"{"documents": ["\#(root.dropFirst(4))/c/x"]}"#, 200)
      case 5: ("POST", ":listCollectionIds", "{}", 200)
      default: ("GET", "/c/x?readTime=2100-01-01T00:00:00Z", "", 400)
      }
    let reply = try client.send(method, root + path, headers: owner, body: Array(body.utf8))
    #expect(reply.status == status, "\(method) \(path): \(reply.text)")
  }

  /// Returns the descriptors and the memory of a server.
  private static func use(of server: HearthProcess) throws -> (descriptors: Int, kilobytes: Int) {
    let process = "/proc/\(server.process.processID)"
    let status = try String(contentsOfFile: "\(process)/status", encoding: .utf8)
    let memory = try #require(status.firstMatch(of: /VmRSS:\s+(\d+) kB/)?.output.1)
    return (try FileManager.default.contentsOfDirectory(atPath: "\(process)/fd").count, Int(memory) ?? 0)
  }
}
