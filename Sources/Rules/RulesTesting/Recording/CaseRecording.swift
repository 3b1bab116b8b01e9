package import DocumentModel
import FixtureTree
package import RulesEngine
import Synchronization
import WireFormat

/// Collects decisions of a server as cases, for `hearth rules test`.
///
/// A case contains one request with its caller, the documents that the rules read, and the decision. Each case is
/// checked when it is added: its text is read back, evaluated without a server, and dropped if the decision differs.
/// Equal cases of one ruleset are kept once. The names and the order of cases depend only on their contents, so the
/// order in which parallel tests run does not change the file.
///
/// Times: if the rules read the time, a case gets ``standardTime``, so that a second recording is equal to the first.
/// If the case contains timestamps or ``standardTime`` changes the decision, it gets the time of the request.
///
/// Claims that every token has, such as `iat` and `aud`, are left out unless the rules contain their names.
///
/// Any number of threads may add cases. Cost: one evaluation and about ten allocations per decision, under a lock.
package final class CaseRecording: Sendable {
  private struct State {
    /// By the service and the text of the ruleset.
    var suites: [[UInt8]: RecordedSuite] = [:]
    var outcome = RecordingOutcome()
    /// The projects in which a test has made a request since the last setup.
    var testing: Set<String> = []
    var caseCount = 0
    var byteCount = 0
    let runner = TestCaseRunner()
  }

  /// The time of recorded cases that need none in particular.
  package static let standardTime = Timestamp(uncheckedMicroseconds: 1_735_689_600_000_000)

  private let state = Mutex(State())

  /// An empty recording.
  package init() {}

  /// Adds a decision. `test` has the request, the caller, the time, all documents that the rules may read, and the
  /// decision. Its name and its line are ignored. `database` is the database of the request.
  package func add(_ test: RuleTest, by ruleset: Ruleset, in database: DatabaseID) {
    state.withLock { state in
      Self.countTest(in: database.project, &state)
      state.outcome.decisionCount += 1
      let text = Array(ruleset.service.utf8) + ruleset.source.bytes
      if state.suites[text] == nil, state.suites.count >= RecordingLimits.rulesetsMax {
        return state.outcome.beyondLimits += 1
      }
      let writer = CaseWriter(database: database, rules: ruleset.source.bytes)
      let found: RecordedCase
      do throws(InexpressibleCase) {
        found = try Self.recorded(test, by: ruleset, writer, state.runner)
      } catch { return state.outcome.note(error.reason, example: CaseName.of(test, [])) }
      guard state.suites[text]?.cases[found.text] == nil else { return }
      let bytes = found.text.count
      guard state.caseCount < RecordingLimits.casesMax, state.byteCount + bytes <= RecordingLimits.bytesMax else {
        return state.outcome.beyondLimits += 1
      }
      state.caseCount += 1
      state.byteCount += bytes
      state.suites[text, default: RecordedSuite(ruleset: ruleset)].cases[found.text] = found
    }
  }

  /// Notes a decision that has no notation as a case.
  package func addInexpressible(_ reason: String, _ example: String, in project: String) {
    state.withLock { state in
      Self.countTest(in: project, &state)
      state.outcome.decisionCount += 1
      state.outcome.note(reason, example: example)
    }
  }

  /// Notes that a test suite sets up the next test in a project, or with `nil` in all projects.
  package func noteSetup(of project: String?) {
    state.withLock { state in
      if let project { state.testing.remove(project) } else { state.testing.removeAll() }
    }
  }

  /// Returns the suites, one per ruleset, in the order of the rulesets' texts, and the counts.
  package func finish() -> (suites: [RecordedSuite], outcome: RecordingOutcome) {
    state.withLock { state in
      var outcome = state.outcome
      var suites = state.suites.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
      for index in suites.indices { suites[index].verify(&outcome) }
      return (suites.filter { !$0.cases.isEmpty }, outcome)
    }
  }

  private static func countTest(in project: String, _ state: inout State) {
    if state.testing.insert(project).inserted { state.outcome.testCount += 1 }
  }

  // MARK: One case

  /// A way to write a case.
  private struct Variant {
    var hasReducedClaims: Bool
    var hasOwnTime: Bool
  }

  /// Returns the first variant of a case that reproduces the decision.
  private static func recorded(
    _ test: RuleTest, by ruleset: Ruleset, _ writer: CaseWriter, _ runner: TestCaseRunner
  ) throws(InexpressibleCase) -> RecordedCase {
    let variants = [
      Variant(hasReducedClaims: true, hasOwnTime: false), Variant(hasReducedClaims: true, hasOwnTime: true),
      Variant(hasReducedClaims: false, hasOwnTime: true),
    ]
    for variant in variants {
      let members = try self.members(test, variant, writer)
      let again = try readBack(members + [try writer.documents(test.documents)], test, by: ruleset)
      let verdict = runner.run(again, by: ruleset, over: TestDocuments())
      guard verdict.isAllowed == test.expectsAllow else { continue }
      let usesTime = again.writesTime || verdict.parts.contains { $0.decision.usesTime }
      if usesTime, !variant.hasOwnTime, again.containsTimestamps { continue }
      let read = Set(again.targets + verdict.lookups)
      return RecordedCase(
        name: CaseName.of(again, writer.ownClaims(test.auth)), members: members,
        documents: again.documents.filter { read.contains($0.key) }, usesTime: usesTime, again)
    }
    throw InexpressibleCase("the decision differs without the server")
  }

  private static func members(
    _ test: RuleTest, _ variant: Variant, _ writer: CaseWriter
  ) throws(InexpressibleCase) -> [CaseWriter.Member] {
    var members: [CaseWriter.Member] = []
    if let caller = try writer.caller(test.auth, isReduced: variant.hasReducedClaims) { members.append(caller) }
    members += try writer.request(test)
    if variant.hasOwnTime {
      var time: [UInt8] = []
      test.time.appendRFC3339(to: &time)
      members.append(("time", CaseWriter.quoted(String(decoding: time, as: UTF8.self))))
    }
    members.append(("expect", test.expectsAllow ? "\"allow\"" : "\"deny\""))
    return members
  }

  /// Returns a case as `hearth rules test` reads it.
  private static func readBack(
    _ members: [CaseWriter.Member], _ test: RuleTest, by ruleset: Ruleset
  ) throws(InexpressibleCase) -> RuleTest {
    let text = CaseWriter.object([("it", "\"\"")] + members)
    do throws(FixtureTreeError) {
      let file = try TestFileText(file: "the recorded case", Array(text.utf8))
      let files = ruleset.service == RuleTestSuite.filesService ? RuleTestFiles() : nil
      return try CaseReader(text: file, time: standardTime, files: files).test(file.root, number: 1)
    } catch { throw InexpressibleCase("the request has no notation: \(error.message)") }
  }
}

