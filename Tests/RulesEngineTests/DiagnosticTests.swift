import RulesEngine
import Testing

/// The diagnostics of rulesets and their places.
@Suite struct DiagnosticTests {
  /// Returns all diagnostics of a text, as `severity line:column message`.
  static func diagnostics(of text: String) -> [String] {
    do throws(RulesetError) {
      return try Ruleset(compiling: text).diagnostics.map(Self.line)
    } catch {
      return error.diagnostics.map(Self.line)
    }
  }

  private static func line(_ diagnostic: Diagnostic) -> String {
    let hint = diagnostic.suggestion.map { "; \($0)" } ?? ""
    return "\(diagnostic.severity.rawValue) \(diagnostic.line):\(diagnostic.column) \(diagnostic.message)\(hint)"
  }

  /// Returns a ruleset of version 2 with the functions and the condition on separate lines.
  static func rules(_ condition: String, functions: String = "") -> String {
    """
    rules_version = '2'; service cloud.firestore { match /databases/{d}/documents {
    \(functions)
    match /a/{id} { allow get: if
    \(condition)
    ; } } }
    """
  }

  private static let openString =
    "error 4:1 A string must end on the line on which it starts.; "
    + "add the closing quote, or write \\n for a line break"
  private static let ambiguousOrder =
    "lint 4:7 '==' binds more tightly than 'in', contrary to Firebase's documentation.; "
    + "add parentheses to make the order explicit"
  private static let collectionPath =
    "lint 2:7 This block never matches: its path names a collection, not a document.; "
    + "add a segment for the document, such as /{id}"
  private static let anyCallerCanWrite =
    "lint 2:16 Any caller can write here: the condition is always true.; "
    + "add a condition, such as if request.auth != null"

  @Test(arguments: [
    ("1 +", "error 5:1 Unexpected ';'."), ("a b", "error 4:3 Unexpected 'b'.; expected ';'"),
    ("--1", "error 4:1 Increment (++) and decrement (--) operators are not supported."),
    ("9223372036854775808", "error 4:1 Invalid number literal 9223372036854775808."),
    ("math.PI", "error 4:1 math is a package and cannot be used as variable name."),
    ("'a'.matches('(')", "error 4:13 Invalid regular expression pattern. Pattern: (."),
    ("'\\d'", "error 4:2 Unknown escape sequence in a string.; write '\\\\' for a backslash"),
    ("'a", openString), ("1 # x", "error 4:3 Unexpected character '#'."),
    ("1 is strin", "error 4:6 Unexpected 'strin'.; did you mean 'string'?"),
    ("b'\\u0041' == 1", "error 4:1 Invalid bytes literal b'\\u0041'."),
    ("isOwnr()", "warning 4:1 Invalid function name: isOwnr."),
    ("idd == 'a'", "warning 4:1 Invalid variable name: idd.; did you mean 'id'?"),
    ("'a'.matchs('a')", "warning 4:5 Invalid function name: matchs.; did you mean 'matches'?"),
    ("'a'.size(1)", "warning 4:5 Incorrect number of arguments supplied to function: size."),
    ("request.auht.uid == id", "lint 4:9 'request' has no member 'auht'.; did you mean 'auth'?"),
    ("resource.dat.x == 1", "lint 4:10 'resource' has no member 'dat'.; did you mean 'data'?"),
    ("id in ['a'] == true", ambiguousOrder),
  ])
  func conditionsGetDiagnostics(condition: String, expected: String) {
    #expect(Self.diagnostics(of: Self.rules(condition)) == [expected])
  }

  @Test(arguments: [
    ("function f(x) { let x = 2; return x; }", "error 2:21 The identifier [x] is already bound in the current scope."),
    ("function f(x, x) { return x; }", "error 2:15 Variable x is already defined."),
    ("function f() { return 1; } function f(x) { return x; }", "error 2:37 Function f is already defined."),
    (
      "function f() { return g(); } function g() { return f(); }",
      "error 2:10 Detected a call cycle between [f,g] functions."
    ),
    ("function f() { return f(); }", "error 2:10 Detected a call cycle between [f] functions."),
    (
      "function f(a, b, c, d, e, g, h, i) { return 1; }",
      "error 2:10 Maximum allowed function arguments of 7 for function f is reached."
    ),
    ("function f() { return 1 }", "warning 2:10 Unused function: f."),
    ("function f(a) { return 1; }", "warning 2:12 Unused variable: a."),
    ("match /b/{x}/{x} { allow get; }", "error 2:15 Variable x already exists in the PathTemplate."),
    ("match /b { allow get; }", collectionPath),
    ("match /b/{x} { allow write; }", anyCallerCanWrite),
    ("match /b/{x} { allow write: if 1 == 1; }", anyCallerCanWrite),
    ("match /b/{x} { allow write: if !false; }", anyCallerCanWrite),
    ("match /b/{x} { allow raed; }", "warning 2:22 Invalid method name: raed.; did you mean 'read'?"),
    (
      "match /{x=**} { match /c/{y=**} { allow get; } }",
      "error 2:27 Invalid glob match expression. Only one glob match is permitted in a match declaration path."
    ),
    ("match /b/{math} { allow get; }", "error 2:11 math is a package and cannot be used as variable name."),
    ("match /b/{x} { }", "error 2:7 The match block is empty.; add an allow statement or a match block"),
  ])
  func declarationsGetDiagnostics(declaration: String, expected: String) {
    let found = Self.diagnostics(of: Self.rules("true", functions: declaration))
    #expect(found.contains(expected), "\(found)")
  }

