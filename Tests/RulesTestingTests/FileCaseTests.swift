import DocumentModel
import RulesEngine
import Testing

@testable import RulesTesting

/// Cases of rules for files.
@Suite struct FileCaseTests {
  @Test func combiningMarksDoNotHideSlashes() {
    let (bucket, name) = RuleTestFiles.place("b/own/o/\u{301}n/\u{200D}x")
    #expect(bucket == "own" && name == "\u{301}n/\u{200D}x")
    #expect(RuleTestFiles.place("/\u{301}n") == (RuleTestFiles.bucket, "\u{301}n"))
    for (path, file, expected) in [
      ("a.rules", "dir/\u{301}x.json", "dir/a.rules"), ("/\u{301}a", "dir/x.json", "/\u{301}a"),
      ("a", "/x.json", "/a"), ("a", "x.json", "a"), ("a", "d\u{600}/x", "d\u{600}/a"),
    ] {
      #expect(SuiteReader.path(path, beside: file) == expected)
    }
  }

  private static let rules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o {
        match /avatars/{uid} {
          allow get: if resource != null && resource.metadata.get('by', '') == request.auth.uid;
          allow list: if bucket == 'demo.appspot.com' && resource == null;
          allow create: if request.resource.size < 100 && request.resource.contentType.matches('image/.*')
            && request.resource.name == 'avatars/' + uid && request.resource.bucket == bucket
            && request.resource.timeCreated == request.time;
          allow update: if request.resource.metageneration == resource.metageneration + 1
            && request.resource.size == resource.size && request.resource.updated == request.time
            && !('by' in request.resource.metadata);
          allow delete: if request.resource == null && resource.size > 5
            && firestore.get(/databases/(default)/documents/users/$(uid)).data.may;
        }
        match /counted/{file} {
          allow get: if firestore.exists(/databases/(default)/documents/users/ann)
            && firestore.exists(/databases/(default)/documents/users/bob)
            && !firestore.exists(/databases/(default)/documents/users/eve);
        }
      }
    }
    """

  private static func file(_ cases: String) -> String {
    """
    {
     "rules": \(Toy.quoted(rules)),
     "time": "2025-05-10T12:00:00Z",
     "documents": {"$collections": ["users"], "users": {"ann": {"may": true}, "bob": {"may": false}}},
     "files": {
       "avatars/ann": {"size": 10, "contentType": "image/png", "metadata": {"by": "ann", "x": "y"}},
       "avatars/bob": {"size": 10}, "b/other/o/avatars/ann": {"size": 1, "metadata": {"by": "bob"}}},
     "cases": [
    \(cases)
    ]}
    """
  }

  private static func suite(_ cases: String) throws -> RuleTestSuite {
    try SuiteReader(now: Toy.time).read(Array(file(cases).utf8), file: "files.tests.json")
  }

  private static func run(_ cases: String) throws -> (run: SuiteRun, coverage: Coverage) {
    let suite = try suite(cases)
    let ruleset = try Ruleset(compiling: suite.rules, service: suite.service)
    let empty = Coverage(file: "storage.rules", ruleset)
    var coverage: Coverage? = empty
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    return (run, coverage ?? empty)
  }

  @Test(arguments: [
    #"{"it": "1", "as": "ann", "get": "avatars/ann", "expect": "allow", "line": 5}"#,
    #"{"it": "2", "as": "bob", "get": "/avatars/ann", "expect": "deny"}"#,
    #"{"it": "3", "as": "bob", "get": "b/other/o/avatars/ann", "expect": "allow"}"#,
    #"{"it": "4", "as": "ann", "get": "avatars/none", "expect": "deny"}"#,
    #"{"it": "5", "list": "avatars/ann/", "expect": "allow"}"#,
    #"{"it": "6", "list": "b/other/o/avatars/ann", "expect": "deny"}"#,
    #"{"it": "7", "as": "ann", "read": "avatars/ann", "expect": "allow"}"#,
    #"{"it": "8", "as": "bob", "read": "avatars/ann", "expect": "deny"}"#,
    #"{"it": "9", "create": "avatars/new", "data": {"size": 99, "contentType": "image/png"}, "expect": "allow"}"#,
    #"{"it": "10", "create": "avatars/ann", "data": {"size": 99, "contentType": "image/png"}, "expect": "allow"}"#,
    #"{"it": "11", "create": "avatars/new", "data": {"size": 100, "contentType": "image/png"}, "expect": "deny"}"#,
    #"{"it": "12", "create": "avatars/new", "expect": "deny"}"#,
    #"{"it": "13", "update": "avatars/ann", "data": {"metadata": {"by": null}}, "expect": "allow"}"#,
    #"{"it": "14", "update": "avatars/ann", "data": {"metadata": {"z": "z"}}, "expect": "deny"}"#,
    #"{"it": "15", "delete": "avatars/ann", "expect": "allow"}"#,
    #"{"it": "16", "delete": "avatars/bob", "expect": "deny", "line": 13}"#,
    // The rules look up three documents, one more than the limit.
    #"{"it": "17", "get": "counted/x", "expect": "deny"}"#,
    // The files and documents of a case override those of the file.
    #"{"it": "20", "as": "eve", "get": "avatars/ann", "files": {"avatars/ann": {"metadata": {"by": "eve"}}}, "expect": "allow"}"#,
    #"{"it": "21", "as": "ann", "get": "avatars/ann", "files": {"avatars/ann": null}, "expect": "deny"}"#,
    #"{"it": "22", "delete": "avatars/ann", "documents": {"users/ann": {"may": false}}, "expect": "deny"}"#,
    #"{"it": "18", "get": "elsewhere", "expect": "deny"}"#,
    // The slash and the mark before it are one Character.
    #"{"it": "19", "list": "avatars/x\u0600/", "expect": "allow"}"#,
  ])
  func casesAreEvaluatedAsOnTheServer(test: String) throws {
    let run = try Self.run(test).run
    let result = try #require(run.results.first)
    #expect(result.isPassed, "\(run.explanation(of: result).joined(separator: "\n"))")
  }

  @Test func coverageAndMutationsSupportFiles() throws {
    let (run, coverage) = try Self.run(
      """
      {"it": "a", "as": "ann", "get": "avatars/ann", "expect": "allow"},
      {"it": "b", "as": "ann", "get": "avatars/bob", "expect": "allow"}
      """)
    #expect(run.passedCount == 1)
    let text = run.explanation(of: try #require(run.failures.first))
    #expect(text.contains { $0.hasPrefix("denied: get b/demo.appspot.com/o/avatars/bob") }, "\(text)")
    #expect(text.contains { $0.contains("resource.metadata.get('by', '') == request.auth.uid → false") }, "\(text)")
    #expect(coverage.lines.contains { $0.hits == 2 })
    #expect(SuiteRun.junit([run], seconds: 0).contains("tests=\"2\" failures=\"1\""))
    let mutations = MutationTest(run.ruleset, file: "storage.rules", [run])
    #expect(mutations.count > 10)
    #expect(!mutations.survivors.isEmpty && mutations.survivors.count < mutations.count)
  }

  @Test(arguments: [
    (#"{"it": "x", "get": "", "expect": "deny"}"#, "the path has no file name"),
    (#"{"it": "x", "get": "b/other/o/", "expect": "deny"}"#, "the path has no file name"),
    (#"{"it": "x", "set": "avatars/ann", "expect": "deny"}"#, "unknown key \"set\""),
    (#"{"it": "x", "expect": "deny"}"#, "the case has no request; write exactly one of read, get, list, create,"),
    (
      #"{"it": "x", "get": "a", "data": {}, "expect": "deny"}"#,
      "\"data\" is allowed only with create and update, not with get"
    ),
    (#"{"it": "x", "update": "a", "data": {}, "expect": "deny"}"#, "the file \"a\" does not exist"),
    (#"{"it": "x", "update": "avatars/ann", "expect": "deny"}"#, "add \"data\": {…} with the changes"),
    (
      #"{"it": "x", "create": "a", "data": {"siez": 1}, "expect": "deny"}"#, "unknown key \"siez\"; did you mean 'size'"
    ),
    (
      #"{"it": "x", "create": "a", "data": {"size": "1"}, "expect": "deny"}"#,
      "\"size\" must be a whole number of bytes"
    ),
    (
      #"{"it": "x", "create": "a", "data": {"size": -1}, "expect": "deny"}"#, "\"size\" must be a whole number of bytes"
    ),
    (#"{"it": "x", "create": "a", "data": {"contentType": 1}, "expect": "deny"}"#, "\"contentType\" must be a string"),
    (#"{"it": "x", "create": "a", "data": {"metadata": {"a": 1}}, "expect": "deny"}"#, "must be strings"),
    (#"{"it": "x", "create": "a", "data": {"updated": "x"}, "expect": "deny"}"#, "$timestamp"),
  ])
  func errorsSayWhatToDo(test: String, message: String) throws {
    let error = #expect(throws: (any Error).self) { try Self.suite(test) }
    let text = error.map { String(describing: $0) } ?? ""
    #expect(text.contains(message), "\(text)")
    #expect(text.contains("files.tests.json:9:"), "\(text)")
  }

  @Test func filesNeedStorageRules() throws {
    let error = #expect(throws: (any Error).self) {
      try Toy.suite("", more: "\n \"files\": {\"a\": {}},")
    }
    #expect(error.map { String(describing: $0).contains("is allowed only with rules for firebase.storage") } ?? false)
  }
}
