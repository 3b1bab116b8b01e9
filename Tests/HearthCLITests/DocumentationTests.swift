import TestSupport
import Testing

/// The commands of README.md, run as a reader would type them.
@Suite(.enabled(if: HearthBinary.isBuilt, "no hearth binary beside the tests"))
struct ReadmeTests {
  @Test func commandsPrintWhatTheReadmeShows() async throws {
    let page = try GuidePage(path: "README.md")
    #expect(page.blocks.count > 10, "README.md has lost its commands, or marks them otherwise")
    let run = try await onDedicatedThread {
      // What `make serve` starts.
      let server = try HearthProcess(
        arguments: ["--emulator", "--project", "demo", "--import", "\(GuidePage.root)/fixtures/well-meing.json"])
      defer { server.process.stop() }
      return try GuideRun(page, server: server, mayFail: true)
    }
    for problem in run.problems { Issue.record("\(problem)") }
  }
}
