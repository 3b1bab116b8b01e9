import Foundation
import Glibc
import Testing
import TestSupport

/// Kills `hearth serve --data` at random times. Every acknowledged commit is complete afterwards, and no commit is
/// stored partially.
///
/// The kernel keeps data that a killed process has written. So this test finds commits that were acknowledged before
/// they were written, and files that a writer leaves incomplete, but it does not test a loss of power.
///
/// Servers with and without a commit log take turns.
///
/// `CONFORMANCE_SEED` determines when the server is killed, `CONFORMANCE_KILLS` how often (15 by default).
@Suite(.needs(.hearth))
struct KillTests {
  @Test(.timeLimit(.minutes(10))) func acknowledgedCommitsSurviveKills() async throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = TestSeeds.of("CONFORMANCE_SEED", otherwise: [1])[0]
    let kills = environment["CONFORMANCE_KILLS"].flatMap { Int($0) } ?? 15
    let (problems, acknowledged) = try await onDedicatedThread { try Self.killAndReopen(seed: seed, kills: kills) }
    #expect(problems.isEmpty, "CONFORMANCE_SEED=\(seed)\n\(problems.prefix(20).joined(separator: "\n"))")
    #expect(acknowledged > kills, "the server acknowledged too few commits")
    print("kills: \(kills) survived by \(acknowledged) acknowledged commits")
  }

  private static func killAndReopen(seed: UInt64, kills: Int) throws -> (problems: [String], acknowledged: Int) {
    let directory = try TemporaryDirectory()
    let database = TestDatabase(project: "kills")
    var random = SplitMix(seed: seed)
    var problems: [String] = []
    var acknowledged = 0
    var newest: Timestamp?
    var previous: (load: WriteLoad, logs: [WriteLoad.Log])?
    for round in 0...kills {
      // Each server finds what a server with or without a log left.
      let usesLog = round % 4 < 2
      let server = try HearthProcess(
        arguments: ["--emulator", "--data", directory.path, "--commit-log", usesLog ? "on" : "off"])
      defer { server.process.stop() }
      if let previous {
        problems += try previous.load.verify(previous.logs, port: server.port).map { "round \(round - 1): \($0)" }
      }
      if round == kills || problems.count > 100 { break }
      let load = WriteLoad(database: database, round: round)
      let wait = load.start(port: server.port)
      OtherProcess.send(signal: SIGKILL, to: server.process, afterRandom: 20...700, &random)
      let logs = wait()
      if server.process.waitForExit(timeoutSeconds: 30) != .signal(SIGKILL) {
        problems.append("round \(round): the server exited before it was killed:\n\(server.process.output)")
      }
      let times = logs.flatMap(\.acknowledged.values).compactMap { Timestamp(.string($0)) }
      if let newest, let oldest = times.min(), oldest <= newest {
        problems.append("round \(round): commit times decreased after a kill")
      }
      newest = [newest, times.max()].compactMap { $0 }.max()
      acknowledged += times.count
      let check = try HearthBinary.run(["check", directory.path])
      if check.exit != .code(0) {
        problems.append("round \(round): hearth check ended with \(String(describing: check.exit)):\n\(check.output)")
      }
      previous = (load, logs)
    }
    return (problems, acknowledged)
  }
}
