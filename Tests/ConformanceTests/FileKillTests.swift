import Foundation
import Glibc
import Testing
import TestSupport

/// Kills `hearth serve --data` while it receives files. Every acknowledged file is complete afterwards, and no stray
/// file remains.
///
/// `CONFORMANCE_SEED` determines when the server is killed.
@Suite(.needs(.hearth))
struct FileKillTests {
  private static let kills = 6
  private static let owner = [("Authorization", "Bearer owner")]

  @Test(.timeLimit(.minutes(10))) func acknowledgedFilesSurviveKills() async throws {
    let seed = TestSeeds.of("CONFORMANCE_SEED", otherwise: [1])[0]
    let (problems, acknowledged) = try await onDedicatedThread { try Self.killAndReopen(seed: seed) }
    #expect(problems.isEmpty, "CONFORMANCE_SEED=\(seed)\n\(problems.prefix(20).joined(separator: "\n"))")
    #expect(acknowledged > Self.kills, "the server acknowledged too few uploads")
  }

  private static func killAndReopen(seed: UInt64) throws -> (problems: [String], acknowledged: Int) {
    let directory = try TemporaryDirectory()
    var random = SplitMix(seed: seed)
    var problems: [String] = []
    // The content of each name. `maybe` is content that was sent, and perhaps acknowledged, when the server died.
    var held: [String: (last: UInt8?, maybe: UInt8?)] = [:]
    var acknowledged = 0
    for round in 0...kills {
      let server = try HearthProcess(arguments: ["--emulator", "--data", directory.path])
      defer { server.process.stop() }
      let client = TestHTTPClient(port: server.port)
      for (name, state) in held {
        let reply = try client.send("GET", "/v0/b/b/o/\(name)?alt=media", headers: owner)
        let found = reply.status == 200 ? reply.body.first : nil
        let isWhole = reply.status == 404 || reply.body.count == size && Set(reply.body).count == 1
        if !isWhole { problems.append("round \(round): \(name) is incomplete: \(reply.status) \(reply.body.count)") }
        if found != state.last, state.maybe == nil || found != state.maybe {
          problems.append("round \(round): \(name) holds \(found.map(String.init) ?? "nothing")")
        }
        held[name] = (found, nil)
      }
      // The server removes stray files concurrently with requests, so wait for that.
      let distinct = Set(held.values.compactMap(\.last)).count
      if !OtherProcess.eventually({ contentFiles(directory.path) == distinct }) {
        problems.append("round \(round): \(contentFiles(directory.path)) files for \(distinct) contents")
      }
      if round == kills { break }
      let before = acknowledged
      while true {
        let name = "n\(random.number(in: 0...9))"
        let byte = UInt8(random.number(in: 1...250))
        held[name] = (held[name]?.last, byte)
        let body = [UInt8](repeating: byte, count: size)
        guard let reply = try? client.send("POST", "/v0/b/b/o?name=\(name)", headers: owner, body: body),
          reply.status == 200
        else { break }
        held[name] = (byte, nil)
        acknowledged += 1
        // Even on a slow disk, the server acknowledges some uploads in each round.
        if acknowledged == before + 2 {
          OtherProcess.send(signal: SIGKILL, to: server.process, afterRandom: 30...400, &random)
        }
      }
      _ = server.process.waitForExit(timeoutSeconds: 30)
    }
    return (problems, acknowledged)
  }

  /// Larger than one write to the disk.
  private static let size = 700_000

  private static func contentFiles(_ directory: String) -> Int {
    let folder = "\(directory)/files/content"
    let folders = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let incoming = (try? FileManager.default.contentsOfDirectory(atPath: "\(directory)/files/incoming")) ?? []
    return incoming.count
      + folders.reduce(0) {
        $0 + ((try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/\($1)"))?.count ?? 0)
      }
  }
}
