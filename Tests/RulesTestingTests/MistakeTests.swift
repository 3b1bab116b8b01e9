import FixtureTree
import RulesTesting
import Testing

/// Errors in test files: the message contains the place, the case and a correction.
@Suite struct MistakeTests {
  @Test(arguments: [
    (#"{"it": "a", "get": "rooms/r1"}"#, #"6:1: case "a": add "expect": "allow" or "expect": "deny""#),
    (#"{"it": "a", "get": "rooms/r1", "expect": "yes"}"#, #"6:42: case "a": "expect" must be "allow" or "deny""#),
    (#"{"it": "a", "gte": "rooms/r1", "expect": "deny"}"#, #"6:13: case "a": unknown key "gte"; did you mean 'get'?"#),
    (#"{"it": "a", "expect": "deny"}"#, #"case "a": the case has no request; write exactly one of get, list,"#),
    (#"{"it": "a", "get": "rooms/r1", "list": "rooms", "expect": "deny"}"#, #"get and list cannot be combined"#),
    (#"{"get": "rooms/r1", "expect": "deny"}"#, #"case "number 1": add "it": "…" to describe the case"#),
    (
      #"{"it": "a", "get": "rooms", "expect": "deny"}"#,
      #"6:20: case "a": "rooms" is not a document; write a path such as "users/ann""#
    ),
    (#"{"it": "a", "list": "rooms/r1", "expect": "deny"}"#, #""rooms/r1" is not a collection"#),
    (#"{"it": "a", "listGroup": "rooms/r1/x", "expect": "deny"}"#, #""listGroup" must be a collection ID"#),
    // A slash separates segments even if a combining mark follows it.
    (#"{"it": "a", "listGroup": "rooms/\#u{301}x", "expect": "deny"}"#, #""listGroup" must be a collection ID"#),
    (#"{"it": "a", "get": "rooms//r1", "expect": "deny"}"#, #""rooms//r1" is not a path"#),
    (
      #"{"it": "a", "get": "rooms/r1", "data": {}, "expect": "deny"}"#,
      #""data" is allowed only with create, set and update, not with get"#
    ),
    (
      #"{"it": "a", "get": "rooms/r1", "query": {}, "expect": "deny"}"#,
      #""query" is allowed only with list and listGroup, not with get"#
    ),
    (
      #"{"it": "a", "pipeline": "collection(/rooms) where(a = 1)", "expect": "deny"}"#,
      #"6:25: case "a": the pipeline is not valid: write == instead of = at line 1, column 28 of the pipeline"#
    ),
    (
      #"{"it": "a", "pipeline": "collection(/rooms) wher(a == 1)", "expect": "deny"}"#,
      #"6:25: case "a": the pipeline is not valid: Stage 2 (wher): Unknown stage."#
    ),
    (#"{"it": "a", "pipeline": ["collection"], "expect": "deny"}"#, #""pipeline" must be a string"#),
    (#"{"it": "a", "update": "rooms/r1", "expect": "deny"}"#, #"add "data": {…} with the fields"#),
    (
      #"{"it": "a", "update": "rooms/r1", "data": {"x": {"$timestamp": "monday"}}, "expect": "deny"}"#,
      #"case "a": field "x":"#
    ),
    (#"{"it": "a", "update": "rooms/r1", "data": {}, "merge": true, "expect": "deny"}"#, #"is allowed only with set"#),
    (#"{"it": "a", "update": "rooms/r1", "transforms": {"n": {"add": 1}}, "expect": "deny"}"#, "a transform must be"),
    (
      #"{"it": "a", "list": "rooms", "query": {"where": [["a", "=", 1]]}, "expect": "deny"}"#,
      #"6:56: case "a": unknown operator "=""#
    ),
    (#"{"it": "a", "list": "rooms", "query": {"where": [["a", 1]]}, "expect": "deny"}"#, "a condition must be"),
    (#"{"it": "a", "list": "rooms", "query": {"orderBy": ["a down"]}, "expect": "deny"}"#, "an order must be"),
    (#"{"it": "a", "list": "rooms", "query": {"limit": -1}, "expect": "deny"}"#, #""limit" must be a whole number"#),
    (#"{"it": "a", "get": "rooms/r1", "as": 5, "expect": "deny"}"#, #""as" must be a user ID"#),
    (
      #"{"it": "a", "get": "rooms/r1", "as": {"id": "x"}, "expect": "deny"}"#,
      #"unknown key "id"; "as" can have the keys uid, token"#
    ),
    (#"{"it": "a", "get": "rooms/r1", "time": "noon", "expect": "deny"}"#, #""time" must have the form"#),
    (#"{"it": "a", "commit": [], "expect": "deny"}"#, #""commit" needs at least one write"#),
    (#"{"it": "a", "commit": [{"get": "rooms/r1"}], "expect": "deny"}"#, #"unknown key "get""#),
    (#"{"it": "a", "it": "b", "get": "rooms/r1", "expect": "deny"}"#, #"duplicate key "it" in this object"#),
    (#"[]"#, #"a case must be an object"#),
    (
      #"{"it": "a", "get": "rooms/r1", "documents": [], "expect": "deny"}"#,
      #""documents" of a case must be an object with paths as keys"#
    ),
    (
      #"{"it": "a", "get": "rooms/r1", "documents": {"rooms": {}}, "expect": "deny"}"#,
      #"6:46: case "a": "rooms" is not a document"#
    ),
    (
      #"{"it": "a", "get": "rooms/r1", "documents": {"rooms/r1": 5}, "expect": "deny"}"#, "the fields must be an object"
    ),
    (#"{"it": "a", "get": "rooms/r1", "files": {}, "expect": "deny"}"#, #"unknown key "files""#),
  ])
  func reportsAMistakeInACase(text: String, message: String) throws {
    let error = try #require(throws: FixtureTreeError.self) { try Toy.suite(text) }
    #expect(error.description.hasPrefix("toy.tests.json:6:"), "\(error)")
    #expect(error.description.contains(message), "\(error)")
  }

  @Test(arguments: [
    ("[]", "x.json:1:1: the file must be an object"),
    ("{", "x.json:1:2:"),
    (#"{"cases": []}"#, #"the file does not name its rules; add "rules": "firestore.rules", or use --rules FILE"#),
    (#"{"rules": "none.rules", "cases": []}"#, "none.rules: cannot open the file: No such file"),
    (#"{"rules": "{}"}"#, #"the file has no "cases""#),
    (#"{"rules": "{}", "case": []}"#, #"1:17: unknown key "case"; did you mean 'cases'?"#),
    (#"{"rules": "{}", "documents": {"users": {}}, "cases": []}"#, "$collections"),
    (
      "{\"rules\": \"{}\",\n  \"documents\": {\"$collections\": [\"a\"],\n \"a\": {\"b\": 5}}, \"cases\": []}",
      "x.json:3:13: a/b"
    ),
    (#"{"rules": "{}", "fixture": "none.json", "cases": []}"#, "none.json: cannot open the file"),
    (#"{"rules": "{}", "testSuite": {}}"#, #""testSuite" must be {"testCases": […]}"#),
    (
      #"{"rules": "{}", "testSuite": {"testCases": [{}]}}"#,
      #"case "number 1": "expectation" must be "ALLOW" or "DENY""#
    ),
    (
      #"{"rules": "{}", "testSuite": {"testCases": [{"expectation": "DENY", "request": {"method": "read"}}]}}"#,
      #""method" must be one of get, list, create, update, delete"#
    ),
    (
      #"{"rules": "{}", "testSuite": {"testCases": [{"expectation": "DENY", "request": {"method": "get", "path": "a/b"}}]}}"#,
      #""a/b" must begin with /databases/(default)/documents"#
    ),
  ])
  func reportsAMistakeInAFile(text: String, message: String) throws {
    let error = try #require(throws: FixtureTreeError.self) {
      try SuiteReader(now: Toy.time).read(Array(text.utf8), file: "x.json")
    }
    #expect(error.description.contains(message), "\(error)")
  }
}
