import Foundation
import TestSupport
import Testing

@testable import hearth

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
    (["--trust-issuer", "https://issuer.example,app=/nowhere/keys.json"], "problem issuer: "),
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
