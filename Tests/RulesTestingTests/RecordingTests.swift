import DocumentModel
import Foundation
import RulesEngine
import RulesTesting
import Testing
import WireFormat

/// Decisions that are recorded as cases.
@Suite struct RecordingTests {
  private static let database = DatabaseID(project: "shop")!

  /// Adds the cases of a suite to a recording as a server observes them, each with all documents that its rules read.
  private static func record(
    _ suite: RuleTestSuite, _ ruleset: Ruleset, in recording: CaseRecording, reversed: Bool = false
  ) {
    let runner = TestCaseRunner()
    for test in reversed ? suite.tests.reversed() : suite.tests {
      if case .file(let request) = test.operation, request.methods.count > 1 { continue }
      let verdict = runner.run(test, by: ruleset, over: suite.documents)
      var documents = test.documents
      var paths = verdict.lookups
      switch test.operation {
      case .get(let key): paths.append(key.path)
      case .commit(let writes): paths += writes.map(\.key.path)
      case .pipeline(let pipeline):
        paths += pipeline.reads.compactMap { if case .get(let key) = $0 { key.path } else { nil } }
      case .list, .hosted, .file: break
      }
      for path in paths where documents[path] == nil {
        documents.updateValue(suite.documents[path], forKey: path)
      }
      recording.add(
        RuleTest(test.operation, as: test.auth, at: test.time, over: documents, expectsAllow: verdict.isAllowed),
        by: ruleset, in: database)
    }
  }

