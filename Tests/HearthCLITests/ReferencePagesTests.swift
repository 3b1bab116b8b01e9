import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The generated pages of docs/reference match the code. `make reference` rewrites them.
@Suite struct ReferencePagesTests {
  @Test(arguments: ["cli", "configuration"])
  func pageMatchesTheCode(name: String) throws {
    let text = name == "cli" ? HelpMarkdown.commandLinePage : HelpMarkdown.configurationPage
    let path = "\(GuidePage.root)/docs/reference/\(name).md"
    if ProcessInfo.processInfo.environment["REFERENCE_PAGES"] == "write",
      ProcessInfo.processInfo.environment["CI"] == nil
    {
      try text.write(toFile: path, atomically: true, encoding: .utf8)
    }
    let page = try String(contentsOfFile: path, encoding: .utf8)
    #expect(page == text, "docs/reference/\(name).md is stale; `make reference` rewrites it")
  }

  @Test func everyVerbAndOptionHasHelpAndIsOnThePage() {
    let (commands, configuration) = (HelpMarkdown.commandLinePage, HelpMarkdown.configurationPage)
    for option in Command.serve.options { #expect(configuration.contains("`--\(option.name)"), "--\(option.name)") }
    for command in Command.all where !command.isHidden {
      #expect(commands.contains("\n## hearth \(command.name)\n"), "cli.md lacks hearth \(command.name)")
      #expect(!command.summary.isEmpty, "hearth \(command.name) has no summary")
      for option in command.options {
        #expect(!option.help.isEmpty, "--\(option.name) of hearth \(command.name) has no help")
      }
    }
  }
}
