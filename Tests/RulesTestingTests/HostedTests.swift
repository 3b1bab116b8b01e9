import RulesEngine
import RulesTesting
import Testing

/// The JSON of the hosted service's test API.
@Suite struct HostedTests {
  private static func run(_ testCase: String) throws -> SuiteRun {
    let text = """
      {"source": {"files": [{"name": "toy.rules", "content": \(Toy.quoted(Toy.rules))}]},
       "testSuite": {"testCases": [\(testCase)]}}
      """
    let suite = try SuiteReader(now: Toy.time).read(Array(text.utf8), file: "hosted.json")
    var none: Coverage?
    return SuiteRun(suite, by: try .init(compiling: suite.rules), coverage: &none)
  }

  private static let room = #""/databases/(default)/documents/rooms/r1""#

  @Test(arguments: [
    (
      #""request": {"method": "get", "path": PATH, "auth": {"uid": "ann"}}, "resource": {"data": {"owner": "ann"}}"#,
      true
    ),
    (
      #""request": {"method": "get", "path": PATH, "auth": {"uid": "eve"}}, "resource": {"data": {"owner": "ann"}}"#,
      false
    ),
    (#""request": {"method": "get", "path": PATH, "auth": {"uid": "ann"}}"#, false),
    // A slash separates segments even if a combining mark follows it.
    (#""request": {"method": "get", "path": "/databases/(default)/documents/\#u{301}c/r1"}"#, false),
    // A list is evaluated with the resource of the case, without a proof.
    (
      #""request": {"method": "list", "path": PATH, "auth": {"uid": "ann"}}, "resource": {"data": {"owner": "ann"}}"#,
      true
    ),
    (
      #""request": {"method": "create", "path": PATH, "auth": {"uid": "ann"}, "resource": {"data": {"owner": "ann", "size": 9}}}"#,
      true
    ),
    (
      #""request": {"method": "get", "path": "/databases/(default)/documents/logs/r%31"}, "functionMocks": [{"function": "exists", "args": [{"exactValue": PATH}], "result": {"value": true}}]"#,
      true
    ),
    (
      #""pathEncoding": "PLAIN", "request": {"method": "get", "path": "/databases/(default)/documents/logs/r%31"}, "functionMocks": [{"function": "exists", "args": [{"exactValue": PATH}], "result": {"value": true}}]"#,
      false
    ),
    (
      #""request": {"method": "get", "path": "/databases/(default)/documents/logs/r1"}, "functionMocks": [{"function": "exists", "args": [{"anyValue": {}}], "result": {"value": false}}]"#,
      false
    ),
    (
      #""request": {"method": "get", "path": "/databases/(default)/documents/logs/r1"}, "functionMocks": [{"function": "get", "args": [{"anyValue": {}}], "result": {"value": {"data": {"a": 1}}}}]"#,
      true
    ),
    (
      #""request": {"method": "get", "path": "/databases/(default)/documents/logs/r1"}, "functionMocks": [{"function": "get", "args": [{"anyValue": {}}], "result": {"undefined": {}}}]"#,
      false
    ),
    // A lookup without a mock fails.
    (#""request": {"method": "get", "path": "/databases/(default)/documents/logs/r1"}"#, false),
  ])
  func hostedCasesAreDecidedAsExpected(text: String, isAllowed: Bool) throws {
    let text = text.replacing("PATH", with: Self.room)
    let run = try Self.run(#"{"expectation": "\#(isAllowed ? "ALLOW" : "DENY")", \#(text)}"#)
    #expect(run.passedCount == 1, "\(run.failures.first.map { run.explanation(of: $0) } ?? [])")
    #expect(try Self.run(#"{"expectation": "\#(isAllowed ? "DENY" : "ALLOW")", \#(text)}"#).passedCount == 0)
  }
}
