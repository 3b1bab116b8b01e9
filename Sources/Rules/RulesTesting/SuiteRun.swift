import DocumentModel
package import RulesEngine

/// A suite and the results of its cases.
package struct SuiteRun: Sendable {
  /// A case and its result.
  package struct Result: Sendable {
    package var test: RuleTest
    package var verdict: Verdict

    /// Whether the rules decided as the case expects.
    package var isPassed: Bool { verdict.satisfies(test) }
  }

  package var suite: RuleTestSuite
  /// The rules of the suite.
  package var ruleset: Ruleset
  /// The results, in the order of the file.
  package var results: [Result] = []
  /// The number of cases that the filter skipped.
  package var skippedCount = 0

  /// The number of cases that passed.
  package var passedCount: Int { results.count { $0.isPassed } }
  /// The results of the cases that failed.
  package var failures: [Result] { results.filter { !$0.isPassed } }

  /// Runs the cases whose names contain `filter`, or all cases. Adds their decisions to `coverage`. Failed cases
  /// have traces. Cost: some microseconds per case, about ten times as much with coverage.
  package init(_ suite: RuleTestSuite, by ruleset: Ruleset, filter: String? = nil, coverage: inout Coverage?) {
    self.suite = suite
    self.ruleset = ruleset
    let runner = TestCaseRunner()
    let explaining: Decision.Explanation = coverage == nil ? .outcomes : .trace
    for test in suite.tests {
      if let filter, !test.name.contains(filter) {
        skippedCount += 1
        continue
      }
      var verdict = runner.run(test, by: ruleset, over: suite.documents, explaining: explaining)
      for part in verdict.parts { coverage?.add(part.decision) }
      if !verdict.satisfies(test), coverage == nil {
        verdict = runner.run(test, by: ruleset, over: suite.documents, explaining: .trace)
      }
      results.append(Result(test: test, verdict: verdict))
    }
  }
}
