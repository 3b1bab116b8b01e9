import Foundation
import TestSupport
import Testing

@testable import HearthCLI

/// What `hearth doctor` says of set-ups, run as people run it.
@Suite(.enabled(if: HearthBinary.isBuilt)) struct DoctorTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// The findings of a run, as `level topic: text`.
  private func findings(_ arguments: [String]) throws -> (exit: ProcessExit?, lines: [String], output: String) {
    let port = arguments.contains("--port") ? [] : ["--port", "0"]
    let run = try HearthBinary.run(["doctor", "--json"] + arguments + port)
    let root = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any]
    let findings = try #require(root?["findings"] as? [[String: String]], "\(run.output)")
    let lines = findings.map { "\($0["level"] ?? "") \($0["topic"] ?? ""): \($0["text"] ?? "")" }
    #expect((root?["ok"] as? Bool) == (run.exit == .code(0)))
    for finding in findings { #expect((finding["level"] == "ok") == (finding["advice"] == nil), "\(finding)") }
    return (run.exit, lines, run.output)
  }

  @Test func aGoodSetUpHasNoProblem() throws {
    let rules = try directory.write(
      "firestore.rules",
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          match /users/{uid} { allow read, write: if request.auth.uid == uid; }
        }
      }
      """)
    let data = directory.file("data")
    let imported = try HearthBinary.run(["import", Fixtures.path("journeys"), "--data", data, "--project", "demo"])
    #expect(imported.exit == .code(0))
    let found = try findings(["--data", data, "--rules", rules, "--project", "demo"])
    #expect(found.exit == .code(0), "\(found.output)")
    #expect(found.lines.contains("ok rules: \(rules) compiles"))
    #expect(found.lines.contains("ok permissions: only their owner reaches the data in \(data)"))
    #expect(
      found.lines.contains {
        $0.hasPrefix("ok (default): demo/(default) uses ") || $0.hasPrefix("ok (default): projects/")
      })
    #expect(found.lines.contains("ok reach: this machine only"))
  }

  private static func ruleset(_ allow: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore { match /databases/{database}/documents { match /{document=**} { \(allow) } } }
    """
  }

  @Test(arguments: [
    (
      "allow read, write;", "problem",
      "is open to the world: whoever reaches the port may get, list, create, update, delete"
    ),
    ("allow read, write: if true;", "problem", "is open to the world"),
    ("allow read, write: if request.time < timestamp.date(2999, 1, 1);", "problem", "is open to the world"),
    ("allow read, write: if request.time < timestamp.date(2001, 1, 1);", "warning", "grants by a date that has passed"),
    ("allow read, write: if request.auth != null;", "warning", "lets everybody who makes an account write"),
    ("allow read: if request.auth != null;", "ok", "compiles"),
    ("allow read: if resource.data.x;;", "problem", "does not compile: 1 error"),
  ])
  func rules(_ allow: String, _ level: String, _ text: String) throws {
    let rules = try directory.write("firestore.rules", Self.ruleset(allow))
    let found = try findings(["--in-memory", "--rules", rules])
    let line = try #require(found.lines.first { $0.contains(rules) }, "\(found.output)")
    #expect(line.hasPrefix("\(level) rules: ") && line.contains(text), "\(line)")
    #expect(found.exit == .code(level == "problem" ? 1 : 0))
  }

  @Test(arguments: [
    (
      "allow read, write;", "problem",
      "is open to the world: whoever reaches the port may get, list, create, update, delete"
    ),
    ("allow get;", "problem", "is open to the world: whoever reaches the port may get files of any name"),
    ("allow write: if request.time < timestamp.date(2001, 1, 1);", "warning", "grants by a date that has passed"),
    (
      "allow create: if request.auth != null && request.resource.contentType.matches('image/.*');", "warning",
      "lets everybody who makes an account write files of any name"
    ),
    ("allow read: if request.auth != null;", "ok", "compiles"),
  ])
  func storageRules(_ allow: String, _ level: String, _ text: String) throws {
    let rules = try directory.write(
      "storage.rules",
      """
      rules_version = '2';
      service firebase.storage { match /b/{bucket}/o { match /{file=**} { \(allow) } } }
      """)
    let found = try findings(["--in-memory", "--storage-rules", rules])
    let line = try #require(found.lines.first { $0.contains(rules) }, "\(found.output)")
    #expect(line.hasPrefix("\(level) storage rules: ") && line.contains(text), "\(line)")
  }

  /// The rules of apps are not open, whatever a stranger asks.
  @Test(arguments: ["fit-care", "journeys"])
  func storageRulesOfApps(app: String) throws {
    let rules = Fixtures.path(app).replacing("fixtures/\(app).json", with: "rules/\(app).storage.rules")
    let found = try findings(["--in-memory", "--storage-rules", rules])
    #expect(found.lines.contains("ok storage rules: \(rules) compiles"), "\(found.output)")
  }

  @Test func whoMayLook() throws {
    let data = directory.file("open")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    chmod(data, 0o755)
    let found = try findings(["--data", data])
    #expect(found.lines.contains("warning permissions: others than the owner of \(data) may look into it"))
    #expect(try findings(["--data", directory.write("file", "")]).lines.contains { $0.hasSuffix("is no directory") })
    #expect(try findings(["--data", directory.file("none/deeper")]).exit == .code(1))
    #expect(try findings(["--data", directory.file("new")]).lines.contains { $0.hasSuffix("new will be made") })
  }

  @Test(arguments: [
    (["--host", "0.0.0.0"], "warning reach: passwords and tokens come to 0.0.0.0 without TLS"),
    (["--host", "0.0.0.0", "--emulator", "--allow-remote-emulator"], "problem reach: an emulator takes"),
    (["--emulator"], "warning rules: there are none: everybody"),
    ([], "warning rules: there are none: every request of an app is denied"),
    (["--rules", "/nowhere/firestore.rules"], "problem rules: "),
    (["--tls-cert", "/nowhere/a.pem", "--tls-key", "/nowhere/b.pem"], "problem certificate: "),
    (["--trust-issuer", "https://issuer.example,app=/nowhere/keys.json"], "problem issuer: the keys of https://issuer"),
    (["--identity-provider", "google.com=app,/nowhere/keys.json"], "problem identity provider: the keys of google.com"),
    (["--metrics-address", "127.0.0.1:0"], "ok metrics: any that is free"),
    (["--metrics-address", "0.0.0.0:0"], "warning metrics: who reaches 0.0.0.0 reads metrics, without credentials"),
    (["--indexes", "/nowhere/firestore.indexes.json"], "problem indexes: /nowhere/firestore.indexes.json"),
    (["--require-indexes"], "warning indexes: --require-indexes without --indexes"),
  ])
  func theFront(_ arguments: [String], _ line: String) throws {
    let found = try findings(["--in-memory"] + arguments)
    #expect(found.lines.contains { $0.hasPrefix(line) }, "\(found.output)")
  }

  @Test func aTakenPortAndARunningServer() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory.file("data")])
    defer { server.process.stop() }
    let port = ["--port", "\(server.port)"]
    #expect(try findings(["--in-memory"] + port).lines.contains { $0.hasPrefix("problem port: ") })
    let beside = try findings(["--data", directory.file("data")] + port)
    #expect(beside.lines.contains { $0.hasPrefix("ok port: ") && $0.contains("process \(server.process.processID)") })
    #expect(beside.lines.contains { $0.hasPrefix("ok in use: by hearth, process") })
  }

  @Test func theAddressOfMetrics() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory"])
    defer { server.process.stop() }
    let (own, taken) = ("127.0.0.1:\(server.port)", ["--metrics-address", "127.0.0.1:\(server.port)"])
    let found = try findings(["--in-memory"] + taken)
    #expect(found.exit == .code(1))
    let problem = try #require(found.lines.first { $0.hasPrefix("problem metrics: ") }, "\(found.output)")
    #expect(problem.contains("\(server.port)"))
    let same = try findings(["--in-memory", "--host", "0.0.0.0", "--port", "\(server.port)"] + taken)
    #expect(same.lines.contains("problem metrics: \(own) is where clients are answered"), "\(same.output)")
  }

  @Test func indexFiles() throws {
    let good = try directory.write(
      "good.json",
      """
      {"indexes": [{"collectionGroup": "a", "queryScope": "COLLECTION", "fields": [
        {"fieldPath": "x", "order": "ASCENDING"}, {"fieldPath": "y", "order": "DESCENDING"}]}],
       "fieldOverrides": [{"collectionGroup": "a", "fieldPath": "notes", "indexes": []}]}
      """)
    let bad = try directory.write("bad.json", #"{"indexs": []}"#)
    let found = try findings(["--in-memory", "--indexes", good, "--indexes", "other=\(bad)", "--indexes", good])
    #expect(found.lines.contains("ok indexes: \(good): 1 index, 1 field"), "\(found.output)")
    #expect(found.lines.contains { $0.hasPrefix("problem indexes: \(bad):1:") && $0.contains("indexs") })
    #expect(found.lines.contains("problem indexes: database (default) has two index files"))
  }

  @Test func keysOfProviders() throws {
    let server = try HearthProcess(arguments: ["--data", directory.file("cloud"), "--project", "cloud"])
    let published = try TestHTTPClient(port: server.port).send(
      "GET", "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
    server.process.stop()
    let keys = try directory.write("keys.json", published.text)
    let none = try directory.write("none.json", "{}")
    let issuer = "https://securetoken.google.com/cloud"
    let provider = "oidc.acme=app,\(keys),https://acme.example"
    let good = try findings(["--in-memory", "--trust-issuer", "\(issuer)=\(keys)", "--identity-provider", provider])
    #expect(good.lines.contains("ok issuer: \(keys) has keys of \(issuer)"), "\(good.output)")
    #expect(good.lines.contains("ok identity provider: \(keys) has keys of oidc.acme"), "\(good.output)")
    chmod(keys, 0o666)
    let open = try findings(["--in-memory", "--identity-provider", "google.com=app,\(keys)"])
    #expect(open.lines.contains { $0.hasPrefix("problem identity provider: everybody on this machine may write") })
    let empty = try findings(["--in-memory", "--identity-provider", "apple.com=app,\(none)"])
    #expect(empty.lines.contains { $0.hasPrefix("problem identity provider: \(none): the keys of https://appleid.") })
  }

  @Test func keysOfPrograms() throws {
    let data = directory.file("data")
    let place = ["--data", data, "--project", "demo"]
    func create(_ name: String, _ url: String) throws {
      let run = try HearthBinary.run(
        ["keys", "create", name, "--url", url, "--output", directory.file("\(name).json")] + place)
      #expect(run.exit == .code(0), "\(run.output)")
    }
    try create("near", "http://127.0.0.1:8080")
    #expect(try findings(place).lines.contains("ok program keys: demo: near"))
    try create("far", "http://db.example.com:8080")
    let found = try findings(place)
    let text = "far looks for the server at http://db.example.com:8080: its tokens travel unencrypted"
    #expect(found.lines.contains("warning program keys: \(text)"), "\(found.output)")
    #expect(!found.lines.contains { $0.contains("near") })
    // Where the files of the keys lie, for others to read.
    chmod(directory.file("near.json"), 0o644)
    let binary = try #require(HearthBinary.path)
    let command = "cd \"$1\" && exec \"$2\" doctor --port 0 --data data --project demo"
    let shell = try ServerProcess(
      executable: "/bin/sh", arguments: ["-c", command, "sh", directory.path, URL(filePath: binary).path])
    #expect(shell.waitForExit(timeoutSeconds: 30) == .code(1))
    #expect(shell.output.contains("near.json makes its reader admin"), "\(shell.output)")
  }

  /// Administrators look at a service's directory as root, and what root makes there is no good to the service.
  @Test(.enabled(if: geteuid() == 0, "only root gives files away")) func aDirectoryOfAnotherUser() throws {
    let data = directory.file("data")
    let imported = try HearthBinary.run(["import", Fixtures.path("journeys"), "--data", data, "--project", "demo"])
    #expect(imported.exit == .code(0))
    func names() -> Set<String> { Set(FileManager.default.enumerator(atPath: data)?.allObjects as? [String] ?? []) }
    func giveAway() { for name in names().union([""]) { chown("\(data)/\(name)", 65_534, 65_534) } }
    giveAway()
    let made = names()
    let owner = Ownership.name(of: 65_534)
    let found = try findings(["--data", data])
    let line = "warning owner: \(data) belongs to \(owner): what root makes in it, \(owner) cannot use"
    #expect(found.lines.contains("\(line); it was not looked into"), "\(found.output)")
    // Not so much as a lock's file came from looking.
    #expect(names() == made)
    #expect(!found.lines.contains { $0.contains(" sync: ") || $0.contains("(default)") })
    // The server that runs there is seen nevertheless, so that its port is no problem.
    #expect(!found.lines.contains { $0.hasPrefix("ok in use: ") })
    let server = try HearthProcess(arguments: ["--data", data, "--project", "demo"])
    giveAway()
    let beside = try findings(["--data", data, "--port", "\(server.port)"])
    server.process.stop()
    #expect(beside.lines.contains { $0.hasPrefix("ok in use: by hearth, process \(server.process.processID)") })
    #expect(beside.lines.contains { $0.hasPrefix("ok port: ") && $0.contains("is taken") }, "\(beside.output)")
    let file = directory.dataFile("data")
    chown(file, 0, 0)
    let mixed = try findings(["--data", data])
    #expect(mixed.exit == .code(1))
    #expect(
      mixed.lines.contains {
        $0.hasPrefix("problem owner: \(file) belongs to root, and the directory to \(owner)")
      }, "\(mixed.output)")
    // A container's server is root in a directory that its host gave it, which it overrules.
    for name in names() { chown("\(data)/\(name)", 0, 0) }
    let served = try findings(["--data", data])
    #expect(served.exit == .code(0), "\(served.output)")
    #expect(served.lines.contains { $0.hasPrefix("warning owner: \(data) belongs to \(owner), and all in it to root") })
    #expect(served.lines.contains { $0.contains("(default)") })
  }

  @Test(.enabled(if: geteuid() == 0, "only root gives files away")) func theFolderOfAFileSystemIsNoStranger() throws {
    let data = directory.file("data")
    let imported = try HearthBinary.run(["import", Fixtures.path("journeys"), "--data", data, "--project", "demo"])
    #expect(imported.exit == .code(0))
    let own = try FileManager.default.subpathsOfDirectory(atPath: data) + [""]
    for name in own { chown("\(data)/\(name)", 65_534, 65_534) }
    mkdir("\(data)/lost+found", 0o700)
    #expect(try !findings(["--data", data]).lines.contains { $0.hasPrefix("problem owner: ") })
    mkdir("\(data)/other", 0o700)
    #expect(try findings(["--data", data]).lines.contains { $0.hasPrefix("problem owner: \(data)/other") })
  }

  @Test func mountTable() {
    let text = """
      22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
      30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw
      31 22 0:40 / /srv/a b rw shared:3 master:2 - fuse.sshfs host: rw
      broken
      """
    #expect(MountTable.fileSystem(ofDevice: "8:2", in: text) == "ext4")
    #expect(MountTable.fileSystem(ofDevice: "0:25", in: text) == "tmpfs")
    #expect(MountTable.fileSystem(ofDevice: "0:99", in: text) == nil)
  }
}
