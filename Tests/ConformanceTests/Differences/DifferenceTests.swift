import Foundation
import Testing
import TestSupport

/// The servers respond as the known differences state, and the page matches the entries.
@Suite struct DifferenceTests {
  private static let server = Task { try await onDedicatedThread { try HearthProcess.inMemory() } }

  static let probed = Difference.all.filter { $0.probe != nil }

  @Test(.needs(.hearth), arguments: probed)
  func hearthRespondsAsTheEntriesState(entry: Difference) async throws {
    let port = try await Self.server.value.port
    try await Self.expect(entry, port: port, of: "Hearth") { $0.hearth }
  }

  @Test(
    .needs(.hearth.orVariable("CONFORMANCE_SUBJECT_URL")), .needs(.emulator.orVariable("CONFORMANCE_ORACLE_URL")))
  func emulatorRespondsAsTheEntriesState() async throws {
    let port = try await Servers.shared.value.oraclePort
    for entry in Self.probed { try await Self.expect(entry, port: port, of: "the emulator") { $0.emulator } }
  }

  private static func expect(
    _ entry: Difference, port: UInt16, of server: String,
    _ shown: @escaping @Sendable (Difference.Probe) -> Difference.Shown
  ) async throws {
    let mismatch = try await onDedicatedThread { () -> String? in
      guard let probe = entry.probe else { return nil }
      var run = DifferenceProbe(port: port, project: "difference-\(UUID().uuidString.lowercased())")
      return try run.mismatch(probe.requests, to: shown(probe))
    }
    if let mismatch { Issue.record("\(entry.topic): out of date: the response of \(server) \(mismatch)") }
  }

  @Test func entriesAreComplete() throws {
    try #require(Difference.all.count > 40, "fixtures/known-differences.json cannot be read")
    for entry in Difference.all {
      #expect((entry.probe == nil) != (entry.noProbe == nil), "\(entry.topic): needs either a probe or a reason")
      let texts = [entry.topic, entry.firestore, entry.emulator, entry.hearth]
      #expect(!texts.contains(""), "\(entry.topic)")
    }
    let described = Set(Difference.all.flatMap(\.rows))
    for row in KnownDifference.allCases {
      #expect(described.contains(row.rawValue), "no entry of fixtures/known-differences.json is for \(row)")
    }
  }

  /// With `KNOWN_DIFFERENCES=write`, writes the page with the results in the file that `CONFORMANCE_FACTS` names, or
  /// with those that the page has.
  @Test func pageMatchesItsEntries() throws {
    let environment = ProcessInfo.processInfo.environment
    let stored = DifferencePage.stored
    var page = DifferencePage(facts: DifferencePage.facts(of: stored))
    guard environment["KNOWN_DIFFERENCES"] == "write" else {
      let same = stored == page.text
      #expect(same, "docs/reference/known-differences.md is out of date; run `make known-differences`")
      return
    }
    if let file = environment["CONFORMANCE_FACTS"] { page.facts = try String(contentsOfFile: file, encoding: .utf8) }
    try page.text.write(to: DifferencePage.file, atomically: true, encoding: .utf8)
  }
}
