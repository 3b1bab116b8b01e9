import DocumentModel
import RulesEngine
import Testing
import WireFormat

/// The limits of one decision (rules-language.md, sections 13 and 15).
@Suite struct BudgetTests {
  /// Returns `count` operands joined in a balanced tree.
  static func balanced(_ operand: String, _ count: Int) -> String {
    if count == 1 { return operand }
    let half = count / 2
    return "(\(balanced(operand, half)) && \(balanced(operand, count - half)))"
  }

  static func decide(_ condition: String, functions: String = "", id: String = "a") throws -> Decision {
    let rules = try Ruleset(compiling: RulesFixture.rules(condition, functions: functions))
    var request = RulesRequest(.get, RulesFixture.path("t/\(id)"), time: RulesFixture.time)
    request.resource = EncodedFields(MapValue([("n", .integer(1))]))
    return rules.decide(request)
  }

  @Test(arguments: [
    ("true", 334, ""), ("id == \"a\"", 200, ""), ("resource.data.n == 1", 143, ""),
    ("f()", 250, "function f() { return true; }"),
  ])
  func expressionsAreCounted(operand: String, most: Int, functions: String) throws {
    #expect(try Self.decide(Self.balanced(operand, most), functions: functions).isAllowed)
    let above = try Self.decide(Self.balanced(operand, most + 1), functions: functions)
    #expect(!above.isAllowed)
    #expect(above.outcomes[0].result.contains("maximum of 1000 expressions"))
  }

  @Test func operatorsCannotAbsorbAnEmptyBudget() throws {
    #expect(try !Self.decide("\(Self.balanced("true", 340)) || true").isAllowed)
  }

  @Test func statementsShareTheBudget() throws {
    let condition = Self.balanced("true", 200)
    let text = RulesFixture.rules("(\(condition)) && 1 == 2; allow get: if \(condition)")
    let decision = try Ruleset(compiling: text).decide(
      RulesRequest(.get, RulesFixture.path("t/a"), time: RulesFixture.time))
    #expect(!decision.isAllowed)
    #expect(decision.outcomes.map { $0.result.contains("maximum") } == [false, true])
  }

  @Test func lookupsAreCountedAndRepeatsAreFree() throws {
    func condition(_ count: Int, _ call: String = "exists") -> String {
      let calls = (0..<count).map { "!\(call)(/databases/$(database)/documents/o/d\($0))" }
      return (calls + calls).joined(separator: " && ")
    }
    for (count, isAllowed) in [(10, true), (11, false)] {
      let rules = try Ruleset(compiling: RulesFixture.rules(condition(count)))
      let documents = Documents()
      let lookups = DocumentLookups(documents)
      #expect(rules.decide(RulesFixture.request, lookups: lookups).isAllowed == isAllowed, "\(count)")
      #expect(documents.lookedUpPaths.count == 10)
    }
    // A lookup of the request's own document is free.
    let own = "!exists(/databases/$(database)/documents/t/x) || \(condition(10)))".dropLast()
    let rules = try Ruleset(compiling: RulesFixture.rules("(\(own)) "))
    #expect(rules.decide(RulesFixture.request, lookups: DocumentLookups(Documents(["t/x": MapValue()]))).isAllowed)
  }

  @Test func lookupsOfABatchHaveTheirOwnLimit() throws {
    let calls = (0..<8).map { "!exists(/databases/$(database)/documents/o/$(id + '\($0)'))" }.joined(separator: " && ")
    let rules = try Ruleset(compiling: RulesFixture.rules(calls))
    let lookups = DocumentLookups(Documents())
    let results = ["a", "b", "c"].map { id in
      rules.decide(RulesRequest(.get, RulesFixture.path("t/\(id)"), time: RulesFixture.time), lookups: lookups)
        .isAllowed
    }
    #expect(results == [true, true, false])
    #expect(lookups.paths.count == 20)
  }

  @Test(arguments: [
    ("get(/databases/$(database)/documents/o/a).data.n == 1", true),
    ("getAfter(/databases/$(database)/documents/o/a).data.n == 2", true),
    ("getAfter(/databases/$(database)/documents/o/gone) == null", true),
    ("get(/databases/$(database)/documents/o/none) == null", false),
    ("getAfter(/databases/$(database)/documents/o/none) == null", false),
    ("existsAfter(/databases/$(database)/documents/o/new) && !exists(/databases/$(database)/documents/o/new)", true),
    ("!existsAfter(/databases/$(database)/documents/o/gone)", true),
    ("exists('o/a')", false), ("exists(/databases/other/documents/o/a)", false),
    ("exists(/databases/$(database)/documents/o)", false), ("exists(/databases/$(database)/documents/o/$(''))", false),
    ("exists(/databases/$(database)/documents/$('o/a'))", false),
    ("!exists(/databases/$(database)/documents/o/$('a/b'))", true),
    ("get(/databases/$(database)/documents/o/a).id == 'a'", true),
  ])
  func lookupsReadTheStatesBeforeAndAfter(condition: String, isAllowed: Bool) throws {
    let documents = Documents(["o/a": MapValue([("n", .integer(1))]), "o/gone": MapValue()])
    documents.changes = ["o/a": MapValue([("n", .integer(2))]), "o/gone": nil, "o/new": MapValue()]
    let rules = try Ruleset(compiling: RulesFixture.rules(condition))
    let decision = rules.decide(RulesFixture.request, lookups: DocumentLookups(documents))
    #expect(decision.isAllowed == isAllowed, "\(decision.outcomes)")
  }

  @Test(arguments: [
    // Each call of `f` makes a string 256 times as long.
    "f(f(f('xxxxxxxxxxxxxxxx'))).size() > 0", "f(f(f(f('x')))).matches('(x+x+)+y')",
    "f(f(f('x'))).split('').toSet().size() > 0", "hashing.sha256(f(f(f('x')))).size() == 0",
  ])
  func workIsLimited(condition: String) throws {
    let functions = """
      function f(a) { let b = a + a; let c = b + b; let d = c + c; let e = d + d; let f = e + e; let g = f + f;
        let h = g + g; let i = h + h; return i; }
      """
    #expect(try !Self.decide(condition, functions: functions).isAllowed)
  }

  @Test func depthIsLimited() throws {
    func compiles(_ condition: String) -> Bool {
      (try? Ruleset(compiling: RulesFixture.rules(condition))) != nil
    }
    func nested(_ open: String, _ close: String, _ count: Int) -> String {
      String(repeating: open, count: count) + "true" + String(repeating: close, count: count)
    }
    #expect(compiles(nested("(", ")", 98)))
    #expect(!compiles(nested("(", ")", 99)))
    #expect(compiles(nested("!", "", 98)))
    #expect(!compiles(nested("!", "", 99)))
    #expect(compiles(nested("-(", ")", 98)))
    #expect(compiles(nested("(true && ", ")", 49)))
    #expect(!compiles(nested("(true && ", ")", 50)))
    #expect(compiles(Array(repeating: "true", count: 99).joined(separator: " && ")))
    #expect(!compiles(Array(repeating: "true", count: 100).joined(separator: " && ")))
    #expect(compiles(nested("f(", ")", 98)))
    #expect(!compiles(nested("f(", ")", 99)))
    #expect(compiles("a" + String(repeating: ".b", count: 250)))
    for text in ["(", "[", "{'a':", "!", "-(", "/a/$(", "a[", "true ? 1 : "] {
      #expect(!compiles(String(repeating: text, count: 20_000)))
    }
    #expect(!compiles("a" + String(repeating: ".b", count: 60_000)))
  }
}
