import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Rules that read a document while other clients write it: rules are evaluated on the state that the commit applies
/// to.
@Suite struct RulesRaceTests {
  private struct Outcomes {
    /// The commit version of each write to the gate, and whether it opened the gate.
    var gates: [(version: Int64, isOpen: Bool)] = []
    /// The commit versions of the writes to the guarded documents.
    var written: [Int64] = []
    var denied = 0
    var other: [Status] = []

    var count: Int { gates.count + written.count + denied + other.count }
  }

  @Test func noCommitPassesAClosedGate() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    let outcomes = Observed(Outcomes())
    var submitted = 0
    func setGate(_ isOpen: Bool) throws {
      submitted += 1
      let write = Write.set("gates/g", ("open", .boolean(isOpen)))
      try fixture.service.commit([write], in: fixture.id, as: ServiceFixture.admin) { result in
        outcomes.update { outcomes in
          switch result {
          case .success(let done): outcomes.gates.append((done.version.microseconds, isOpen))
          case .failure(let status): outcomes.other.append(status)
          }
        }
      }
    }
    try setGate(true)
    #expect(outcomes.wait { $0.count == 1 })
    // Does not wait for earlier commits, so that rules of many commits are evaluated before earlier ones are applied.
    for number in 0..<600 {
      if number % 7 == 0 { try setGate(number % 2 == 0) }
      submitted += 1
      try fixture.service.commit([.set("closed/d\(number)")], in: fixture.id, as: ServiceFixture.stranger) { result in
        outcomes.update { outcomes in
          switch result {
          case .success(let done): outcomes.written.append(done.version.microseconds)
          case .failure(let status) where status.code == .permissionDenied: outcomes.denied += 1
          case .failure(let status): outcomes.other.append(status)
          }
        }
      }
    }
    let all = submitted
    #expect(outcomes.wait { $0.count == all })
    let found = outcomes.value
    #expect(found.other.isEmpty, "\(found.other)")
    #expect(found.written.count + found.denied == 600)
    #expect(!found.written.isEmpty && found.denied > 0)
    for version in found.written {
      let last = found.gates.filter { $0.version < version }.max { $0.version < $1.version }
      #expect(last?.isOpen == true, "written at \(version) while the gate was closed at \(last?.version ?? 0)")
    }
  }
}
