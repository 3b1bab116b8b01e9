package import RulesEngine

/// Whether the cases notice small changes to the rules.
package struct MutationTest: Sendable {
  /// The path of the rules.
  package let file: String
  /// How many changes were tried.
  package private(set) var count = 0
  /// The changes that no case noticed, in the order of the text.
  package private(set) var survivors: [Mutation] = []

  /// Tries every change of a ruleset against the cases of all suites that use it. Cases that fail as it is count for
  /// nothing. Cost: for each change, compiling the rules and running cases until one notices.
  package init(_ ruleset: Ruleset, file: String, _ runs: [SuiteRun]) {
    self.file = file
    let runner = TestCaseRunner()
    for mutation in ruleset.mutations {
      count += 1
      let changed = ruleset.applying(mutation)
      let isNoticed = runs.contains { run in
        run.results.contains { result in
          guard result.isPassed else { return false }
          let verdict = runner.run(
            result.test, by: changed, over: run.suite.documents,
            explaining: result.test.expectedLine == nil ? .none : .outcomes)
          return !verdict.satisfies(result.test)
        }
      }
      if !isNoticed { survivors.append(mutation) }
    }
  }
}
