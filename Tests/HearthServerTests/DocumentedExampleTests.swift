import Foundation
import HearthServer
import Testing

/// Runs the example of docs/testing.md, "In your own tests", and checks that the page contains exactly this code.
@Suite struct DocumentedExampleTests {
  @Test func exampleRuns() async throws {
    // The example begins.
    let base = try TestServer(
      project: "demo", rules: .file("rules/journeys.rules"), fixtures: [.file("fixtures/journeys.json")])

    let db = try base.fork()
    let response = try await db.respond(
      to: .init("GET", "/v1/projects/demo/databases/(default)/documents/journeys/first-steps"), as: .user("ann"))
    #expect(response.status == 200)
    #expect(try await response.text().contains("First steps"))
    try db.reset()
    // The example ends.
  }

  @Test func pageShowsTheExample() throws {
    let file = URL(filePath: #filePath)
    let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let source = try String(contentsOf: file, encoding: .utf8)
    let code = Self.lines(source, from: "    // The example begins.", to: "    // The example ends.")
    let page = try String(contentsOf: root.appending(path: "docs/testing.md"), encoding: .utf8)
    let section = page.split(separator: "## In your own tests").last.map(String.init) ?? ""
    let shown = Self.lines(section, from: "```swift", to: "```").filter { !$0.hasPrefix("import ") }
    #expect(shown.drop { $0.isEmpty } == code[...], "docs/testing.md, In your own tests, differs from the tested code")
  }

  private static func lines(_ text: String, from start: String, to end: String) -> [String] {
    text.components(separatedBy: "\n").drop { $0 != start }.dropFirst().prefix { $0 != end }
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
