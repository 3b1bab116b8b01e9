import DocumentModel
import RulesEngine
import RulesTesting
import Testing

/// The forms of a case, and their decisions.
@Suite struct CaseTests {
  static let cases: [(case: String, isAllowed: Bool)] = [
    (#""as": "ann", "get": "rooms/r1""#, true),
    (#""as": "eve", "get": "rooms/r1""#, false),
    (#""as": null, "get": "rooms/r1""#, false),
    (#""get": "rooms/r1""#, false),
    (#""as": {"uid": "ann", "token": {"admin": true}}, "get": "rooms/r1""#, true),
    (#""as": "ann", "list": "rooms", "query": {"where": [["owner", "==", "ann"]], "limit": 3}"#, true),
    (
      #""as": "ann", "list": "rooms", "query": {"where": [{"or": [["owner", "==", "ann"], ["owner", "==", "eve"]]}]}"#,
      false
    ),
    (#""as": "ann", "list": "rooms", "query": {"where": [["owner", "in", ["ann"]]], "orderBy": ["size desc"]}"#, true),
    (#""as": "ann", "list": "rooms""#, false),
    (#""as": "ann", "listGroup": "rooms", "query": {"where": [["owner", "==", "ann"]]}"#, false),
    // A pipeline is allowed if every source is, by the conditions before the fields change.
    (#""as": "ann", "pipeline": "collection(/rooms) where(owner == 'ann') aggregate(n: count())""#, true),
    (#""as": "ann", "pipeline": "collection(/rooms)""#, false),
    (#""as": "ann", "pipeline": "collection(/rooms) select(owner) where(owner == 'ann')""#, false),
    (#""as": "ann", "pipeline": "collection(/rooms) where(owner == 'ann') union(collection(/rooms))""#, false),
    (#""as": "ann", "pipeline": "documents(/rooms/r1) sort(size)""#, true),
    (#""as": "eve", "pipeline": "documents(/rooms/r1)""#, false),
    (#""as": "ann", "pipeline": "literals({owner: 'ann'})""#, false),
    (#""as": "ann", "pipeline": "literals({owner: 'ann'}) union(documents(/rooms/r1))""#, true),
    (#""as": "ann", "pipeline": "collection(/rooms) where(owner == 'ann') delete()""#, false),
    (#""as": "ann", "create": "rooms/r2", "data": {"owner": "ann", "size": 1}"#, true),
    // A create of an existing document is evaluated as a create.
    (#""as": "ann", "create": "rooms/r1", "data": {"owner": "ann", "size": 1}"#, true),
    (#""as": "ann", "set": "rooms/r2", "data": {"owner": "ann", "size": 1}"#, true),
    (#""as": "ann", "set": "rooms/r1", "data": {"owner": "ann", "size": 1}"#, false),
    (#""as": "ann", "set": "rooms/r1", "data": {"size": 2}, "merge": true"#, true),
    (#""as": "ann", "update": "rooms/r1", "data": {"size": 2}"#, true),
    (#""as": "ann", "update": "rooms/r1", "data": {"at.x": 5, "size": 2}"#, true),
    (#""as": "ann", "update": "rooms/r1", "data": {"size": 2, "owner": "eve"}, "mask": ["size"]"#, true),
    (#""as": "ann", "update": "rooms/r1", "transforms": {"size": {"increment": 1}}"#, true),
    (#""as": "ann", "update": "rooms/r1", "transforms": {"size": {"increment": 2}}"#, false),
    (#""as": "ann", "update": "rooms/r1", "transforms": {"size": {"maximum": 2}, "seen": "serverTimestamp"}"#, true),
    (#""as": "ann", "delete": "rooms/r1""#, false),
    // getAfter() reads the state after all writes, exists() the state before them.
    (
      #""as": "ann", "commit": [{"create": "logs/r3", "data": {}}, {"set": "rooms/r3", "data": {"owner": "ann", "size": 3}}]"#,
      true
    ),
    (#""as": "ann", "create": "logs/r1", "data": {}"#, false),
    (#""as": "ann", "get": "logs/r1""#, true),
    (#""as": "ann", "get": "logs/r9""#, false),
    // The documents of a case override those of the file.
    (#""as": "eve", "get": "rooms/r1", "documents": {"rooms/r1": {"owner": "eve"}}"#, true),
    (#""as": "ann", "get": "rooms/r2", "documents": {"rooms/r2": {"owner": "ann"}}"#, true),
    (#""as": "ann", "get": "rooms/r1", "documents": {"rooms/r1": null}"#, false),
    (#""as": "ann", "get": "logs/r1", "documents": {"rooms/r1": null}"#, false),
    (
      #""as": "ann", "update": "rooms/r1", "data": {"size": 9}, "documents": {"rooms/r1": {"owner": "ann", "size": 8}}"#,
      true
    ),
    // Several writes to one document are evaluated as one.
    (
      #""as": "ann", "commit": [{"delete": "rooms/r1"}, {"set": "rooms/r1", "data": {"owner": "ann", "size": 2}}]"#,
      true
    ),
    (
      #""as": "ann", "commit": [{"update": "rooms/r1", "data": {"size": 1}}, {"update": "rooms/r1", "data": {"size": 2}}]"#,
      true
    ),
    (
      #""as": "ann", "commit": [{"create": "rooms/r5", "data": {"owner": "ann", "size": 1}}, {"delete": "rooms/r5"}]"#,
      false
    ),
  ]

  @Test(arguments: cases)
  func casesAreDecidedAsExpected(text: String, isAllowed: Bool) throws {
    let run = try Toy.run(#"{"it": "is decided", \#(text), "expect": "\#(isAllowed ? "allow" : "deny")"}"#).run
    #expect(run.passedCount == 1, "\(run.failures.first.map { run.explanation(of: $0) } ?? [])")
  }

  @Test(arguments: [
    (#""get": "rooms/r1", "as": "ann", "expect": "allow", "line": 5"#, true),
    (#""get": "rooms/r1", "as": "ann", "expect": "allow", "line": 6"#, false),
    (#""get": "rooms/r1", "as": "eve", "expect": "deny", "line": 5"#, true),
    (#""get": "rooms/r1", "as": "eve", "expect": "deny", "line": 9"#, false),
    (#""get": "other/r1", "as": "eve", "expect": "deny", "line": 5"#, false),
  ])
  func aCaseChecksTheDecidingLine(text: String, isPassed: Bool) throws {
    let run = try Toy.run(#"{"it": "x", \#(text)}"#).run
    #expect((run.passedCount == 1) == isPassed)
  }

  @Test func timeComesFromTheCaseOrTheFile() throws {
    let cases = """
      {"it": "a", "get": "rooms/r1", "expect": "deny", "time": "2020-01-01T00:00:00Z"},
      {"it": "b", "get": "rooms/r1", "expect": "deny"}
      """
    let times = try Toy.suite(cases).tests.map(\.time.seconds)
    #expect(times == [1_577_836_800, 1_746_878_400])
  }

  @Test func theFilterChoosesCases() throws {
    let suite = try Toy.suite(
      """
      {"it": "reads", "as": "ann", "get": "rooms/r1", "expect": "allow"},
      {"it": "writes", "as": "ann", "delete": "rooms/r1", "expect": "deny"}
      """)
    var none: Coverage?
    let run = SuiteRun(suite, by: try .init(compiling: suite.rules), filter: "rea", coverage: &none)
    #expect(run.results.map(\.test.name) == ["reads"])
    #expect(run.skippedCount == 1)
  }

  @Test func aFailureShowsTheValues() throws {
    let run = try Toy.run(#"{"it": "x", "as": "eve", "get": "rooms/r1", "expect": "allow"}"#).run
    let failure = try #require(run.failures.first)
    #expect(
      run.explanation(of: failure) == [
        "expected allow, got deny",
        "denied: get rooms/r1",
        "  toy.tests.json:5: allow read: false",
        "    owns(resource.data) → false",
        #"      resource.data → {"at": {"x": 1, "y": 2}, "owner": "ann", "size": 1}"#,
        "      data.owner == request.auth.uid → false",
        #"        data.owner → "ann""#,
        #"        request.auth.uid → "eve""#,
      ])
  }
}
