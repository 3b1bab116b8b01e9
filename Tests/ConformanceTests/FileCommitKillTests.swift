import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

/// Kills `hearth serve --data` while it receives files that are committed together with a document. A reader finds
/// both or neither, before and after a kill. Servers with and without a commit log take turns.
///
/// `CONFORMANCE_SEED` determines when the server is killed.
@Suite(.needs(.hearth))
struct FileCommitKillTests {
  private static let kills = 6
  private static let names = 3
  private static let owner = [("Authorization", "Bearer owner")]
  private static let documents = "/v1/projects/demo/databases/(default)/documents"

  @Test(.timeLimit(.minutes(10))) func fileAndDocumentSurviveKillsTogether() async throws {
    let seed = TestSeeds.of("CONFORMANCE_SEED", otherwise: [1])[0]
    let (problems, acknowledged) = try await onDedicatedThread { try Self.killAndReopen(seed: seed) }
    #expect(problems.isEmpty, "CONFORMANCE_SEED=\(seed)\n\(problems.prefix(20).joined(separator: "\n"))")
    #expect(acknowledged > Self.kills, "the server acknowledged too few uploads")
  }

  /// Problems found by several threads.
  private final class Problems: Sendable {
    private let texts = Mutex<[String]>([])

    func add(_ text: String) { texts.withLock { $0.append(text) } }
    var all: [String] { texts.withLock { $0 } }
  }

  private static func killAndReopen(seed: UInt64) throws -> (problems: [String], acknowledged: Int) {
    let directory = try TemporaryDirectory()
    var random = SplitMix(seed: seed)
    let problems = Problems()
    var number = 0
    // The number that the server last acknowledged, and the number that was sent last.
    var held = [(acknowledged: Int, sent: Int)](repeating: (0, 0), count: names)
    var acknowledged = 0
    for round in 0...kills {
      let log = round % 4 < 2 ? "on" : "off"
      let server = try HearthProcess(
        arguments: ["--emulator", "--data", directory.path, "--project", "demo", "--commit-log", log])
      defer { server.process.stop() }
      let client = TestHTTPClient(port: server.port)
      for index in 0..<names {
        let document = try documentNumber(index, client) ?? 0
        let file = try fileNumber(index, client) ?? 0
        if document != file { problems.add("round \(round): document \(index) has \(document), the file has \(file)") }
        if document < held[index].acknowledged || document > held[index].sent {
          problems.add("round \(round): document \(index) has \(document); sent and acknowledged: \(held[index])")
        }
      }
      if round == kills { break }
      let readers = [startReader(true, server.port, problems), startReader(false, server.port, problems)]
      let before = acknowledged
      while true {
        let index = random.number(in: 0...(names - 1))
        number += 1
        held[index].sent = number
        guard let status = try? send(number, index, client) else { break }
        if status != 200 { problems.add("round \(round): an upload got status \(status)") }
        held[index].acknowledged = number
        acknowledged += 1
        // Even on a slow disk, the server acknowledges some uploads in each round.
        if acknowledged == before + 2 {
          OtherProcess.send(signal: SIGKILL, to: server.process, afterRandom: 30...400, &random)
        }
      }
      _ = server.process.waitForExit(timeoutSeconds: 30)
      for reader in readers { _ = reader() }
    }
    let check = try HearthBinary.run(["check", directory.path])
    if check.exit != .code(0) { problems.add(check.output) }
    return (problems.all, acknowledged)
  }

  private static func send(_ number: Int, _ index: Int, _ client: TestHTTPClient) throws -> Int {
    let write = """
      {"update": {"name": "projects/demo/databases/(default)/documents/scans/n\(index)", \
      "fields": {"number": {"integerValue": "\(number)"}}}}
      """
    let body = [
      "--cut", "Content-Type: application/json", "",
      #"{"name": "scans/n\#(index)", "commit": {"writes": [\#(write)]}}"#, "--cut", "Content-Type: text/plain", "",
      "\(number)", "--cut--", "",
    ].joined(separator: "\r\n")
    let headers = owner + [("Content-Type", "multipart/related; boundary=cut")]
    return try client.send(
      "POST", "/upload/storage/v1/b/demo.appspot.com/o?uploadType=multipart", headers: headers, body: Array(body.utf8)
    ).status
  }

  private static func documentNumber(_ index: Int, _ client: TestHTTPClient) throws -> Int? {
    let reply = try client.send("GET", "\(documents)/scans/n\(index)", headers: owner)
    guard reply.status == 200 else { return nil }
    let json = try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any]
    let fields = json?["fields"] as? [String: Any]
    return ((fields?["number"] as? [String: Any])?["integerValue"] as? String).flatMap { Int($0) }
  }

  private static func fileNumber(_ index: Int, _ client: TestHTTPClient) throws -> Int? {
    let reply = try client.send(
      "GET", "/storage/v1/b/demo.appspot.com/o/scans%2Fn\(index)?alt=media", headers: owner)
    return reply.status == 200 ? Int(reply.text) : nil
  }

  /// Reads one and then the other, repeatedly, until the connection ends. The second may be newer, but never older.
  private static func startReader(_ documentFirst: Bool, _ port: UInt16, _ problems: Problems) -> () -> [Void] {
    startThreads(1) { _ in
      let client = TestHTTPClient(port: port)
      var index = 0
      while true {
        index = (index + 1) % names
        let look = documentFirst ? [documentNumber, fileNumber] : [fileNumber, documentNumber]
        guard let first = try? look[0](index, client) ?? 0, let second = try? look[1](index, client) ?? 0 else {
          return
        }
        if second < first { problems.add("\(documentFirst ? "file" : "document") \(index): \(second) after \(first)") }
      }
    }
  }
}
