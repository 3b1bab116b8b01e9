import Foundation
import Glibc
import Testing
import TestSupport

/// A mixed load with faults: writers, readers, listeners and slow clients, while the server is killed and its disk fills
/// up. Every acknowledged write is there at the end, and every listener sees each version once and in order.
///
/// `SOAK_MINUTES` is the duration (0.5 by default, which is for `make test`), `SOAK_SEED` chooses the faults and the
/// loads. With `SOAK_MINUTES`, the test expects that nothing else runs, and checks the time of health checks too.
@Suite(.needs(.hearth))
struct SoakTests {
  private static let mebibytesMax = 512
  private static let growthMebibytesMax = 64
  private static let healthMillisecondsMax = 250.0
  private static let secondsBetweenFaults = 6.0...20.0

  @Test(.timeLimit(.minutes(1500))) func mixedLoadWithFaultsLosesNothing() async throws {
    let chosen = ProcessInfo.processInfo.environment["SOAK_MINUTES"].flatMap { Double($0) }
    let seed = TestSeeds.of("SOAK_SEED", otherwise: [1])[0]
    let (report, table) = try await onDedicatedThread { try Self.run(minutes: chosen ?? 0.5, seed: seed) }
    print("soak of \(chosen ?? 0.5) minutes, SOAK_SEED=\(seed)\n\(table)")
    let numbers = report.numbers.value
    #expect(numbers.problems.isEmpty, "SOAK_SEED=\(seed)\n\(numbers.problems.joined(separator: "\n"))")
    #expect(numbers.peakMebibytes < Self.mebibytesMax)
    #expect(numbers.endMebibytes < numbers.startMebibytes + Self.growthMebibytesMax)
    #expect(numbers.deliveredChanges > 0)
    let health = SoakReport.percentile(0.99, of: numbers.milliseconds[.health] ?? [])
    if chosen != nil { #expect(health < Self.healthMillisecondsMax) }
  }

  private static func run(minutes: Double, seed: UInt64) throws -> (SoakReport, String) {
    let server = try SoakServer(minutes: minutes)
    let report = SoakReport()
    let clients = SoakClients(server: server, report: report, seed: seed)
    report.numbers.update { $0.startMebibytes = server.processID.flatMap { ProcessUse(of: $0)?.mebibytes } ?? 0 }
    let isFollowing = Observed(false)
    let changes = startThreads(1) { _ in clients.followChanges(isFollowing) }
    guard isFollowing.wait(until: { $0 }) else { throw LoopbackError("the change feed does not begin") }
    let listeners = startThreads(2) { _ in clients.listen() }
    let readers = startThreads(5) { number in
      switch number {
      case 0: clients.readSlowly()
      case 1: clients.checkHealth()
      default: clients.read(number)
      }
    }
    let writers = startThreads(SoakClients.writers) { clients.write($0) }
    let fills = try causeFaults(server, report, minutes: minutes, seed: seed)
    server.end()
    let written = writers()
    _ = readers()
    let (followed, listened) = (changes()[0], listeners())
    server.resume()
    _ = OtherProcess.eventually(secondsMax: 10) {
      guard let process = server.processID, let left = ProcessUse(of: process)?.mebibytes else { return false }
      report.numbers.update { $0.endMebibytes = left }
      return left < report.numbers.value.startMebibytes + growthMebibytesMax / 2
    }
    for listened in listened { try clients.verify(written, followed: followed, listened: listened) }
    for problem in try server.stopAndCheck() { report.problem(problem) }
    return (report, report.table(kills: server.kills.value, fills: fills))
  }

  /// Kills the server and fills its disk from time to time. Samples its memory. Returns how often the disk was full.
  private static func causeFaults(
    _ server: SoakServer, _ report: SoakReport, minutes: Double, seed: UInt64
  ) throws -> Int {
    var random = SplitMix(seed: seed)
    let begun = ContinuousClock.now
    let end = begun + .seconds(minutes * 60)
    var next = begun + .seconds(Double.random(in: secondsBetweenFaults, using: &random) / 2)
    var (faults, fills) = (0, 0)
    let isTerminal = isatty(STDERR_FILENO) == 1
    while ContinuousClock.now < end, server.pause(seconds: 0.25) {
      if let process = server.processID { report.sample(process) }
      if isTerminal { showProgress((ContinuousClock.now - begun) / .seconds(1), of: minutes * 60, report) }
      guard ContinuousClock.now > next else { continue }
      faults += 1
      if server.hasOwnDisk, faults.isMultiple(of: 2) {
        server.fillDisk(seconds: Double.random(in: 0.5...2, using: &random))
        fills += 1
      } else {
        try server.killAndRestart()
      }
      next = ContinuousClock.now + .seconds(Double.random(in: secondsBetweenFaults, using: &random))
    }
    return fills
  }

  private static func showProgress(_ seconds: Double, of all: Double, _ report: SoakReport) {
    let numbers = report.numbers.value
    let line =
      "\r\(Int(seconds)) of \(Int(all)) s, \(numbers.memory.last ?? 0) MiB, \(numbers.deliveredChanges) changes, "
      + "\(numbers.problems.count) problems  "
    FileHandle.standardError.write(Data(line.utf8))
  }
}
