import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The findings of `hearth doctor`, run as a command.
@Suite(.needs(.hearth)) struct DoctorTests {
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

  @Test func aGoodSetupHasNoProblems() throws {
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
    #expect(found.lines.contains("ok permissions: only the owner of \(data) can access it"))
    #expect(
      found.lines.contains {
        $0.hasPrefix("ok (default): demo/(default) uses ") || $0.hasPrefix("ok (default): projects/")
      })
    #expect(found.lines.contains("ok reach: this machine only"))
  }

  @Test func comparesTheProjectWithTheData() throws {
    let data = directory.file("data")
    let tree = try directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try HearthBinary.run(["import", tree, "--data", data, "--project", "shop"]).exit == .code(0))
    #expect(try findings(["--data", data, "--project", "shop"]).lines.contains("ok project: shop"))
    #expect(try findings(["--data", data]).lines.contains("ok project: shop, the only project of \(data)"))
    // The package's configuration contains an example.
    let other = try findings(["--data", data, "--project", "my-project"])
    #expect(
      other.lines.contains(
        "warning project: the server serves project my-project, but \(data) contains data of shop"), "\(other.output)")
    let example = try findings(["--data", directory.file("new"), "--project", "my-project"])
    #expect(example.lines.contains { $0.hasPrefix("warning project: the project is my-project, the example") })
    let missing = try findings(["--data", directory.file("new")])
    #expect(
      missing.exit == .code(1)
        && missing.lines.contains("problem project: no project is set, so the server does not start"))
  }

  @Test func checksWebAppsAndBackups() throws {
    let data = directory.file("data")
    let tree = try directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try HearthBinary.run(["import", tree, "--data", data, "--project", "shop"]).exit == .code(0))
    let base = ["--data", data, "--project", "shop"]
    try FileManager.default.createDirectory(atPath: directory.file("dist"), withIntermediateDirectories: true)
    let empty = try findings(base + ["--hosting", directory.file("dist")])
    #expect(empty.lines.contains { $0.hasPrefix("warning hosting: ") && $0.contains("has no index.html") })
    try directory.write("dist/index.html", "app")
    let good = try findings(base + ["--hosting", directory.file("dist")])
    #expect(good.lines.contains("ok hosting: \(directory.file("dist"))"), "\(good.output)")
    let file = try directory.write(
      "firebase.json", #"{"hosting": {"public": "dist", "redirects": [{"regex": "(", "destination": "/"}]}}"#)
    #expect(
      try findings(base + ["--hosting", file]).lines.contains {
        $0.hasPrefix("warning hosting: \(file): hosting.redirects[0].regex: ")
      }
    )
    try directory.write("firebase.json", #"{"hosting": "#)
    let broken = try findings(base + ["--hosting", file])
    #expect(broken.exit == .code(1) && broken.lines.contains { $0.hasPrefix("problem hosting: \(file)") })
    let missing = try findings(base + ["--hosting", directory.file("none")])
    #expect(
      missing.exit == .code(1) && missing.lines.contains { $0.hasPrefix("problem hosting: ") }, "\(missing.output)")

    let place = directory.file("places")
    let none = try findings(base + ["--backup-to", place])
    #expect(none.lines.contains("warning backup: \(place) has no backup yet"), "\(none.output)")
    #expect(try HearthBinary.run(["backups", "create", place, "--data", data]).exit == .code(0))
    let made = try findings(base + ["--backup-to", place])
    #expect(made.lines.contains { $0.hasPrefix("ok backup: the last backup in \(place) is ") }, "\(made.output)")
    // The names of backups contain their times.
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: place).first)
    let origin = try #require(name.split(separator: "-").last)
    try FileManager.default.moveItem(atPath: "\(place)/\(name)", toPath: "\(place)/2026-01-02T030405Z-\(origin)")
    let old = try findings(base + ["--backup-to", place])
    #expect(old.lines.contains { $0.hasPrefix("warning backup: the last backup in") && $0.hasSuffix("days old") })
    let occupied = try findings(base + ["--backup-to", tree])
    #expect(occupied.exit == .code(1) && occupied.lines.contains("problem backup: \(tree) is not a directory"))
    let nowhere = try findings(base + ["--backup-to", directory.file("no/such/place")])
    #expect(nowhere.exit == .code(1), "\(nowhere.output)")
  }

  @Test func checksTheFurtherPortsOfAnEmulator() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory"])
    defer { server.process.stop() }
    let main = try HearthProcess.inMemory()
    defer { main.process.stop() }
    let found = try findings(
      [
        "--emulator", "--port", "\(main.port)", "--auth-port", "\(server.port)", "--storage-port", "0", "--hub-port",
        "0",
      ])
    #expect(found.exit == .code(1))
    #expect(
      found.lines.contains { $0.hasPrefix("problem auth port: port \(server.port) on 127.0.0.1 is already in use") },
      "\(found.output)")
    #expect(!found.lines.contains { $0.contains("storage port") })
  }

  @Test func fetchesTheKeysOfIssuersWithoutAFile() throws {
    let found = try findings(["--in-memory", "--project", "p", "--trust-issuer", "https://127.0.0.1:9,app"])
    #expect(found.exit == .code(1))
    #expect(
      found.lines.contains { $0.hasPrefix("problem issuer: the keys of https://127.0.0.1:9 cannot be fetched: ") },
      "\(found.output)")
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
      "is open to the world: every client that reaches the port may get, list, create, update, delete"
    ),
    ("allow read, write: if true;", "problem", "is open to the world"),
    ("allow read, write: if request.time < timestamp.date(2999, 1, 1);", "problem", "is open to the world"),
    (
      "allow read, write: if request.time < timestamp.date(2001, 1, 1);", "warning",
      "grants access until a date that has passed"
    ),
    ("allow read, write: if request.auth != null;", "warning", "lets every new account write"),
    ("allow read: if request.auth != null;", "ok", "compiles"),
    ("allow read: if resource.data.x;;", "problem", "does not compile: 1 error"),
  ])
  func checksRules(_ allow: String, _ level: String, _ text: String) throws {
    let rules = try directory.write("firestore.rules", Self.ruleset(allow))
    let found = try findings(["--in-memory", "--rules", rules])
    let line = try #require(found.lines.first { $0.contains(rules) }, "\(found.output)")
    #expect(line.hasPrefix("\(level) rules: ") && line.contains(text), "\(line)")
    #expect(found.exit == .code(level == "problem" ? 1 : 0))
  }

  @Test(arguments: [
    (
      "allow read, write;", "problem",
      "is open to the world: every client that reaches the port may get, list, create, update, delete"
    ),
    ("allow get;", "problem", "is open to the world: every client that reaches the port may get files of any name"),
    (
      "allow write: if request.time < timestamp.date(2001, 1, 1);", "warning",
      "grants access until a date that has passed"
    ),
    (
      "allow create: if request.auth != null && request.resource.contentType.matches('image/.*');", "warning",
      "lets every new account write files of any name"
    ),
    ("allow read: if request.auth != null;", "ok", "compiles"),
  ])
  func checksStorageRules(_ allow: String, _ level: String, _ text: String) throws {
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

  /// The rules of the example apps grant unauthenticated callers nothing for unknown files.
  @Test(arguments: ["fit-care", "journeys"])
  func storageRulesOfAppsAreNotOpen(app: String) throws {
    let rules = Fixtures.path(app).replacing("fixtures/\(app).json", with: "rules/\(app).storage.rules")
    let found = try findings(["--in-memory", "--storage-rules", rules])
    #expect(found.lines.contains("ok storage rules: \(rules) compiles"), "\(found.output)")
  }

  @Test func checksPermissionsOfTheDirectory() throws {
    let data = directory.file("open")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    chmod(data, 0o755)
    let found = try findings(["--data", data])
    #expect(found.lines.contains("warning permissions: users other than its owner can access \(data)"))
    #expect(
      try findings(["--data", directory.write("file", "")]).lines.contains { $0.hasSuffix("is not a directory") })
    #expect(try findings(["--data", directory.file("none/deeper")]).exit == .code(1))
    #expect(try findings(["--data", directory.file("new")]).lines.contains { $0.contains("the server will create ") })
  }

  @Test func anExpiredCertificateIsReportedBesideAReadableKey() throws {
    let authority = try TestAuthority()
    let certificate = try authority.issue(for: "IP:127.0.0.1", isExpired: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: certificate.keyFile)
    let found = try findings(["--in-memory", "--tls-cert", certificate.file, "--tls-key", certificate.keyFile])
    let lines = found.lines.filter { $0.hasPrefix("problem certificate: ") }
    #expect(lines.count == 2 && lines[0].contains("every user") && lines[1].contains("expired"), "\(found.output)")
  }

  /// The sendmail of Postfix and Exim does not work under the packaged unit.
  @Test func advisesAMailCommandThatTheUnitPermits() throws {
    let found = try findings(["--in-memory", "--project", "p"])
    #expect(found.output.contains("--mail-command 'msmtp -t") && !found.output.contains("sendmail -t"))
  }

  @Test(arguments: [
    (["--host", "0.0.0.0"], "warning reach: passwords and tokens are sent to 0.0.0.0 without TLS"),
    (["--host", "0.0.0.0", "--emulator", "--allow-remote-emulator"], "problem reach: an emulator makes every client"),
    (["--emulator"], "warning rules: no rules are set: every client"),
    ([], "warning rules: no rules are set: every request of an app is denied"),
    (["--rules", "/nowhere/firestore.rules"], "problem rules: "),
    (["--tls-cert", "/nowhere/a.pem", "--tls-key", "/nowhere/b.pem"], "problem certificate: "),
    (
      ["--trust-issuer", "https://issuer.example,app=/nowhere/keys.json"], "problem issuer: the keys of https://issuer"
    ),
    (
      ["--identity-provider", "google.com=app,/nowhere/keys.json"], "problem identity provider: the keys of google.com"
    ),
    (["--metrics-address", "127.0.0.1:0"], "ok metrics: any free port"),
    (["--metrics-address", "0.0.0.0:0"], "warning metrics: every client that reaches 0.0.0.0 can read the metrics"),
    (["--indexes", "/nowhere/firestore.indexes.json"], "problem indexes: /nowhere/firestore.indexes.json"),
    (["--require-indexes"], "warning indexes: --require-indexes without --indexes"),
  ])
  func checksOptions(_ arguments: [String], _ line: String) throws {
    let found = try findings(["--in-memory"] + arguments)
    #expect(found.lines.contains { $0.hasPrefix(line) }, "\(found.output)")
  }

  @Test func reportsATakenPortAndARunningServer() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory.file("data")])
    defer { server.process.stop() }
    let port = ["--port", "\(server.port)"]
    #expect(try findings(["--in-memory"] + port).lines.contains { $0.hasPrefix("problem port: ") })
    let beside = try findings(["--data", directory.file("data")] + port)
    #expect(beside.lines.contains { $0.hasPrefix("ok port: ") && $0.contains("process \(server.process.processID)") })
    #expect(beside.lines.contains { $0.hasPrefix("ok in use: by hearth, process") })
  }

  @Test func checksTheAddressOfMetrics() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory"])
    defer { server.process.stop() }
    let (own, taken) = ("127.0.0.1:\(server.port)", ["--metrics-address", "127.0.0.1:\(server.port)"])
    let found = try findings(["--in-memory"] + taken)
    #expect(found.exit == .code(1))
    let problem = try #require(found.lines.first { $0.hasPrefix("problem metrics: ") }, "\(found.output)")
    #expect(problem.contains("\(server.port)"))
    let same = try findings(["--in-memory", "--host", "0.0.0.0", "--port", "\(server.port)"] + taken)
    #expect(same.lines.contains("problem metrics: \(own) is also the address for clients"), "\(same.output)")
  }

  @Test func checksIndexFiles() throws {
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

  @Test func checksKeysOfProviders() throws {
    let server = try HearthProcess(arguments: ["--data", directory.file("cloud"), "--project", "cloud"])
    let published = try TestHTTPClient(port: server.port).send(
      "GET", "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
    server.process.stop()
    let keys = try directory.write("keys.json", published.text)
    let none = try directory.write("none.json", "{}")
    let issuer = "https://securetoken.google.com/cloud"
    let provider = "oidc.acme=app,\(keys),https://acme.example"
    let good = try findings(["--in-memory", "--trust-issuer", "\(issuer)=\(keys)", "--identity-provider", provider])
    #expect(good.lines.contains("ok issuer: \(keys) contains keys of \(issuer)"), "\(good.output)")
    #expect(good.lines.contains("ok identity provider: \(keys) contains keys of oidc.acme"), "\(good.output)")
    chmod(keys, 0o666)
    let open = try findings(["--in-memory", "--identity-provider", "google.com=app,\(keys)"])
    #expect(open.lines.contains { $0.hasPrefix("problem identity provider: every user of this machine can write") })
    let empty = try findings(["--in-memory", "--identity-provider", "apple.com=app,\(none)"])
    #expect(empty.lines.contains { $0.hasPrefix("problem identity provider: \(none): the keys of https://appleid.") })
  }

  @Test func checksKeysOfPrograms() throws {
    let data = try directory.makeDataDirectory("data")
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
    let text = "far connects to http://db.example.com:8080: its tokens are sent unencrypted"
    #expect(found.lines.contains("warning program keys: \(text)"), "\(found.output)")
    #expect(!found.lines.contains { $0.contains("near") })
    // Run in the directory of the key files, which other users can read.
    chmod(directory.file("near.json"), 0o644)
    let binary = try #require(HearthBinary.path)
    let command = "cd \"$1\" && exec \"$2\" doctor --port 0 --data data --project demo"
    let shell = try ServerProcess(
      executable: "/bin/sh", arguments: ["-c", command, "sh", directory.path, URL(filePath: binary).path])
    #expect(shell.waitForExit(timeoutSeconds: 30) == .code(1))
    #expect(shell.output.contains("near.json gives administrator rights"), "\(shell.output)")
  }

  /// Administrators run `hearth doctor` as root. The service could not use files that root creates in its directory.
  @Test(.needs(.root)) func doesNotTouchADirectoryOfAnotherUser() throws {
    let data = directory.file("data")
    let imported = try HearthBinary.run(["import", Fixtures.path("journeys"), "--data", data, "--project", "demo"])
    #expect(imported.exit == .code(0))
    func names() -> Set<String> { Set(FileManager.default.enumerator(atPath: data)?.allObjects as? [String] ?? []) }
    func giveAway() { for name in names().union([""]) { chown("\(data)/\(name)", 65_534, 65_534) } }
    giveAway()
    let made = names()
    let owner = Ownership.name(of: 65_534)
    let found = try findings(["--data", data])
    let line = "warning owner: \(data) belongs to \(owner), who cannot use files that root creates in it"
    #expect(found.lines.contains("\(line); its content was not checked"), "\(found.output)")
    // The check created nothing, not even a lock file.
    #expect(names() == made)
    #expect(!found.lines.contains { $0.contains(" sync: ") || $0.contains("(default)") })
    // It still finds the server that uses the directory, so the taken port is not a problem.
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
        $0.hasPrefix("problem owner: \(file) belongs to root, but the directory belongs to \(owner)")
      }, "\(mixed.output)")
    // The server of a container runs as root in a directory of the host, and can open every file.
    for name in names() { chown("\(data)/\(name)", 0, 0) }
    let served = try findings(["--data", data])
    #expect(served.exit == .code(0), "\(served.output)")
    #expect(
      served.lines.contains { $0.hasPrefix("warning owner: \(data) belongs to \(owner), but its content to root") })
    #expect(served.lines.contains { $0.contains("(default)") })
  }

  @Test(.needs(.root)) func ignoresTheFolderOfTheFileSystem() throws {
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

  @Test func readsTheMountTable() {
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
