import Foundation
import Testing
import TestSupport

/// `hearth operators` and the console of a server, run as commands.
@Suite(.needs(.hearth)) struct OperatorVerbTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func operators(_ words: String...) throws -> String {
    let run = try HearthBinary.run(["operators"] + words + ["--data", directory.file("d")])
    #expect(run.exit == .code(0), "\(words): \(run.output)")
    return run.output
  }

  @Test func messagesNameTheProject() throws {
    // A new directory has no project yet.
    #expect(
      try operators("add", "ann", "--role", "owner", "--generate")
        .contains("added the operator ann of project demo, with the role owner"))
    #expect(try operators("set", "ann", "--role", "editor").contains("changed the operator ann of project demo"))
    let server = try HearthProcess(arguments: ["--data", directory.file("d"), "--project", "demo"])
    defer { server.process.stop() }
    #expect(try operators("add", "bob", "--generate").contains("added the operator bob of project demo"))
    #expect(try operators("set", "bob", "--role", "owner").contains("changed the operator bob of project demo"))
    #expect(try operators("remove", "bob").contains("removed the operator bob of project demo"))
  }

  @Test func aConsoleWithoutItsOperatorsIsAWarning() throws {
    let warning = "project shop has no operator, so nobody can sign in to the console; those of demo cannot"
    func output(_ project: String) throws -> String {
      let server = try HearthProcess(
        arguments: ["--data", directory.file("d"), "--project", project, "--console-address", "127.0.0.1:0"])
      server.process.stop()
      return server.process.output
    }
    #expect(try !output("shop").contains("has no operator"))
    _ = try operators("add", "ann", "--generate", "--project", "demo")
    #expect(try !output("demo").contains("has no operator"))
    let missing = try output("shop")
    #expect(missing.contains(warning), "\(missing)")
    #expect(missing.contains("hearth operators add NAME --role owner --project shop --data"), "\(missing)")
    _ = try operators("add", "ann", "--generate", "--project", "shop")
    #expect(try !output("shop").contains("has no operator"))
  }

  @Test func aServerThatCannotListenAnnouncesNoConsole() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory"])
    defer { server.process.stop() }
    let failed = try HearthBinary.run([
      "serve", "--data", directory.file("d"), "--project", "demo", "--port", "\(server.port)", "--console-address",
      "127.0.0.1:0",
    ])
    #expect(failed.exit == .code(1) && !failed.output.contains("console"), "\(failed.output)")
  }

  @Test func anErrorOfADataDirectoryNamesTheDirectory() throws {
    _ = try operators("add", "ann", "--generate")
    let failed = try HearthBinary.run(
      ["get", "notes", "--data", directory.file("d"), "--project", "demo", "--database", "other"])
    #expect(
      failed.exit == .code(1) && failed.output.contains("the data directory \(directory.file("d"))")
        && !failed.output.contains("127.0.0.1"), "\(failed.output)")
  }

  @Test func aTokenHasNoClaimsOfTheServer() throws {
    let refused = try HearthBinary.run(["token", "ann", "--claims", #"{"role": "x", "sub": "bob"}"#])
    #expect(refused.exit == .code(64) && refused.output.contains(#"must not contain "sub""#), "\(refused.output)")
  }
}
