import DocumentModel
package import RulesEngine

/// A suite with what the rules said to its cases.
package struct SuiteRun: Sendable {
  /// One case with its verdict.
  package struct Result: Sendable {
    /// The case.
    package var test: RuleTest
    /// What the rules said.
    package var verdict: Verdict

    /// Whether they said what the case expects.
    package var isPassed: Bool { verdict.satisfies(test) }
  }

  /// The suite.
  package var suite: RuleTestSuite
  /// Its rules.
  package var ruleset: Ruleset
  /// In the order of the file.
  package var results: [Result] = []
  /// How many cases the filter left out.
  package var skippedCount = 0

  /// How many cases were judged as expected.
  package var passedCount: Int { results.count { $0.isPassed } }
  /// The cases that were not.
  package var failures: [Result] { results.filter { !$0.isPassed } }

  /// Runs the cases whose names contain `filter`, or all; notes in `coverage` what was evaluated. Failed cases carry
  /// traces. Cost: some microseconds a case, about ten times that with coverage.
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
