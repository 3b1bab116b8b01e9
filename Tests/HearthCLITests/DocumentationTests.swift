import Foundation
import Testing
import TestSupport

/// The commands of README.md and of the pages in docs/, run as a reader would type them.
@Suite(.needs(.hearth))
struct DocumentationTests {
  /// Pages that expect `make serve` to run in another terminal.
  private static let servedPages = ["docs/tutorial.md"]

  /// README.md and every page below docs/ that has marked blocks, except the guides, which ``GuideTests`` runs.
  private static let pages: [String] = {
    let below = FileManager.default.enumerator(atPath: "\(GuidePage.root)/docs")?.compactMap { $0 as? String } ?? []
    let paths = below.filter { $0.hasSuffix(".md") && !$0.hasPrefix("guides/") }.sorted().map { "docs/\($0)" }
    return (["README.md"] + paths).filter { (try? GuidePage(path: $0).blocks.isEmpty) == false }
  }()

  @Test func pagesHaveCommands() throws {
    #expect(Self.pages.count >= 13, "a page has lost its commands, or marks them otherwise: \(Self.pages)")
    #expect(try GuidePage(path: "docs/tutorial.md").blocks.count >= 10)
  }

  @Test(.timeLimit(.minutes(10)), arguments: pages)
  func commandsPrintWhatThePageShows(path: String) async throws {
    let page = try GuidePage(path: path)
    let run = try await onDedicatedThread {
      guard Self.servedPages.contains(path) else { return try GuideRun(page) }
      // The server that `make serve` starts.
      let server = try HearthProcess(
        arguments: ["--emulator", "--project", "demo", "--import", "\(GuidePage.root)/fixtures/shop.json"])
      defer { server.process.stop() }
      return try GuideRun(page, server: server)
    }
    for problem in run.problems { Issue.record("\(problem)") }
  }
}
