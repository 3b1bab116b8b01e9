import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import HearthServer
import Synchronization
import Testing
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
  }

  @Test func noCommitPassesAClosedGate() throws {
    let (server, directory) = try RulesTests.server()
    defer { withExtendedLifetime(directory) {} }
    let service = server.server.service
    let id = try #require(DatabaseID(project: "p"))
    let outcomes = Mutex(Outcomes())
    let group = DispatchGroup()
    let gate = try #require(DocumentKey(try ResourcePath("gates/g")))
    func setGate(_ isOpen: Bool) throws {
      group.enter()
      let fields = EncodedFields(MapValue([("open", .boolean(isOpen))]))
      try service.commit([Write(.update(fields, mask: nil), key: gate)], in: id, as: .admin) { result in
        outcomes.withLock { outcomes in
          if case .success(let done) = result { outcomes.gates.append((done.version.microseconds, isOpen)) }
        }
        group.leave()
      }
    }
    try setGate(true)
    group.wait()
    // Does not wait for earlier commits, so that rules of many commits are evaluated before earlier ones are applied.
    for number in 0..<600 {
      if number % 7 == 0 { try setGate(number % 2 == 0) }
      group.enter()
      let key = try #require(DocumentKey(try ResourcePath("closed/d\(number)")))
      try service.commit([Write(.update(.none, mask: nil), key: key)], in: id, as: .user(nil)) { result in
        outcomes.withLock { outcomes in
          switch result {
          case .success(let done): outcomes.written.append(done.version.microseconds)
          case .failure(let status) where status.code == .permissionDenied: outcomes.denied += 1
          case .failure(let status): outcomes.other.append(status)
          }
        }
        group.leave()
      }
    }
    group.wait()
    let (gates, written, denied, other) = outcomes.withLock { ($0.gates, $0.written, $0.denied, $0.other) }
    #expect(other.isEmpty, "\(other)")
    #expect(written.count + denied == 600)
    #expect(!written.isEmpty && denied > 0)
    for version in written {
      let last = gates.filter { $0.version < version }.max { $0.version < $1.version }
      #expect(last?.isOpen == true, "written at \(version) while the gate was closed at \(last?.version ?? 0)")
    }
  }
}
