package import RulesEngine

/// Tries small changes to the rules, and finds those that no case detects.
package struct MutationTest: Sendable {
  /// The path of the rules.
  package let file: String
  /// The number of changes that were tried.
  package private(set) var count = 0
  /// The changes that no case detected, in the order of the text.
  package private(set) var survivors: [Mutation] = []
  /// Whether every change was tried.
  package private(set) var isComplete = true

  /// Tries every change of a ruleset with the cases of all suites that use it. Ignores cases that fail without a
  /// change. Cost: for each change, compiles the rules and runs cases until one detects the change. Asks before each
  /// change whether to stop.
  package init(_ ruleset: Ruleset, file: String, _ runs: [SuiteRun], stopIf mustStop: () -> Bool = { false }) {
    self.file = file
    let runner = TestCaseRunner()
    for mutation in ruleset.mutations {
      if mustStop() {
        isComplete = false
        break
      }
      count += 1
      let changed = ruleset.applying(mutation)
      let isDetected = runs.contains { run in
        run.results.contains { result in
          guard result.isPassed else { return false }
          let verdict = runner.run(
            result.test, by: changed, over: run.suite.documents,
            explaining: result.test.expectedLine == nil ? .none : .outcomes)
          return !verdict.satisfies(result.test)
        }
      }
      if !isDetected { survivors.append(mutation) }
    }
  }
}
