import Foundation
import Testing
import TestSupport

/// The guides, each from an empty folder to a working backend: every command runs as a reader would type it.
@Suite(.needs(.hearth))
struct GuideTests {
  private static let paths =
    (try? FileManager.default.contentsOfDirectory(atPath: "\(GuidePage.root)/docs/guides"))?
    .filter { $0.hasSuffix(".md") }.sorted().map { "docs/guides/\($0)" } ?? []

  @Test func guidesExist() {
    #expect(!Self.paths.isEmpty, "docs/guides/ is empty or not where it was")
  }

  @Test(.timeLimit(.minutes(10)), arguments: paths)
  func commandsPrintWhatTheGuideShows(path: String) async throws {
    let page = try GuidePage(path: path)
    #expect(page.unmarkedLines.isEmpty, "\(path): nothing runs the commands at lines \(page.unmarkedLines)")
    #expect(page.blocks.contains { $0.kind == .serve }, "\(path) does not start a server")
    let run = try await onDedicatedThread { try GuideRun(page) }
    for problem in run.problems { Issue.record("\(problem)") }
    // If the Python clients are installed, every program runs. Otherwise the test below is shown as skipped.
    #expect(run.skippedCount == 0 || PythonClients.interpreter == nil, "\(path): a program was skipped")
  }

  /// The test above runs the programs if it can. This test is shown as skipped if it cannot.
  @Test(.needs(.pythonClients), arguments: paths)
  func guideHasAProgramInPython(path: String) throws {
    #expect(try GuidePage(path: path).blocks.contains { $0.kind == .python }, "\(path) has no program in Python")
  }
}
