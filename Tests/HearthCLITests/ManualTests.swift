import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The manual pages.
@Suite(.needs(.hearth)) struct ManualTests {
  @Test func helpWritesAPageForEachVerb() throws {
    let directory = try TemporaryDirectory()
    #expect(try HearthBinary.run(["help", "--man", directory.path]).exit == .code(0))
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    let verbs = Command.all.filter { !$0.isHidden }.map { "hearth-\($0.name.replacing(" ", with: "-")).1" }
    #expect(names == (["hearth.1"] + verbs).sorted())
    let page = try directory.text("hearth-rules-check.1")
    #expect(page.contains(".SH NAME\nhearth\\-rules\\-check \\- compiles security rules"), "\(page)")
    #expect(page.contains("\\fB\\-\\-strict\\fR\n"), "\(page)")
    let unnamed = try HearthBinary.run(["help", "--man"])
    #expect(unnamed.exit == .code(64) && unnamed.output.contains("name it: hearth help --man DIR"), "\(unnamed.output)")
    let missing = try HearthBinary.run(["help", "--man", directory.file("none")])
    #expect(missing.exit == .code(1) && missing.output.contains("No such file or directory"), "\(missing.output)")
  }

  @Test(.needs(.tool(.man)), arguments: HelpManual.pages.map(\.name))
  func manShowsThePage(name: String) throws {
    let page = try #require(HelpManual.pages.first { $0.name == name })
    let directory = try TemporaryDirectory()
    let run = try Tool.man.run([
      "--warnings=all", "-E", "UTF-8", "--nh", "--nj", "-P", "cat", "-l", try directory.write(name, page.text),
    ])
    #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
    #expect(run.output.contains("NAME") && run.output.contains("DESCRIPTION"), "\(run.output)")
    // No macro and no escape sequence remains.
    #expect(!run.output.contains("\\f") && !run.output.contains("\n.TP"), "\(run.output)")
  }

  @Test(.needs(.tool(.mandoc)), arguments: HelpManual.pages.map(\.name))
  func mandocAcceptsThePage(name: String) throws {
    let page = try #require(HelpManual.pages.first { $0.name == name })
    let directory = try TemporaryDirectory()
    let run = try Tool.mandoc.run(["-T", "lint", "-W", "error", try directory.write(name, page.text)])
    #expect(run.status == 0, "\(run.output)")
  }
}
