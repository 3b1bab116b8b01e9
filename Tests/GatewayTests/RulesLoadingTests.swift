import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// The rules of each database: files, reloading, and uploads.
@Suite struct RulesLoadingTests {
  private static func rules(_ collection: String) -> String {
    "rules_version = '2';\nservice cloud.firestore { match /databases/{d}/documents/\(collection)/{id} { allow read; } }\n"
  }

  /// The collections of `a`, `b` and `c` that may be read in a database.
  private static func readable(_ server: TestServer, _ database: String = "projects/p/databases/(default)") throws
    -> String
  {
    try ["a", "b", "c"].filter { try server.call("GET", "/v1/\(database)/documents/\($0)/x").status == 404 }.joined()
  }

  private static func upload(_ server: TestServer, _ place: String, _ content: String, _ rest: String = "") throws
    -> TestServer.Response
  {
    let body: JSONNode = ["rules": ["files": [["name": "f.rules", "content": .string(content)]]]]
    return try server.call("PUT", "/emulator/v1/\(place):securityRules", String(body.text.dropLast()) + rest + "}")
  }

  @Test func eachDatabaseHasItsOwnRules() throws {
    let directory = try TemporaryDirectory()
    for name in ["a", "b"] {
      try Self.rules(name).write(toFile: directory.path + "/" + name, atomically: true, encoding: .utf8)
    }
    let server = try TestServer { configuration in
      configuration.rules = [
        HearthConfiguration.RulesFile(directory.path + "/a"),
        HearthConfiguration.RulesFile(directory.path + "/b", database: "second"),
      ]
    }
    #expect(try Self.readable(server) == "a")
    #expect(try Self.readable(server, "projects/p/databases/second") == "b")
    #expect(try Self.readable(server, "projects/q/databases/third") == "a")
    // Uploaded rules override files. Rules of a database override rules of its project.
    #expect(try Self.upload(server, "projects/p", Self.rules("c")).text == "{}\n")
    #expect(try Self.readable(server) == "c")
    #expect(try Self.readable(server, "projects/p/databases/second") == "c")
    #expect(try Self.readable(server, "projects/q/databases/second") == "b")
    #expect(try Self.upload(server, "projects/p/databases/second", Self.rules("a")).status == 200)
    #expect(try Self.readable(server, "projects/p/databases/second") == "a")
    #expect(try Self.readable(server) == "c")
  }

  @Test func twoFilesForOneDatabaseAreRefused() throws {
    let directory = try TemporaryDirectory()
    try Self.rules("a").write(toFile: directory.path + "/a", atomically: true, encoding: .utf8)
    #expect(throws: HearthError.self) {
      try TestServer { $0.rules = [.init(directory.path + "/a"), .init(directory.path + "/a")] }
    }
  }

  @Test func changedFilesAreReloaded() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    let lines = Mutex<[String]>([])
    func write(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
    try write(Self.rules("a"))
    let (warn, report) = (
      { @Sendable (line: String) in lines.withLock { $0.append("warn " + line) } },
      { @Sendable (line: String) in lines.withLock { $0.append(line) } }
    )
    let server = try TestServer { configuration in
      configuration.rules = [HearthConfiguration.RulesFile(file)]
      configuration.warn = warn
      configuration.report = report
    }
    #expect(try Self.readable(server) == "a")
    try write(Self.rules("b"))
    server.server.reloadRules()
    #expect(try Self.readable(server) == "b")
    // A file that does not compile leaves the previous rules in force.
    try write("service cloud.firestore {\n  match /a { allow read: if ; }\n}")
    server.server.reloadRules()
    #expect(try Self.readable(server) == "b")
    let warnings = lines.withLock { $0.filter { $0.hasPrefix("warn ") } }
    #expect(warnings.contains { $0.contains("\(file):2:") && $0.contains("NOT in force") }, "\(warnings)")
    #expect(lines.withLock { $0.contains("\(file): the rules were reloaded") })
    try write(Self.rules("c"))
    server.server.reloadRules()
    #expect(try Self.readable(server) == "c")
  }

  @Test func fileThatDoesNotCompilePreventsTheStart() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    #expect {
      try TestServer { $0.rules = [.init(file)] }
    } throws: { error in
      guard case HearthError.data(let text) = error else { return false }
      return text.hasPrefix(file + ": ")
    }
    try "service cloud.firestore {\n  match /a { allow read: if x. }\n}".write(
      toFile: file, atomically: true, encoding: .utf8)
    #expect {
      try TestServer { $0.rules = [.init(file)] }
    } throws: { error in
      guard case HearthError.data(let text) = error else { return false }
      return text.hasPrefix(file + ":2:") && text.contains("^")
    }
  }

  @Test func uploadsReplaceRules() throws {
    let server = try TestServer()
    // Without rules, every request is allowed.
    #expect(try Self.readable(server) == "abc")
    #expect(try server.call("GET", "/emulator/v1/projects/p:securityRules").status == 404)
    #expect(try Self.upload(server, "projects/p", Self.rules("b")).status == 200)
    #expect(try Self.readable(server) == "b")
    #expect(try Self.readable(server, "projects/q/databases/(default)") == "abc")
    let shown = try server.call("GET", "/emulator/v1/projects/p:securityRules")
    #expect(shown.json("rules", "files", 0, "content") == Self.rules("b"))
    // An upload that does not compile changes nothing.
    let broken = "service cloud.firestore {\n  match /a { allow read: if ; }\n}"
    let refused = try Self.upload(server, "projects/p", broken)
    #expect(refused.status == 400)
    #expect(refused.message.hasPrefix("Error compiling rules:\nL2:"), "\(refused.message)")
    #expect(try Self.readable(server) == "b")
    // `ignore_errors` overrides that.
    let taken = try Self.upload(server, "projects/p", broken, #", "ignore_errors": true"#)
    #expect(taken.status == 200)
    #expect(taken.json("issues", 0, "severity") == "ERROR")
    #expect(taken.json("issues", 0, "sourcePosition", "line", as: Int.self) == 2)
    #expect(taken.json("issues", 0, "sourcePosition", "fileName") == "f.rules")
    let reply = try server.call("GET", "/b/x")
    #expect(reply.status == 400 && reply.message.hasPrefix("Error compiling rules:\nL2:"), "\(reply.text)")
    #expect(try server.call("GET", "/b/x", headers: [("authorization", "Bearer owner")]).status == 404)
    // The response reports a warning, and the rules are in force.
    let warned = try Self.upload(
      server, "projects/p",
      "rules_version = '2';\nservice cloud.firestore { match /{p=**} { allow read: if nothing(); } }")
    #expect(warned.status == 200)
    #expect(warned.json("issues", 0, "severity") == "WARNING", "\(warned.text)")
    for body in ["", "{}", #"{"rules": {}}"#, #"{"rules": {"files": [{}]}}"#, "[", #"{"rules": {"files": [7]}}"#] {
      #expect(try server.call("PUT", "/emulator/v1/projects/p:securityRules", body).status == 400)
    }
    #expect(try server.call("POST", "/emulator/v1/projects/p:securityRules", "{}").status == 404)
    #expect(try server.call("PUT", "/emulator/v1/projects/p/x:securityRules", "{}").status == 404)
  }
}
