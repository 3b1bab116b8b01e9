import Foundation
import Testing
import TestSupport

/// Hearth and the official emulator give the same responses to the same requests.
///
/// Environment variables for longer runs by hand:
/// - `CONFORMANCE_SEED`: the first seed, or `random`. Each sequence takes the next seed. A failure prints the seed of
///   its sequence.
/// - `CONFORMANCE_SECONDS`: how long random sequences run, instead of the first 60.
/// - `CONFORMANCE_SUBJECT_URL`, `CONFORMANCE_ORACLE_URL`: running servers to use instead of Hearth and the emulator.
/// - `CONFORMANCE_SUBJECT=emulator`: uses a second emulator instead of Hearth, to test the tests.
@Suite(
  .needs(.hearth.orVariable("CONFORMANCE_SUBJECT_URL").orVariable("CONFORMANCE_SUBJECT")),
  .needs(.emulator.orVariable("CONFORMANCE_ORACLE_URL")))
struct DifferentialTests {
  @Test func randomSequencesGetTheSameResponses() async throws {
    let environment = ProcessInfo.processInfo.environment
    let firstSeed = TestSeeds.of("CONFORMANCE_SEED", otherwise: [1])[0]
    let seconds = environment["CONFORMANCE_SECONDS"].flatMap { Double($0) }
    let servers = try await Servers.shared.value
    let (failures, summary) = try await onDedicatedThread { () -> ([String], String) in
      let database = TestDatabase(project: "conformance-random")
      let comparison = servers.comparison(database: database)
      let deadline = seconds.map { Date(timeIntervalSinceNow: $0) }
      var failures: [String] = []
      var seed = firstSeed
      while deadline.map({ Date() < $0 }) ?? (seed < firstSeed + 60), failures.count < 3 {
        let sequence = SequenceGenerator.sequence(database: database, seed: seed, length: 40)
        if let found = comparison.run(sequence) {
          let small = comparison.shrink(sequence, from: found, seconds: 15)
          failures.append("CONFORMANCE_SEED=\(seed)\n\(small.transcript)")
        }
        seed += 1
      }
      let met = comparison.differencesMet.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ")
      let statuses = comparison.statusesMet.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(
        separator: ", ")
      return (
        failures,
        "\(seed - firstSeed) sequences, \(comparison.stepsCompared) requests (\(statuses)); known differences: \(met)"
      )
    }
    print("differential: \(summary)")
    for failure in failures { Issue.record("the servers disagree\n\(failure)") }
  }

  @Test func edgeCasesGetTheSameResponses() async throws {
    let servers = try await Servers.shared.value
    let failures = try await onDedicatedThread { () -> [String] in
      let database = TestDatabase(project: "conformance-probes")
      let comparison = servers.comparison(database: database)
      let probes = Probes(database: database)
      return probes.all.compactMap { probe in comparison.run([probes.setUp, [probe]])?.last }
    }
    for failure in failures { Issue.record("the servers disagree\n\(failure)") }
  }
}

/// The two servers of a run, started once and stopped when the test process exits.
struct Servers: Sendable {
  static let subjectURL = ProcessInfo.processInfo.environment["CONFORMANCE_SUBJECT_URL"]
  static let subjectIsEmulator = ProcessInfo.processInfo.environment["CONFORMANCE_SUBJECT"] == "emulator"
  static let oracleURL = ProcessInfo.processInfo.environment["CONFORMANCE_ORACLE_URL"]

  static let shared = Task { try await onDedicatedThread { try Servers() } }

  private let processes: [ServerProcess]
  let oraclePort: UInt16
  private let subjectPort: UInt16

  private init() throws {
    var processes: [ServerProcess] = []
    if let url = Self.oracleURL {
      oraclePort = try Self.port(of: url)
    } else {
      let emulator = try EmulatorProcess()
      processes.append(emulator.process)
      oraclePort = emulator.port
    }
    if let url = Self.subjectURL {
      subjectPort = try Self.port(of: url)
    } else if Self.subjectIsEmulator {
      let emulator = try EmulatorProcess()
      processes.append(emulator.process)
      subjectPort = emulator.port
    } else {
      let hearth = try HearthProcess.inMemory()
      processes.append(hearth.process)
      subjectPort = hearth.port
    }
    self.processes = processes
  }

  private static func port(of url: String) throws -> UInt16 {
    guard let components = URLComponents(string: url), components.host == "127.0.0.1",
      let port = components.port.flatMap({ UInt16(exactly: $0) })
    else { throw ServerProcessError(description: "not a URL like http://127.0.0.1:8080: \(url)") }
    return port
  }

  /// Sessions on both servers, for the calling thread.
  func sessions(database: TestDatabase) -> (oracle: RESTSession, subject: RESTSession) {
    (RESTSession(port: oraclePort, database: database), RESTSession(port: subjectPort, database: database))
  }

  func comparison(database: TestDatabase) -> Comparison {
    let emulator = Replica.Quirks(ordersOnlyOnePage: true)
    return Comparison(
      database: database, oracle: Replica(port: oraclePort, quirks: emulator),
      subject: Replica(port: subjectPort, quirks: Self.subjectIsEmulator ? emulator : Replica.Quirks()))
  }
}
