import Foundation
import Testing
import TestSupport

/// A server with security rules, run as a command.
@Suite(.needs(.hearth)) struct RulesServingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static func rules(_ condition: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents/notes/{id} {
        allow get: if \(condition);
      }
    }
    """
  }

  private func status(_ server: HearthProcess) throws -> Int {
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    return try client.send("GET", "/v1/projects/demo/databases/(default)/documents/notes/n", headers: [], body: [])
      .status
  }

  @Test func rulesAreReloadedWhenTheirFileChanges() throws {
    let file = try directory.write("firestore.rules", Self.rules("true"))
    let server = try HearthProcess(arguments: ["--emulator", "--quiet", "--project", "demo", "--rules", file])
    defer { server.process.stop() }
    #expect(try status(server) == 404)
    // The server checks the file every second. It reports the error even with --quiet.
    _ = try directory.write("firestore.rules", Self.rules("fals e"))
    _ = try server.process.waitForLine(prefix: "WARNING: \(file) is NOT in force", timeoutSeconds: 30)
    #expect(server.process.output.contains("\(file):4:"), "\(server.process.output)")
    #expect(try status(server) == 404)
    server.process.send(signal: SIGHUP)
    _ = try directory.write("firestore.rules", Self.rules("false"))
    var last = 0
    for _ in 0..<200_000 where last != 403 { last = try status(server) }
    #expect(last == 403)
    // The verbs have administrator rights on a server in emulator mode.
    let set = try HearthBinary.run(
      ["set", "notes/n", "{}", "--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
    #expect(set.exit == .code(0), "\(set.output)")
    server.process.send(signal: SIGTERM)
    #expect(server.process.waitForExit(timeoutSeconds: 20) == .code(0))
  }

  @Test func rulesAreReloadedOnSIGHUP() throws {
    let file = try directory.write("firestore.rules", Self.rules("true"))
    let server = try HearthProcess(arguments: ["--emulator", "--project", "demo", "--rules", "other=" + file])
    defer { server.process.stop() }
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "hearth: \(file): the rules were reloaded", timeoutSeconds: 30)
    // These are the rules of another database.
    #expect(try status(server) == 404)
  }

  @Test func rulesThatDoNotCompileEndTheStart() throws {
    let file = try directory.write("firestore.rules", Self.rules("request.auth.uid ="))
    let serve = try HearthBinary.run(["serve", "--emulator", "--port", "0", "--rules", file])
    #expect(serve.exit == .code(65))
    #expect(serve.output.contains("\(file):4:") && serve.output.contains("^"), "\(serve.output)")
    #expect(!serve.output.contains("listening"))
    #expect(try HearthBinary.run(["serve", "--emulator", "--port", "0", "--rules", "none"]).exit == .code(65))
  }

  @Test func productionEvaluatesRules() throws {
    let file = try directory.write("firestore.rules", Self.rules("id == 'n'"))
    let server = try HearthProcess(arguments: ["--in-memory", "--project", "demo", "--rules", file])
    defer { server.process.stop() }
    #expect(try status(server) == 404)
    let get = try HearthBinary.run(
      ["get", "notes/n", "--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
    #expect(get.exit == .code(1), "\(get.output)")
  }
}
