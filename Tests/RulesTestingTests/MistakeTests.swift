import FixtureTree
import RulesTesting
import Testing

/// Files that are not what they should be: the message says where, which case, and what to do.
@Suite struct MistakeTests {
  @Test(arguments: [
    (#"{"it": "a", "get": "rooms/r1"}"#, #"6:1: case "a": add "expect": "allow" or "expect": "deny""#),
    (#"{"it": "a", "get": "rooms/r1", "expect": "yes"}"#, #"6:42: case "a": "expect" must be "allow" or "deny""#),
    (#"{"it": "a", "gte": "rooms/r1", "expect": "deny"}"#, #"6:13: case "a": unknown key "gte"; did you mean 'get'?"#),
    (#"{"it": "a", "expect": "deny"}"#, #"case "a": nothing is asked; a case has one of get, list,"#),
    (#"{"it": "a", "get": "rooms/r1", "list": "rooms", "expect": "deny"}"#, #"get and list exclude each other"#),
    (#"{"get": "rooms/r1", "expect": "deny"}"#, #"case "number 1": say what it shows with "it": "…""#),
    (#"{"it": "a", "get": "rooms", "expect": "deny"}"#, #"6:20: case "a": "rooms" is no document; a path such as "users/ann" names one"#),
    (#"{"it": "a", "list": "rooms/r1", "expect": "deny"}"#, #""rooms/r1" is no collection"#),
    (#"{"it": "a", "listGroup": "rooms/r1/x", "expect": "deny"}"#, #""listGroup" takes the id of collections"#),
    // A slash is one, whatever mark stands behind it.
    (#"{"it": "a", "listGroup": "rooms/\#u{301}x", "expect": "deny"}"#, #""listGroup" takes the id of collections"#),
    (#"{"it": "a", "get": "rooms//r1", "expect": "deny"}"#, #""rooms//r1" is no path"#),
    (#"{"it": "a", "get": "rooms/r1", "data": {}, "expect": "deny"}"#, #""data" goes with create, set and update, not with get"#),
    (#"{"it": "a", "get": "rooms/r1", "query": {}, "expect": "deny"}"#, #""query" goes with list and listGroup"#),
    (#"{"it": "a", "update": "rooms/r1", "expect": "deny"}"#, #"a update needs "data": {…}"#),
    (#"{"it": "a", "update": "rooms/r1", "data": {"x": {"$timestamp": "monday"}}, "expect": "deny"}"#, #"case "a": field "x":"#),
    (#"{"it": "a", "update": "rooms/r1", "data": {}, "merge": true, "expect": "deny"}"#, #""merge": true goes with set"#),
    (#"{"it": "a", "update": "rooms/r1", "transforms": {"n": {"add": 1}}, "expect": "deny"}"#, "a transform is"),
    (#"{"it": "a", "list": "rooms", "query": {"where": [["a", "=", 1]]}, "expect": "deny"}"#, #"6:56: case "a": unknown operator "=""#),
    (#"{"it": "a", "list": "rooms", "query": {"where": [["a", 1]]}, "expect": "deny"}"#, "a condition is"),
    (#"{"it": "a", "list": "rooms", "query": {"orderBy": ["a down"]}, "expect": "deny"}"#, "an order is written"),
    (#"{"it": "a", "list": "rooms", "query": {"limit": -1}, "expect": "deny"}"#, #""limit" must be a whole number"#),
    (#"{"it": "a", "get": "rooms/r1", "as": 5, "expect": "deny"}"#, #""as" must be a user's id"#),
    (#"{"it": "a", "get": "rooms/r1", "as": {"id": "x"}, "expect": "deny"}"#, #"unknown key "id"; "as" may have uid, token"#),
    (#"{"it": "a", "get": "rooms/r1", "time": "noon", "expect": "deny"}"#, #""time" must be written as"#),
    (#"{"it": "a", "commit": [], "expect": "deny"}"#, #""commit" needs at least one write"#),
    (#"{"it": "a", "commit": [{"get": "rooms/r1"}], "expect": "deny"}"#, #"unknown key "get""#),
    (#"{"it": "a", "it": "b", "get": "rooms/r1", "expect": "deny"}"#, #""it" stands twice in this object"#),
    (#"[]"#, #"a case must be an object"#),
  ])
  func inACase(text: String, message: String) throws {
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
    ("{\"rules\": \"{}\",\n  \"documents\": {\"$collections\": [\"a\"],\n \"a\": {\"b\": 5}}, \"cases\": []}", "x.json:3:13: a/b"),
    (#"{"rules": "{}", "fixture": "none.json", "cases": []}"#, "none.json: cannot open the file"),
    (#"{"rules": "{}", "testSuite": {}}"#, #""testSuite" must be {"testCases": […]}"#),
    (#"{"rules": "{}", "testSuite": {"testCases": [{}]}}"#, #"case "number 1": "expectation" must be "ALLOW" or "DENY""#),
    (
      #"{"rules": "{}", "testSuite": {"testCases": [{"expectation": "DENY", "request": {"method": "read"}}]}}"#,
      #""method" must be one of get, list, create, update, delete"#
    ),
    (
      #"{"rules": "{}", "testSuite": {"testCases": [{"expectation": "DENY", "request": {"method": "get", "path": "a/b"}}]}}"#,
      #""a/b" must begin with /databases/(default)/documents"#
    ),
  ])
  func inAFile(text: String, message: String) throws {
    let error = try #require(throws: FixtureTreeError.self) {
      try SuiteReader(now: Toy.time).read(Array(text.utf8), file: "x.json")
    }
    #expect(error.description.contains(message), "\(error)")
  }
}