/// The counts of a recording.
package struct RecordingOutcome: Sendable {
  /// The decisions about requests.
  package var decisionCount = 0
  /// An estimate of the number of tests. A test ends when the suite clears a database, loads rules or writes as an
  /// administrator.
  package var testCount = 0
  /// The decisions that were not recorded because a limit was reached; see ``RecordingLimits``.
  package var beyondLimits = 0
  /// The reasons for which decisions were left out, with their count and the name of one of them, in no order.
  package private(set) var leftOut: [String: (count: Int, example: String)] = [:]

  mutating func note(_ reason: String, example: String) {
    // Reasons contain messages, so their number has no limit of its own.
    let reason = leftOut.count < 50 || leftOut[reason] != nil ? reason : "other reasons"
    leftOut[reason] = ((leftOut[reason]?.count ?? 0) + 1, leftOut[reason]?.example ?? example)
  }
}

extension RuleTest {
  /// The documents that the request itself is for.
  fileprivate var targets: [ResourcePath] {
    switch operation {
    case .get(let key): [key.path]
    case .commit(let writes): writes.map(\.key.path)
    case .pipeline(let pipeline):
      pipeline.reads.compactMap { if case .get(let key) = $0 { key.path } else { nil } }
    case .list, .hosted, .file: []
    }
  }

  /// Whether a write stores the time of the request.
  fileprivate var writesTime: Bool {
    guard case .commit(let writes) = operation else { return false }
    return writes.contains { write in write.transforms.contains { $0.kind == .requestTime } }
  }

  /// Whether the documents or the request contain a timestamp.
  fileprivate var containsTimestamps: Bool {
    let stored = documents.values.contains { fields in
      guard let fields, let map = try? fields.decoded() else { return false }
      return Value.map(map).containsTimestamp
    }
    if stored { return true }
    switch operation {
    case .get, .hosted: return false
    case .list(let query): return query.filter?.containsTimestamp ?? false
    case .pipeline(let pipeline):
      return pipeline.reads.contains { read in
        if case .list(let query) = read { query.filter?.containsTimestamp ?? false } else { false }
      }
    case .commit(let writes): return writes.contains { Value.map($0.data).containsTimestamp }
    case .file(let request):
      // Every file has times, which are those of the case unless the case sets them.
      return [request.before, request.after].contains { file in
        ["timeCreated", "updated"].contains { name in
          guard let value = file?[name] else { return false }
          return value != .timestamp(time)
        }
      }
    }
  }
}

extension Value {
  fileprivate var containsTimestamp: Bool {
    switch self {
    case .timestamp: true
    case .array(let elements): elements.contains { $0.containsTimestamp }
    case .map(let map): map.entries.contains { $0.value.containsTimestamp }
    default: false
    }
  }
}

extension QueryFilter {
  fileprivate var containsTimestamp: Bool {
    switch self {
    case .field(_, _, let value): value.containsTimestamp
    case .unary: false
    case .and(let filters), .or(let filters): filters.contains { $0.containsTimestamp }
    }
  }
}
