import Foundation
import Glibc
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

  private func get(_ server: HearthProcess, _ path: String, host: String) throws -> (status: Int, text: String) {
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    let response = try client.send("GET", path, headers: [("Host", host)], body: [])
    return (response.status, response.text)
  }

  @Test func linksAndOtherEntriesOfTheDirectory() throws {
    try write("red", "firestore.rules", Self.rules("true"))
    try FileManager.default.createDirectory(atPath: directory.file("elsewhere"), withIntermediateDirectories: true)
    _ = try directory.write("elsewhere/firestore.rules", Self.rules("true"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("projects/linked"), withDestinationPath: directory.file("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("projects/gone"), withDestinationPath: directory.file("nowhere"))
    try write("bad name", "firestore.rules", Self.rules("true"))
    try write(".hidden", "firestore.rules", Self.rules("true"))
    _ = try directory.write("projects/README.md", "text")
    let server = try serve()
    defer { server.process.stop() }
    _ = try server.process.waitForLine(prefix: "hearth: project gone: cannot read", timeoutSeconds: 30)
    for (project, expected) in [
      ("red", 404), ("linked", 404), ("gone", 503), ("bad%20name", 404), (".hidden", 404), ("README.md", 404),
    ] {
      #expect(try status(server, project) == expected, "\(project)")
    }
    #expect(server.process.output.contains("project bad name: 'bad name' is not a valid project ID"))
    let check = try HearthBinary.run(["projects", "check", "--projects", directory.file("projects")])
    #expect(check.exit == .code(65) && check.output.contains("linked: ok"), "\(check.output)")
    #expect(!check.output.contains("README") && !check.output.contains("hidden"), "\(check.output)")
    // Without the directory, all projects stay.
    try FileManager.default.moveItem(atPath: directory.file("projects"), toPath: directory.file("moved"))
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "hearth: cannot read the directory of projects", timeoutSeconds: 30)
    #expect(try status(server, "red") == 404)
    let started = try HearthBinary.run(
      ["serve", "--port", "0", "--projects", directory.file("projects"), "--data", directory.file("other")])
    #expect(started.exit != .code(0) && started.output.contains("cannot read the directory of projects"))
  }

  @Test func quotasAreShownAndReloaded() throws {
    try write("red", "firestore.rules", Self.rules("true"))
    try write("red", "hearth.json", #"{"quota-documents": 1000, "quota-accounts": 5}"#)
    try write("blue", "firestore.rules", Self.rules("true"))
    let server = try serve("--quota-documents", "100K")
    func set(_ project: String, _ id: String, _ size: Int) throws -> Int {
      let client = TestHTTPClient(port: server.port)
      defer { client.close() }
      let text = String(repeating: "x", count: size)
      return try client.send(
        "PATCH", "/v1/projects/\(project)/databases/(default)/documents/notes/\(id)",
        headers: [("Content-Type", "application/json")],
        body: Array(#"{"fields": {"a": {"stringValue": "\#(text)"}}}"#.utf8)
      ).status
    }
    #expect(try set("red", "a", 900) == 200)
    #expect(try set("red", "b", 900) == 429)
    #expect(try set("blue", "a", 60_000) == 200)
    #expect(try set("blue", "b", 60_000) == 429)
    let places = ["--projects", directory.file("projects"), "--data", directory.file("data")]
    let list = try HearthBinary.run(["projects", "list"] + places)
    #expect(list.output.contains("documents 95 % of 1000 B, accounts 0 % of 5"), "\(list.output)")
    let doctor = try HearthBinary.run(["doctor", "--port", "0"] + places)
    #expect(doctor.output.contains("red: documents 95 % of 1000 B"), "\(doctor.output)")
    #expect(doctor.output.contains("raise quota-documents"), "\(doctor.output)")
    let stats = try HearthBinary.run(["stats", "--data", directory.file("data"), "--json"])
    #expect(stats.output.contains("documentBytes"), "\(stats.output)")
    // A larger quota is in force after a reload. A mistake leaves the quotas.
    try write("red", "hearth.json", #"{"quota-documents": "many"}"#)
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine("a refusal", timeoutSeconds: 30) { $0.contains("'many'") }
    #expect(try set("red", "b", 900) == 429)
    try write("red", "hearth.json", #"{"quota-documents": "1M"}"#)
    server.process.send(signal: SIGHUP)
    #expect(OtherProcess.eventually { (try? set("red", "b", 900)) == 200 })
    server.process.stop()
  }

  @Test func hostNameOfTwoProjectsIsReported() throws {
    try write("a", "hearth.json", #"{"hosts": ["x.example.com"], "api-keys": ["k"]}"#)
    try write("b", "hearth.json", #"{"hosts": ["X.example.com"], "api-keys": ["k"]}"#)
    let check = try HearthBinary.run(["projects", "check", "--projects", directory.file("projects")])
    #expect(check.exit == .code(65), "\(check.output)")
    #expect(check.output.contains("the host name 'x.example.com' of project b belongs to the project a already"))
    #expect(check.output.contains("the API key 'k' of project b belongs to the project a already"))
    let server = try serve()
    defer { server.process.stop() }
    _ = try server.process.waitForLine(prefix: "hearth: the host name 'x.example.com' of project b", timeoutSeconds: 30)
  }

  @Test func eachProjectHasItsWebApps() throws {
    for (project, file, text) in [
      ("red", "public/index.html", "app of red"), ("red", "admin/index.html", "admin of red"),
      ("blue", "dist/index.html", "app of blue"), ("blue", "dist/page.html", "page"),
    ] {
      let folder = LocalFolder.of(directory.file("projects/\(project)/\(file)"))
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      _ = try directory.write("projects/\(project)/\(file)", text)
    }
    try write(
      "red", "hearth.json", #"{"hosts": ["red.example.com"], "hosting": ["public", "admin.example.com=admin"]}"#)
    try write("blue", "hearth.json", #"{"hosts": ["blue.example.com"]}"#)
    try write("blue", "firebase.json", #"{"hosting": {"public": "dist", "cleanUrls": true}}"#)
    try write("green", "hearth.json", #"{"hosting": ["."]}"#)
    let server = try serve()
    defer { server.process.stop() }
    for (host, path, expected) in [
      ("red.example.com", "/", "app of red"), ("admin.example.com", "/", "admin of red"),
      ("ADMIN.example.com:8080", "/index.html", "admin of red"), ("blue.example.com", "/", "app of blue"),
      ("blue.example.com", "/page", "page"),
    ] {
      let found = try get(server, path, host: host)
      #expect(found == (200, expected), "\(host) \(path): \(found)")
    }
    #expect(try get(server, "/page", host: "red.example.com").status == 404)
    #expect(!(try get(server, "/", host: "other.example.com").text.contains("app of")))
    // A folder with the configuration is not published.
    #expect(try status(server, "green") == 503)
    #expect(server.process.output.contains("every client could read"))
  }

  @Test func providersAndTheirSecretsAreRelativeToTheFolder() throws {
    try write("red", "google.secret", "secret-of-red")
    try write(
      "red", "providers.json",
      #"{"google.com": {"clientId": "1.apps.googleusercontent.com", "clientSecretFile": "google.secret"}}"#)
    try write(
      "red", "hearth.json",
      #"{"hosts": ["red.example.com"], "public-url": "https://red.example.com", "providers": "providers.json"}"#)
    try write("blue", "hearth.json", #"{"providers": {"google.com": {"clientId": "1", "clientSecretFile": "none"}}}"#)
    let check = try HearthBinary.run(["projects", "check", "--projects", directory.file("projects")])
    #expect(check.output.contains("red: ok") && check.output.contains("blue: "), "\(check.output)")
    #expect(check.exit == .code(65) && check.output.contains("projects/blue/none"), "\(check.output)")
    let server = try serve()
    defer { server.process.stop() }
    #expect(try status(server, "red") == 403)
    let key = try HearthBinary.run(
      ["keys", "create", "k", "--output", "-", "--project", "red", "--data", directory.file("data")])
    #expect(key.output.contains(#""https://red.example.com"#), "\(key.output)")
  }

  // MARK: Backups

  private func run(_ words: [String]) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "\(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  /// Writes a document and a file of each project.
  private func load(_ projects: [String]) throws {
    let data = ["--data", directory.file("data")]
    for project in projects {
      let file = try directory.write("\(project).txt", "content of \(project)")
      _ = try run(["files", "cp", file, "gs://\(project).appspot.com/a.txt", "--project", project, "--quiet"] + data)
      _ = try run(["set", "notes/n", #"{"of": "\#(project)"}"#, "--project", project] + data)
    }
  }

  @Test func backupsContainEveryProject() throws {
    for project in ["red", "blue"] { try write(project, "firestore.rules", Self.rules("false")) }
    let server = try serve("--backup-to", directory.file("scheduled"))
    try load(["red", "blue"])
    let place = directory.file("places")
    _ = try run(["backups", "create", place, "--data", directory.file("data"), "--quiet"])
    let first = try #require(try FileManager.default.contentsOfDirectory(atPath: place).first)
    // The identity of the data directory at the end remains.
    let renamed = "2026-01-01T000000Z\(first.dropFirst(18))"
    try FileManager.default.moveItem(atPath: "\(place)/\(first)", toPath: "\(place)/\(renamed)")
    _ = try run(["backups", "create", place, "--data", directory.file("data"), "--quiet"])
    // Unchanged content is linked, for each project.
    let second = try #require(
      try FileManager.default.contentsOfDirectory(atPath: place).first { $0 != renamed })
    var linked = 0
    let files = FileManager.default.enumerator(atPath: "\(place)/\(second)/project-files")
    while let name = files?.nextObject() as? String {
      var status = stat()
      if name.contains("/content/"), stat("\(place)/\(second)/project-files/\(name)", &status) == 0,
        status.st_mode & S_IFMT == S_IFREG
      {
        #expect(status.st_nlink == 2, "\(name)")
        linked += 1
      }
    }
    #expect(linked == 2)
    _ = try run(["backups", "restore", place, directory.file("restored"), "--quiet"])
    server.process.stop()
    _ = try run(["compact", "--data", directory.file("restored"), "--quiet"])
    let check = try run(["check", directory.file("restored")])
    #expect(check.contains("red: files: ok, 1 ") && check.contains("blue: files: ok, 1 "), "\(check)")
    let again = try HearthProcess(
      arguments: ["--projects", directory.file("projects"), "--data", directory.file("restored")])
    defer { again.process.stop() }
    for project in ["red", "blue"] {
      let data = ["--project", project, "--data", directory.file("restored")]
      #expect(
        try run(["files", "cp", "gs://\(project).appspot.com/a.txt", "-", "--quiet"] + data) == "content of \(project)")
      #expect(try run(["get", "notes/n"] + data).contains(project))
    }
  }

  /// A project returns to an earlier state while the others are served.
  @Test func oneProjectIsRestoredWhileTheOthersRun() throws {
    for project in ["red", "blue"] { try write(project, "firestore.rules", Self.rules("true")) }
    let server = try serve()
    defer { server.process.stop() }
    try load(["red", "blue"])
    let data = ["--data", directory.file("data")]
    _ = try run(["backups", "create", directory.file("places"), "--quiet"] + data)
    _ = try run(["set", "notes/n", #"{"of": "mistake"}"#, "--project", "red"] + data)
    _ = try run(["set", "notes/n", #"{"of": "blue too"}"#, "--project", "blue"] + data)
    _ = try run(["backups", "restore", directory.file("places"), directory.file("restored"), "--quiet"])
    let manager = FileManager.default
    try manager.moveItem(atPath: directory.file("projects/red"), toPath: directory.file("red"))
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "hearth: the files of project red are closed", timeoutSeconds: 30)
    for part in ["databases", "accounts", "project-files"] {
      let own = directory.file("data/\(part)/red")
      try manager.moveItem(atPath: own, toPath: directory.file("old-\(part)"))
      try manager.moveItem(atPath: directory.file("restored/\(part)/red"), toPath: own)
    }
    try manager.moveItem(atPath: directory.file("red"), toPath: directory.file("projects/red"))
    server.process.send(signal: SIGHUP)
    // The lines of the start are the same.
    for _ in 0..<2000 where try status(server, "red") == 503 { continue }
    #expect(try run(["get", "notes/n", "--project", "red"] + data).contains("red"))
    #expect(
      try run(["files", "cp", "gs://red.appspot.com/a.txt", "-", "--quiet", "--project", "red"] + data)
        == "content of red")
    #expect(try run(["get", "notes/n", "--project", "blue"] + data).contains("blue too"))
  }
}

/// The folder that contains a file.
private enum LocalFolder {
  static func of(_ path: String) -> String { URL(fileURLWithPath: path).deletingLastPathComponent().path }
}
