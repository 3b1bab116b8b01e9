import Testing

/// Rules for tests that the compiler does not check; see docs/internals/testing.md.
@Suite struct TestRulesTests {
  /// Every file of a test, and of the helpers of tests.
  private static let files = Repository.tests + Repository.sources.filter { $0.target == "TestSupport" }

  private static func places(except path: String, where matches: (Substring) -> Bool) -> String {
    files.filter { $0.path != path }.flatMap { $0.places(where: matches) }.joined(separator: "\n")
  }

  @Test func testsDoNotSleep() {
    let places = Self.places(except: "Sources/Tools/TestSupport/OtherProcess.swift") {
      $0.contains(/\b(usleep|nanosleep|sleep)\(|\bTask\.sleep\b/)
    }
    #expect(places.isEmpty, "wait for an event, or use OtherProcess.eventually: \(places)")
  }

  @Test func everySkippedTestNamesItsRequirement() {
    let places = Self.places(except: "Sources/Tools/TestSupport/Requirement.swift") {
      $0.contains(/\.(enabled|disabled)\(|\bwithKnownIssue\b|\bTest\.cancel\b/)
    }
    #expect(places.isEmpty, "use .needs(…) with a requirement of TestSupport: \(places)")
  }

  /// A sentence has at least a subject and a verb.
  @Test func namesOfTestsAreSentences() {
    for file in Repository.tests {
      let code = file.code.joined(separator: "\n")
      for part in code.split(separator: "@Test").dropFirst() {
        guard let name = part.firstMatch(of: /\bfunc (\w+)/)?.output.1 else { continue }
        #expect(name.contains(/[a-z0-9][A-Z]/), "\(file.path): the name of \(name) is not a sentence")
      }
    }
  }
}