  private static func text(_ recording: CaseRecording) throws -> String {
    let suites = recording.finish().suites
    #expect(suites.count == 1)
    return String(decoding: try #require(suites.first).text(rules: "toy.rules"), as: UTF8.self)
  }

  /// Records toy cases, and returns the lines of the cases.
  private static func lines(_ cases: String, more: String = "") throws -> [String] {
    let suite = try Toy.suite(cases, more: more)
    let recording = CaseRecording()
    record(suite, try Ruleset(compiling: suite.rules), in: recording)
    #expect(recording.finish().outcome.leftOut.isEmpty)
    let lines = try text(recording).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    let start = try #require(lines.firstIndex(of: #""cases": ["#))
    return Array(lines[(start + 1)...].dropLast(2))
  }

  private static func survivors(_ suite: RuleTestSuite, _ ruleset: Ruleset) -> (run: SuiteRun, changes: [String]) {
    var suite = suite
    for index in suite.tests.indices { suite.tests[index].expectedLine = nil }
    var coverage: Coverage?
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    let mutations = MutationTest(ruleset, file: suite.file, [run])
    return (run, mutations.survivors.map { "\($0.line): \($0.change)" })
  }

  @Test(arguments: RepositorySuitesTests.files)
  func recordedSuitesDecideAndDetectLikeTheirOriginals(file: String) throws {
    let path = "\(RepositorySuitesTests.folder)/\(file)"
    var suite = try SuiteReader(now: Toy.time).read(file: path)
    suite.tests.removeAll { test in
      if case .file(let request) = test.operation { request.methods.count > 1 } else { false }
    }
    let ruleset = try Ruleset(compiling: suite.rules, service: suite.service)
    let recording = CaseRecording()
    Self.record(suite, ruleset, in: recording)
    let (suites, outcome) = recording.finish()
    #expect(outcome.leftOut.isEmpty && outcome.beyondLimits == 0, "\(outcome)")
    #expect(outcome.decisionCount == suite.tests.count)
    let recorded = try #require(suites.first)
    let again = try SuiteReader(now: Toy.time).read(recorded.text(rules: suite.rules), file: "recorded.tests.json")
    let (run, changes) = Self.survivors(again, ruleset)
    #expect(run.failures.isEmpty && run.passedCount == recorded.count)
    #expect(recorded.count <= suite.tests.count && recorded.count > suite.tests.count * 3 / 4)
    #expect(changes == Self.survivors(suite, ruleset).changes)
    // The order in which tests run makes no difference.
    let other = CaseRecording()
    Self.record(suite, ruleset, in: other, reversed: true)
    #expect(other.finish().suites.first?.text(rules: suite.rules) == recorded.text(rules: suite.rules))
  }

  static let requests: [(case: String, recorded: String)] = [
    (
      #""as": "ann", "get": "rooms/r1""#,
      #"{"it": "get rooms/r1 as ann", "as": "ann","#
    ),
    (
      #""get": "rooms/r9""#, #"{"it": "get rooms/r9 unauthenticated", "get": "rooms/r9", "expect": "deny"}"#
    ),
    (
      #""as": "ann", "list": "rooms", "query": {"where": [["owner", "==", "ann"]], "orderBy": ["size desc"], "limit": 3}"#,
      #"{"it": "list rooms as ann: owner ==, limit 3", "as": "ann", "list": "rooms","#
    ),
    (
      #""as": {"uid": "ann", "token": {"admin": true}}, "create": "rooms/r2", "data": {"owner": "ann", "size": 1}"#,
      #"{"it": "create rooms/r2 as ann (admin): owner, size", "as": {"uid": "ann", "token": {"admin": true}},"#
    ),
    (
      #""as": "ann", "set": "rooms/r1", "data": {"size": 2}, "merge": true"#,
      #"{"it": "set rooms/r1 as ann: size", "as": "ann","#
    ),
    (
      #""as": "ann", "update": "rooms/r1", "data": {"at.x": 5, "size": 2}"#,
      #"{"it": "update rooms/r1 as ann: at.x, size", "as": "ann","#
    ),
  ]
  private static let room = #"{"at": {"x": 1, "y": 2}, "owner": "ann", "size": 1}"#

  @Test(arguments: requests)
  func casesHaveTheirRequestAndTheDocumentsThatRulesRead(text: String, recorded: String) throws {
    let lines = try Self.lines(#"{"it": "x", \#(text), "expect": "allow"}"#)
    #expect(lines.first == recorded, "\(lines)")
  }

  @Test func linesOfOneCaseAreWrapped() throws {
    let lines = try Self.lines(
      #"{"it": "x", "as": "ann", "update": "rooms/r1", "data": {"at.x": 5, "size": 2}, "expect": "allow"}"#)
    #expect(
      lines == [
        #"{"it": "update rooms/r1 as ann: at.x, size", "as": "ann","#,
        #""documents": {"rooms/r1": \#(Self.room)}, "update": "rooms/r1","#,
        #""data": {"at.x": 5, "size": 2}, "expect": "allow"}"#,
      ], "\(lines)")
  }

  @Test func equalCasesAreRecordedOnceAndEqualNamesAreNumbered() throws {
    let once = #"{"it": "x", "as": "ann", "create": "rooms/r2", "data": {"size": 1}, "expect": "deny"}"#
    let lines = try Self.lines([once, once, once.replacing("1", with: "3")].joined(separator: ","))
    #expect(
      lines == [
        #"{"it": "create rooms/r2 as ann: size", "as": "ann", "create": "rooms/r2", "data": {"size": 1}, "expect": "deny"},"#,
        #"{"it": "create rooms/r2 as ann: size (2)", "as": "ann", "create": "rooms/r2", "data": {"size": 3},"#,
        #""expect": "deny"}"#,
      ], "\(lines)")
  }

  @Test func statesOfADocumentInSeveralCasesDoNotMix() throws {
    let cases = [
      #""as": "ann", "get": "rooms/r1", "expect": "allow""#, #""as": "eve", "get": "rooms/r1", "expect": "deny""#,
      #""as": "eve", "get": "rooms/r1", "documents": {"rooms/r1": {"owner": "eve"}}, "expect": "allow""#,
      #""as": "ann", "get": "rooms/r1", "documents": {"rooms/r1": null}, "expect": "deny""#,
      #""as": "ann", "get": "logs/r1", "documents": {"rooms/r1": null}, "expect": "deny""#,
    ]
    let suite = try Toy.suite(cases.map { #"{"it": "x", \#($0)}"# }.joined(separator: ","))
    let recording = CaseRecording()
    Self.record(suite, try Ruleset(compiling: suite.rules), in: recording)
    let text = try Self.text(recording)
    #expect(
      text.contains(
        """
              "r1": \(Self.room)
            }
          },
          "cases": [
            {"it": "get logs/r1 as ann", "as": "ann", "documents": {"rooms/r1": null}, "get": "logs/r1", "expect": "deny"},
            {"it": "get rooms/r1 as ann", "as": "ann", "get": "rooms/r1", "expect": "allow"},
            {"it": "get rooms/r1 as ann (2)", "as": "ann", "documents": {"rooms/r1": null}, "get": "rooms/r1",
             "expect": "deny"},
            {"it": "get rooms/r1 as eve", "as": "eve", "documents": {"rooms/r1": {"owner": "eve"}}, "get": "rooms/r1",
             "expect": "allow"},
            {"it": "get rooms/r1 as eve (2)", "as": "eve", "get": "rooms/r1", "expect": "deny"}
          ]
        """), "\(text)")
  }

  // MARK: Times and claims

  private static func rules(_ condition: String) throws -> Ruleset {
    try Ruleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore { match /databases/{d}/documents/{c}/{id} { allow read, write: if \(condition); } }
        """)
  }

  private static func recorded(
    _ operation: RuleTest.Operation, by condition: String, fields: MapValue? = nil, claims: MapValue = MapValue(),
    expectsAllow: Bool = true
  ) throws -> String {
    let recording = CaseRecording()
    let path = try ResourcePath("notes/n")
    recording.add(
      RuleTest(
        operation, as: TestAuth.auth(uid: "ann", claims: claims, time: Toy.time), at: Toy.time,
        over: [path: fields.map { EncodedFields($0) }], expectsAllow: expectsAllow),
      by: try rules(condition), in: database)
    let outcome = recording.finish().outcome
    #expect(outcome.leftOut.isEmpty, "\(outcome)")
    return try text(recording)
  }

  private static func get() throws -> RuleTest.Operation {
    .get(try #require(DocumentKey(try ResourcePath("notes/n"))))
  }

  @Test func casesHaveATimeOnlyIfRulesReadIt() throws {
    #expect(!(try Self.recorded(try Self.get(), by: "true").contains("time")))
    let standard = try Self.recorded(try Self.get(), by: "request.time > timestamp.date(2024, 1, 1)")
    #expect(standard.contains(#""time": "2025-01-01T00:00:00Z""#) && !standard.contains("2025-05-10"), "\(standard)")
    // The standard time would change this decision.
    let own = try Self.recorded(try Self.get(), by: "request.time > timestamp.date(2025, 2, 1)")
    #expect(own.contains(#""time": "2025-05-10T12:00:00Z", "expect": "allow""#), "\(own)")
    // Timestamps of documents belong to the time of the request.
    let stored = try Self.recorded(
      try Self.get(), by: "request.time > resource.data.at",
      fields: MapValue([("at", .timestamp(Timestamp(uncheckedMicroseconds: 0)))]))
    #expect(stored.contains(#""time": "2025-05-10T12:00:00Z", "expect": "allow""#), "\(stored)")
  }

  @Test func claimsOfEveryTokenAreRecordedOnlyIfRulesNameThem() throws {
    let claims = MapValue([("aud", .string("shop")), ("iss", .string("x")), ("role", .string("guide"))])
    let plain = try Self.recorded(try Self.get(), by: "request.auth.token.role == 'guide'", claims: claims)
    #expect(plain.contains(#""as": {"uid": "ann", "token": {"role": "guide"}}"#), "\(plain)")
    let named = try Self.recorded(try Self.get(), by: "request.auth.token.aud == 'shop'", claims: claims)
    #expect(named.contains(#""token": {"aud": "shop", "role": "guide"}"#), "\(named)")
    // The rules do not name the claim that decides.
    let hidden = try Self.recorded(try Self.get(), by: "request.auth.token.size() == 9", claims: claims)
    #expect(hidden.contains(#""iss": "x""#), "\(hidden)")
  }

  @Test func referencesToTheDatabaseBecomePaths() throws {
    let name = Self.database.documentsRoot + "/users/ann"
    let text = try Self.recorded(
      try Self.get(), by: "resource.data.who == /databases/$(d)/documents/users/ann",
      fields: MapValue([("who", .reference(name))]))
    #expect(text.contains(#"{"who": {"$ref": "users/ann"}}"#), "\(text)")
  }

  // MARK: Omitted decisions, limits and tests

  @Test func requestsWithoutANotationAreCounted() throws {
    let recording = CaseRecording()
    let ruleset = try Self.rules("true")
    for _ in 0..<2 {
      recording.add(
        RuleTest(.list(Query(collectionID: nil)), as: nil, at: Toy.time, over: [:], expectsAllow: true), by: ruleset,
        in: Self.database)
    }
    recording.add(
      RuleTest(try Self.get(), as: nil, at: Toy.time, over: [:], expectsAllow: false), by: ruleset, in: Self.database)
    let (suites, outcome) = recording.finish()
    #expect(suites.isEmpty && outcome.decisionCount == 3)
    #expect(outcome.leftOut["a query of all collections below a document has no notation"]?.count == 2)
    #expect(outcome.leftOut["the decision differs without the server"]?.example == "get notes/n unauthenticated")
  }

  @Test func rulesetsHaveALimit() throws {
    let recording = CaseRecording()
    for number in 0...RecordingLimits.rulesetsMax {
      recording.add(
        RuleTest(try Self.get(), as: nil, at: Toy.time, over: [:], expectsAllow: true),
        by: try Self.rules("\(number) == \(number)"), in: Self.database)
    }
    let (suites, outcome) = recording.finish()
    #expect(suites.count == RecordingLimits.rulesetsMax && outcome.beyondLimits == 1)
  }

  @Test func testsEndWithSetups() throws {
    let recording = CaseRecording()
    let ruleset = try Self.rules("true")
    func request(_ project: String) throws {
      recording.add(
        RuleTest(try Self.get(), as: nil, at: Toy.time, over: [:], expectsAllow: true), by: ruleset,
        in: try #require(DatabaseID(project: project)))
    }
    try request("one")
    try request("one")
    try request("two")
    recording.noteSetup(of: "one")
    recording.noteSetup(of: "one")
    try request("one")
    try request("two")
    #expect(recording.finish().outcome.testCount == 3)
    recording.noteSetup(of: nil)
    try request("one")
    try request("two")
    #expect(recording.finish().outcome.testCount == 5)
  }
}
