import Foundation
import TestSupport
import Testing

@testable import HearthCLI

/// README.md leaves no verb and no option out.
@Suite struct ReadmeTablesTests {
  private static let rows: [Substring] = {
    let readme = try? String(contentsOfFile: "\(GuidePage.root)/README.md", encoding: .utf8)
    return (readme ?? "").split(separator: "\n").filter { $0.hasPrefix("| `") }
  }()

  @Test func everyVerbIsNamed() {
    for command in Command.all where !command.isHidden {
      let words = command.name.split(separator: " ")
      let isNamed = Self.rows.contains { row in
        guard row.contains("`hearth \(words[0])") else { return false }
        return words.count == 1 || row.contains("`hearth \(command.name)") || row.contains("`\(words[1])`")
      }
      #expect(isNamed, "README.md, \"The command line\", does not name hearth \(command.name)")
    }
  }

  @Test func everyOptionOfServeIsNamed() {
    for option in Command.serve.options {
      let isNamed = Self.rows.contains { $0.contains("`--\(option.name) ") || $0.contains("`--\(option.name)`") }
      #expect(isNamed, "README.md, \"Configuration\", does not name --\(option.name)")
    }
  }
}
