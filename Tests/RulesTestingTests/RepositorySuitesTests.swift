import DocumentModel
import Foundation
import RulesEngine
import RulesTesting
import Testing

/// The suites in `rules/`. The official emulator gives the same results for those of documents.
@Suite struct RepositorySuitesTests {
  static let folder =
    URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/rules"

  static let files =
    (try? FileManager.default.contentsOfDirectory(atPath: folder))?.filter { $0.hasSuffix(".tests.json") }.sorted()
    ?? []

  @Test func theRepositoryHasSuites() {
    #expect(Self.files.count >= 7)
  }

  @Test(arguments: files)
  func everyCasePasses(file: String) throws {
    let suite = try SuiteReader(now: Timestamp(uncheckedMicroseconds: 0)).read(file: "\(Self.folder)/\(file)")
    let ruleset = try Ruleset(compiling: suite.rules, service: suite.service)
    var coverage: Coverage? = Coverage(file: suite.rulesFile, ruleset)
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    #expect(run.results.count > 30)
    for failure in run.failures {
      Issue.record("\(failure.test.name)\n\(run.explanation(of: failure).joined(separator: "\n"))")
    }
    #expect(coverage?.lines.contains { $0.hits > 0 } == true)
  }
}
