import Foundation
import RulesEngine
import Testing

/// The rulesets in `rules/`.
@Suite struct RepositoryRulesTests {
  static let files =
    (try? FileManager.default.contentsOfDirectory(atPath: "\(RulesFixture.root)/rules"))?
    .filter { $0.hasSuffix(".rules") }.sorted() ?? []

  @Test func theRepositoryHasRulesets() {
    #expect(!Self.files.isEmpty)
  }

  @Test(arguments: files)
  func compilesWithoutDiagnostics(file: String) throws {
    let contents = try #require(FileManager.default.contents(atPath: "\(RulesFixture.root)/rules/\(file)"))
    let rules = try Ruleset(compiling: String(decoding: contents, as: UTF8.self))
    #expect(rules.diagnostics.isEmpty, "\(rules.diagnostics.map { $0.rendered(file: file) }.joined(separator: "\n"))")
  }
}
