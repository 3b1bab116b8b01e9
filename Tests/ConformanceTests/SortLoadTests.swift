import Foundation
import Testing
import TestSupport

/// Many queries that sort at once: the server's memory has a limit.
@Suite(.needs(.hearth))
struct SortLoadTests {
  private static let documents = 4_000
  private static let clients = 80
  /// The memory in addition to that of an idle server: 64 MiB for sorts (`ScratchLimits.memoryBytesMax`), and the
  /// requests and responses. Without a common limit, these sorts take 470 MiB together.
  private static let extraBytesMax = 128 << 20
  /// The memory that may remain ten seconds after the load. Measured: 58 MiB during the load, 2 MiB after it.
  private static let restBytesMax = 64 << 20

  private static let query: JSONNode = [
    "structuredQuery": [
      "from": [["collectionId": "c"]],
      "select": ["fields": [["fieldPath": "__name__"]]],
      "orderBy": [["field": ["fieldPath": "a"]], ["field": ["fieldPath": "b"]]],
    ]
  ]

  @Test(.timeLimit(.minutes(10)), arguments: [true, false])
  func eightySortsStayBelowALimit(isInMemory: Bool) async throws {
    let directory = try TemporaryDirectory()
    let (problems, extra, rest) = try await onDedicatedThread { () -> ([String], Int, Int) in
      let server = try HearthProcess(
        arguments: ["--emulator"] + (isInMemory ? ["--in-memory"] : ["--data", directory.path]))
      defer { server.process.stop() }
      let database = TestDatabase(project: "sorts")
      let expected = try Self.load(RESTSession(port: server.port, database: database, timeoutSeconds: 60))
      let (target, body) = (database.url("", verb: "runQuery"), Array(Self.query.text.utf8))
      // The first sort also allocates what an idle server keeps.
      var problems = Self.problems(Self.ask(server.port, target, body), expected)
      let idle = try Self.memory(server.process.processID)
      let done = Observed(false)
      let peak = Observed(0)
      let watcher = startThreads(1) { _ in
        OtherProcess.eventually(secondsMax: 500) {
          if let bytes = try? Self.memory(server.process.processID) { peak.update { $0 = max($0, bytes) } }
          return done.value
        }
      }
      let wait = startThreads(Self.clients) { _ in
        Self.problems(Self.ask(server.port, target, body), expected)
      }
      problems += wait().flatMap { $0 }
      done.update { $0 = true }
      _ = watcher()
      var rest = Int.max
      _ = try OtherProcess.eventually(secondsMax: 10) {
        rest = try Self.memory(server.process.processID) - idle
        return rest <= Self.restBytesMax
      }
      problems += Self.problems(Self.ask(server.port, target, body), expected)
      return (problems, peak.value - idle, rest)
    }
    #expect(problems.isEmpty, "\(problems.count) problems, such as \(problems.prefix(3))")
    #expect(extra <= Self.extraBytesMax, "\(extra >> 20) MiB")
    #expect(rest <= Self.restBytesMax, "\(rest >> 20) MiB")
  }

  /// Writes the documents, and returns their numbers in the order of the query.
  private static func load(_ session: RESTSession) throws -> [Int] {
    var expected: [(key: Int, number: Int)] = []
    var random = SplitMix(seed: 16)
    let filling = String(repeating: "x", count: 1_380)
    for start in stride(from: 0, to: documents, by: 400) {
      let writes = (start..<start + 400).map { number -> JSONNode in
        let key = 100_000_000 + Int.random(in: 0..<800_000_000, using: &random)
        expected.append((key, number))
        // The long part comes first, so that keys differ only at their end.
        return session.update(
          "c/d\(number)", ["a": ["integerValue": "1"], "b": ["stringValue": .string("\(filling)\(key)")]])
      }
      let reply = try session.commit(writes)
      guard reply.status == 200 else { throw UnexpectedResponse(reply: reply) }
    }
    return expected.sorted { ($0.key, $0.number) < ($1.key, $1.number) }.map(\.number)
  }

  private static func ask(_ port: UInt16, _ target: String, _ body: [UInt8]) -> Result<HTTPResponse, any Error> {
    Result {
      try TestHTTPClient(port: port, timeoutSeconds: 300).send(
        "POST", target, headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")], body: body)
    }
  }

  /// Returns a text if a response is neither right nor RESOURCE_EXHAUSTED.
  private static func problems(_ response: Result<HTTPResponse, any Error>, _ expected: [Int]) -> [String] {
    do {
      let text = try response.get().text
      if text.contains("RESOURCE_EXHAUSTED"), text.contains("Declare an index") { return [] }
      let numbers = text.components(separatedBy: "/documents/c/d").dropFirst().compactMap {
        Int($0.prefix { $0.isNumber })
      }
      return numbers == expected ? [] : ["\(numbers.count) documents; \(text.suffix(300))"]
    } catch { return ["\(error)"] }
  }

  /// The memory of a process without files behind it, in bytes.
  private static func memory(_ process: pid_t) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon") }),
      let kibibytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
    else { throw ServerProcessError(description: "no RssAnon in \(text)") }
    return kibibytes << 10
  }
}
