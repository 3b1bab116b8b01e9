import Foundation
import Testing
import TestSupport

/// A server with folders of projects, and the verbs for them.
@Suite(.needs(.hearth)) struct ProjectsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static func rules(_ condition: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore { match /{path=**} { allow read, write: if \(condition); } }
    """
  }

  /// Writes a file of a project's folder.
  private func write(_ project: String, _ name: String, _ text: String) throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("projects/\(project)"), withIntermediateDirectories: true)
    try directory.write("projects/\(project)/\(name)", text)
  }

  private func serve(_ arguments: String...) throws -> HearthProcess {
    try HearthProcess(
      arguments: ["--projects", directory.file("projects"), "--data", directory.file("data")] + arguments)
  }

  private func status(
    _ server: HearthProcess, _ project: String, _ database: String = "(default)", _ headers: (String, String)...
  ) throws -> Int {
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    return try client.send(
      "GET", "/v1/projects/\(project)/databases/\(database)/documents/notes/n", headers: headers, body: []
    ).status
  }

  @Test func foldersAreProjectsAndReloadsTakeUpChanges() throws {
    try write("red", "firestore.rules", Self.rules("true"))
    try write("blue", "hearth.json", #"{"databases": ["(default)", "archive"], "rules": ["own.rules"]}"#)
    try write("blue", "own.rules", Self.rules("true"))
    try write("bad", "firestore.rules", "service")
    let server = try serve()
    defer { server.process.stop() }
    _ = try server.process.waitForLine(prefix: "hearth: project bad: ", timeoutSeconds: 30)
    for (project, database, expected) in [
      ("red", "(default)", 404), ("red", "archive", 404), ("blue", "archive", 404), ("bad", "(default)", 503),
      ("green", "(default)", 404),
    ] {
      #expect(try status(server, project, database) == expected, "\(project) \(database)")
    }
    try write("green", "firestore.rules", Self.rules("false"))
    try write("bad", "firestore.rules", Self.rules("true"))
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "hearth: project green is served", timeoutSeconds: 30)
    #expect(try status(server, "green") == 403)
    #expect(try status(server, "bad") == 404)
    let list = try HearthBinary.run(
      ["projects", "list", "--projects", directory.file("projects"), "--data", directory.file("data")])
    #expect(list.exit == .code(0) && list.output.contains("(default) archive"), "\(list.output)")
    try FileManager.default.removeItem(atPath: directory.file("projects/green"))
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "hearth: project green is no longer served", timeoutSeconds: 30)
    server.process.send(signal: SIGTERM)
    #expect(server.process.waitForExit(timeoutSeconds: 20) == .code(0))
  }

  @Test func checkNamesEachMistake() throws {
    try write("red", "firestore.rules", Self.rules("true"))
    let check = ["projects", "check", "--projects", directory.file("projects")]
    let good = try HearthBinary.run(check)
    #expect(good.exit == .code(0) && good.output == "red: ok\n", "\(good.output)")
    let mistakes: [(name: String, text: String, error: String)] = [
      ("hearth.json", #"{"port": 1}"#, "unknown option \"port\""), ("hearth.json", "[]", "must be a JSON object"),
      ("hearth.json", #"{"rules": ["none.rules"]}"#, "none.rules: No such file"),
      ("hearth.json", #"{"databases": ["/"]}"#, "is not a valid database ID"),
      ("firestore.indexes.json", "{", "firestore.indexes.json"), ("storage.rules", "service", "storage.rules:1:"),
      ("firebase.json", #"{"firestore": {"rules": "gone.rules"}}"#, "gone.rules"),
    ]
    for (name, text, error) in mistakes {
      try write("blue", name, text)
      let found = try HearthBinary.run(check)
      #expect(found.exit == .code(65) && found.output.contains("red: ok"), "\(found.output)")
      #expect(found.output.contains("blue: ") && found.output.contains(error), "\(name) \(text): \(found.output)")
      try FileManager.default.removeItem(atPath: directory.file("projects/blue"))
    }
    let none = try HearthBinary.run(["projects", "check", "--projects", directory.file("missing")])
    #expect(none.exit == .code(1), "\(none.output)")
  }

  @Test func verbsReachTheProjectThatTheyName() throws {
    for project in ["red", "blue"] { try write(project, "firestore.rules", Self.rules("false")) }
    let server = try serve()
    let data = ["--data", directory.file("data")]
    for project in ["red", "blue"] {
      let created = try HearthBinary.run(
        ["keys", "create", "of-\(project)", "--output", "-", "--project", project] + data)
      #expect(created.exit == .code(0) && created.output.contains("of-\(project)@\(project)."), "\(created.output)")
    }
    let keys = try HearthBinary.run(["keys", "list", "--project", "red"] + data)
    #expect(keys.output.contains("of-red") && !keys.output.contains("of-blue"), "\(keys.output)")
    let file = try directory.write("a.txt", "content of red")
    let copied = try HearthBinary.run(["files", "cp", file, "gs://red.appspot.com/a.txt", "--project", "red"] + data)
    #expect(copied.exit == .code(0), "\(copied.output)")
    // A backup contains the accounts and files of all projects.
    let copy = try HearthBinary.run(["backup", directory.file("copy")] + data)
    #expect(copy.exit == .code(0), "\(copy.output)")
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: directory.file("copy/accounts"))) == ["red", "blue"])
    let check = try HearthBinary.run(["check", directory.file("copy")])
    #expect(check.exit == .code(0) && check.output.contains("red: files: ok, 1 "), "\(check.output)")
    server.process.stop()
  }
}
