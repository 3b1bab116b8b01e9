import Foundation
import TestSupport
import Testing

/// The commands of README.md, run as a reader would type them.
@Suite(.enabled(if: HearthBinary.isBuilt, "no hearth binary beside the tests"))
struct ReadmeTests {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// A block of commands behind a `<!-- run -->` mark, with the output that stands behind it, if any does.
  struct Step {
    var line: Int
    var commands: String
    var output: String?
  }

  @Test func commandsPrintWhatTheReadmeShows() async throws {
    let steps = try Self.steps()
    #expect(steps.count > 10, "README.md has lost its commands, or marks them otherwise")
    let folder = NSTemporaryDirectory() + "readme-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let files = FileManager.default
    try files.createSymbolicLink(atPath: folder + "/fixtures", withDestinationPath: Self.root + "/fixtures")
    try files.createSymbolicLink(atPath: folder + "/bin/hearth", withDestinationPath: try #require(HearthBinary.path))

    let printed = try await onDedicatedThread { try Self.run(steps, in: folder) }
    // One part stands before the first mark: what the shell itself said.
    try #require(printed.count == steps.count + 1, "the shell stopped early:\n\(printed.last ?? "")")
    #expect(printed[0].isEmpty)
    for (step, text) in zip(steps, printed.dropFirst()) {
      guard let expected = step.output else { continue }
      #expect(Self.normalized(text) == Self.normalized(expected), "README.md:\(step.line): \(step.commands)")
    }
  }

  /// Runs all steps in one shell beside a server with the sample tree; returns what came before each mark.
  private static func run(_ steps: [Step], in folder: String) throws -> [String] {
    let server = try HearthProcess(
      arguments: ["--emulator", "--project", "demo", "--import", "\(root)/fixtures/well-meing.json"])
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    var script = """
      cd '\(folder)'
      export PATH="$PWD/bin:$PATH" HEARTH_SERVER='\(url)'
      unset HEARTH_PROJECT GOOGLE_CLOUD_PROJECT

      """
    for step in steps {
      script += "printf '\\036'\n" + step.commands.replacingOccurrences(of: "http://127.0.0.1:8080", with: url) + "\n"
    }
    let shell = try ServerProcess(executable: "/bin/bash", arguments: ["-c", script])
    guard shell.waitForExit(timeoutSeconds: 60) != nil else {
      shell.stop()
      throw ServerProcessError(description: "the commands of README.md do not end:\n\(shell.output)")
    }
    return shell.output.components(separatedBy: "\u{1E}")
  }

  private static func steps() throws -> [Step] {
    let lines = try String(contentsOfFile: root + "/README.md", encoding: .utf8).components(separatedBy: "\n")
    return lines.indices.filter { lines[$0] == "<!-- run -->" }.map { mark in
      let (commands, next) = block(lines, at: mark + 1)
      let hasOutput = next < lines.count && lines[next].hasPrefix("```")
      return Step(line: mark + 1, commands: commands, output: hasOutput ? block(lines, at: next).text : nil)
    }
  }

  /// The text between two fences, and the line behind them.
  private static func block(_ lines: [String], at start: Int) -> (text: String, next: Int) {
    let inside = lines[(start + 1)...].prefix { !$0.hasPrefix("```") }
    return (inside.joined(separator: "\n"), start + inside.count + 2)
  }

  /// Times of the server and page tokens differ from run to run; times that commands write have no fraction. How many
  /// index entries there are is the store's business.
  private static func normalized(_ text: String) -> String {
    text.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/, with: "TIME")
      .replacing(/"nextPageToken": "[^"]+"/, with: "\"nextPageToken\": TOKEN")
      .replacing(/"resumeToken":"[^"]+"/, with: "\"resumeToken\":TOKEN")
      .replacing(/id: [A-Za-z0-9+\/=]{12,}/, with: "id: TOKEN")
      .replacing(/\(\d+\.\d ms\)/, with: "(N ms)")
      .replacing(/\d+ index entries/, with: "N index entries")
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
