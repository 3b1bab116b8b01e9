import Foundation
import Testing
import TestSupport

/// Clients that want to use up the server's memory or time. Its memory stays small, it answers health checks meanwhile,
/// and gives the memory back afterwards.
///
/// With `HEARTH_LOAD_ALONE=1`, nothing else may run on the machine, and the time of health checks must be that of
/// docs/security.md.
@Suite(.serialized, .needs(.hearth), .needs(.openFiles(4096)))
struct HostileLoadTests {
  private static let documentBytes = 900_000
  private static let documents = 20
  private static let probeSeconds = 3.0
  /// Private memory of the process. Without limits, most loads take more than a gigabyte.
  private static let mebibytesMax = 512
  private static let growthMebibytesMax = 64
  private static let aloneMillisecondsMax = 250.0

  @Test(.timeLimit(.minutes(5)), .needs(.tool(.openssl)), .needs(.tool(.curl)), arguments: HostileLoad.allCases)
  func hostileClientsTakeLimitedMemory(load: HostileLoad) async throws {
    let seen = try await onDedicatedThread { try Self.run(load) }
    let high = SoakReport.percentile(0.99, of: seen.milliseconds)
    let slowest = seen.milliseconds.max() ?? 0
    print(
      "hostile load \(load): \(seen.calm) MiB before, \(seen.peak) at most, \(seen.left) after; "
        + "health checks: \(seen.milliseconds.count), p99 \(Int(high)) ms, slowest \(Int(slowest)) ms")
    #expect(seen.peak < Self.mebibytesMax, "the process took \(seen.peak) MiB")
    #expect(
      seen.left < seen.calm + Self.growthMebibytesMax,
      "the process keeps \(seen.left) MiB, and had \(seen.calm) MiB")
    #expect(slowest < 5000, "a health check took \(slowest) ms")
    if ProcessInfo.processInfo.environment["HEARTH_LOAD_ALONE"] == "1" { #expect(high < Self.aloneMillisecondsMax) }
    #expect(seen.reads, "another client was not served")
  }

  private struct Seen {
    var calm = 0
    var peak = 0
    var left = 0
    var milliseconds: [Double] = []
    var reads = false
  }

  private static func run(_ load: HostileLoad) throws -> Seen {
    let authority = try load.usesTLS ? TestAuthority().issue(for: "DNS:localhost,IP:127.0.0.1") : nil
    let tls = authority.map { ["--tls-cert", $0.file, "--tls-key", $0.keyFile] } ?? []
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory"] + tls, usesTLS: load.usesTLS)
    defer { server.process.stop() }
    let session = RESTSession(port: server.port, database: TestDatabase(project: "p"), timeoutSeconds: 60)
    let text = String(repeating: "x", count: documentBytes)
    if !load.usesTLS {
      for index in 0..<documents { _ = try session.set("c/\(index)", ["text": ["stringValue": .string(text)]]) }
    }
    var seen = Seen(calm: mebibytes(server))
    let clients = try load.begin(server.port)
    // Health checks on new connections, for some seconds.
    _ = try OtherProcess.eventually(secondsMax: probeSeconds) {
      let start = ContinuousClock.now
      seen.reads = try isHealthy(server.port, usesTLS: load.usesTLS)
      seen.milliseconds.append((ContinuousClock.now - start) / .milliseconds(1))
      seen.peak = max(seen.peak, mebibytes(server))
      return false
    }
    if !load.usesTLS { seen.reads = try seen.reads && session.get("c/1").status == 200 }
    clients.end()
    _ = OtherProcess.eventually(secondsMax: 15) {
      seen.left = mebibytes(server)
      return seen.left < seen.calm + growthMebibytesMax
    }
    return seen
  }

  private static func isHealthy(_ port: UInt16, usesTLS: Bool) throws -> Bool {
    if usesTLS {
      return try Tool.curl.run(["-s", "-k", "-m", "30", "https://127.0.0.1:\(port)/healthz"]).status == 0
    }
    let probe = try LoopbackSocket(port: port, readSeconds: 60)
    probe.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    guard case .bytes(let bytes) = probe.receive() else { return false }
    return bytes.starts(with: "HTTP/1.1 200".utf8)
  }

  private static func mebibytes(_ server: HearthProcess) -> Int {
    ProcessUse(of: server.process.processID)?.mebibytes ?? 0
  }
}
