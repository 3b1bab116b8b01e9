import Foundation
import TestSupport
import Testing

/// The commands of README.md and of the pages in docs/, run as a reader would type them.
@Suite(.enabled(if: HearthBinary.isBuilt, "no hearth binary beside the tests"))
struct DocumentationTests {
  /// Pages that expect `make serve` to run in another terminal.
  private static let servedPages = ["docs/tutorial.md"]

  private static let pages =
    servedPages + ["README.md"]
    + ((try? FileManager.default.contentsOfDirectory(atPath: "\(GuidePage.root)/docs"))?
    .filter { $0.hasSuffix(".md") }.sorted().map { "docs/\($0)" } ?? []).filter { path in
      !servedPages.contains(path) && (try? GuidePage(path: path).blocks.isEmpty) == false
    }

  @Test func pagesHaveCommands() throws {
    #expect(Self.pages.count >= 9, "docs/ has lost its commands, or marks them otherwise: \(Self.pages)")
    #expect(try GuidePage(path: "docs/tutorial.md").blocks.count >= 10)
  }

  @Test(.timeLimit(.minutes(10)), arguments: pages)
  func commandsPrintWhatThePageShows(path: String) async throws {
    let page = try GuidePage(path: path)
    let run = try await onDedicatedThread {
      guard Self.servedPages.contains(path) else { return try GuideRun(page) }
      // The server that `make serve` starts.
      let server = try HearthProcess(
        arguments: ["--emulator", "--project", "demo", "--import", "\(GuidePage.root)/fixtures/well-meing.json"])
      defer { server.process.stop() }
      return try GuideRun(page, server: server)
    }
    for problem in run.problems { Issue.record("\(problem)") }
  }
}
