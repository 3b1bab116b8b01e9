import Foundation
import HearthServer
import Testing

/// The example of README.md's "In your own tests" is the code below, and runs.
@Suite struct ReadmeExampleTests {
  @Test func theExampleRuns() async throws {
    // README begins.
    let base = try TestServer(
      project: "demo", rules: .file("rules/journeys.rules"), fixtures: [.file("fixtures/journeys.json")])

    let db = try base.fork()
    let reply = try await db.respond(
      to: .init("GET", "/v1/projects/demo/databases/(default)/documents/journeys/first-steps"), as: .user("ann"))
    #expect(reply.status == 200)
    #expect(try await reply.text().contains("First steps"))
    try db.reset()
    // README ends.
  }

  @Test func theReadmeShowsTheExample() throws {
    let file = URL(filePath: #filePath)
    let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let source = try String(contentsOf: file, encoding: .utf8)
    let code = Self.lines(source, from: "    // README begins.", to: "    // README ends.")
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let section = readme.split(separator: "## In your own tests").last.map(String.init) ?? ""
    let shown = Self.lines(section, from: "```swift", to: "```").filter { !$0.hasPrefix("import ") }
    #expect(shown.drop { $0.isEmpty } == code[...], "README.md, In your own tests, is not what is tested")
  }

  private static func lines(_ text: String, from start: String, to end: String) -> [String] {
    text.components(separatedBy: "\n").drop { $0 != start }.dropFirst().prefix { $0 != end }
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