  @Test func warnsAboutVersion1() {
    let text = "service cloud.firestore { match /{x=**} { match /a/{y} { allow get; } } }"
    let found = Self.diagnostics(of: text)
    #expect(found.contains { $0.hasPrefix("warning 1:1 Ruleset uses old version") })
    #expect(found.contains { $0.contains("should not have child resource rules") })
    #expect(found.contains { $0.hasPrefix("lint 1:49 This block never matches") })
  }

  @Test func limitsTheCallDepth() {
    func chain(_ count: Int) -> String {
      (0..<count).map { "function f\($0)() { return \($0 + 1 < count ? "f\($0 + 1)()" : "true"); }" }
        .joined(separator: " ")
    }
    #expect(Self.diagnostics(of: Self.rules("f0()", functions: chain(21))).isEmpty)
    let found = Self.diagnostics(of: Self.rules("f0()", functions: chain(22)))
    #expect(found.contains { $0.contains("Maximum allowed call depth of 20") })
  }

  @Test(arguments: [
    "", "service", "service cloud.firestore {", "service cloud.firestore { }", "rules_version = '3';", "}",
    "rules_version = 2; service cloud.firestore { match /a/{b} { allow get; } }", "import 'x';",
    "service cloud.firestore { match /a/{b} { allow read if true; } }",
    "service cloud.firestore { match /a/{b} { allow read: true; } }",
    "service cloud.firestore { match /a/{b} { allow read;; } }",
    "service cloud.firestore { match /a/x{b} { allow read; } }",
    "service cloud.firestore { match a/{b} { allow read; } }",
    "service cloud.firestore { match /a/{b}/ { allow read; } }",
    "\u{FEFF}service cloud.firestore { match /a { allow get; } }",
    "service cloud.firestore { match /{x=**}/a/{y} { allow get; } }",
    "service a.b { match /a { allow get; } } service a.b { match /a { allow get; } }",
    "service cloud.firestore { function f() { let a = 1; return a; } match /a/{b} { allow get: if f() == 1; } }",
  ])
  func rejectsMalformedRulesets(text: String) {
    #expect(throws: RulesetError.self) { try Ruleset(compiling: text) }
  }

  @Test func showsTheLineAndACaret() throws {
    let rules = try Ruleset(
      compiling: Self.rules("\tidd == 'ä' || isOwnr(id)", functions: "function isOwner(x) { return x == 1; }"))
    let rendered = rules.diagnostics.filter { $0.severity == .warning && $0.line == 4 }.map { $0.rendered(file: "f") }
    #expect(
      rendered == [
        "f:4:2: warning: Invalid variable name: idd; did you mean 'id'?\n  | \tidd == 'ä' || isOwnr(id)\n  | \t^~~",
        "f:4:16: warning: Invalid function name: isOwnr; did you mean 'isOwner'?\n"
          + "  | \tidd == 'ä' || isOwnr(id)\n  | \t              ^~~~~~",
      ])
  }

  @Test func rejectsHugeRulesets() {
    let text = RulesFixture.rules("true") + String(repeating: " ", count: 256 << 10)
    #expect(throws: RulesetError.self) { try Ruleset(compiling: text) }
  }

  @Test func printsTheTreeAndTheProgram() throws {
    let rules = try Ruleset(
      compiling: Self.rules("f(id) && 1 + 2 * 3 in [7]", functions: "function f(x) { let y = x; return y == 'a'; }"))
    #expect(
      rules.printedTree == """
        version 2
        service cloud.firestore
          match /databases/{d}/documents
            function f(x)
              let y = x
              return (y == 'a')
            match /a/{id}
              allow get: (f(id) && ((1 + (2 * 3)) in [7]))
        """)
    #expect(rules.printedProgram.hasPrefix("match /databases/{d}/documents/a/{id}\n  allow get L3: %"))
  }
}
