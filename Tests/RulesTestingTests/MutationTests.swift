import RulesEngine
import RulesTesting
import Testing

/// Changes to the toy rules, and the cases that detect them.
@Suite struct MutationTests {
  private static let changes = [
    "5: `owns(resource.data)` always true",
    "6: `owns(request.resource.data) && (request.resource.data.size < 10)` always true",
    "6: without `&& request.resource.data.size < 10`",
    "6: without `owns(request.resource.data) &&`",
    "6: `request.resource.data.size < 10` replaced by `request.resource.data.size >= 10`",
  ]

  @Test func eachConditionIsWeakened() throws {
    let all = try Ruleset(compiling: Toy.rules).mutations.map { "\($0.line): \($0.change)" }
    #expect(Array(all.filter { $0.hasPrefix("5:") || $0.hasPrefix("6:") }) == Self.changes)
    #expect(all.contains("9: `false` always true"))
    #expect(all.contains("16: `data.owner == request.auth.uid` replaced by `data.owner != request.auth.uid`"))
  }

  @Test(arguments: [
    ("!a", "`!a` replaced by `a`"), ("a in b", "`a in b` replaced by `!(a in b)`"),
    ("a is int", "`a is int` replaced by `!(a is int)`"), ("a ? b : c", "`a ? b : c` replaced by `c`"),
    ("a || b", "without `a ||`"), ("a <= b", "`a <= b` replaced by `a > b`"),
  ])
  func eachOperatorHasAMutation(condition: String, change: String) throws {
    let rules = "service cloud.firestore { match /a/{b} { allow get: if \(condition); } }"
    #expect(try Ruleset(compiling: rules).mutations.map(\.change).contains(change))
  }

  @Test func undetectedChangesSurvive() throws {
    let run = try Toy.run(
      """
      {"it": "a", "as": "ann", "create": "rooms/r2", "data": {"owner": "ann", "size": 9}, "expect": "allow"},
      {"it": "b", "as": "ann", "create": "rooms/r2", "data": {"owner": "ann", "size": 10}, "expect": "deny"}
      """
    ).run
    let test = MutationTest(run.ruleset, file: "toy.rules", [run])
    let survivors = test.survivors.filter { $0.line == 6 }.map { "\($0.line): \($0.change)" }
    #expect(survivors == ["6: without `owns(request.resource.data) &&`"])
    #expect(test.count == run.ruleset.mutations.count)
    #expect(test.survivors.contains { $0.line == 5 })
  }

  @Test func pipelinesDetectChanges() throws {
    let allowed =
      #"{"it": "a", "as": "ann", "pipeline": "collection(/rooms) where(owner == 'ann') limit(3)", "expect": "allow"}"#
    func survivors(_ cases: String) throws -> [String] {
      let run = try Toy.run(cases).run
      #expect(run.failures.isEmpty)
      return MutationTest(run.ruleset, file: "toy.rules", [run]).survivors.filter { [5, 16].contains($0.line) }
        .map { "\($0.line): \($0.change)" }
    }
    #expect(try survivors(allowed).contains("5: `owns(resource.data)` always true"))
    let denied = #"{"it": "b", "as": "ann", "pipeline": "collection(/rooms) limit(3)", "expect": "deny"}"#
    #expect(try survivors(allowed + ",\n" + denied).isEmpty)
  }
}
