import Foundation
import TestSupport
import Testing

@testable import HearthCLI

/// The generated pages of docs/reference match the code. `make reference` rewrites them.
@Suite struct ReferencePagesTests {
  @Test(arguments: ["cli", "configuration"])
  func pageMatchesTheCode(name: String) throws {
    let text = name == "cli" ? HelpMarkdown.commandLinePage : HelpMarkdown.configurationPage
    let path = "\(GuidePage.root)/docs/reference/\(name).md"
    if ProcessInfo.processInfo.environment["REFERENCE_PAGES"] == "write" {
      try text.write(toFile: path, atomically: true, encoding: .utf8)
    }
    let page = try String(contentsOfFile: path, encoding: .utf8)
    #expect(page == text, "docs/reference/\(name).md is stale; `make reference` rewrites it")
  }

  @Test func everyVerbAndOptionHasHelp() {
    for command in Command.all where !command.isHidden {
      #expect(!command.summary.isEmpty, "hearth \(command.name) has no summary")
      for option in command.options {
        #expect(!option.help.isEmpty, "--\(option.name) of hearth \(command.name) has no help")
      }
    }
  }
}
