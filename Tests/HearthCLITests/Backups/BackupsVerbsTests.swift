import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// `hearth backups`, `hearth compact` and `hearth serve --backup-to`, run as commands.
@Suite(.needs(.hearth)) struct BackupsVerbsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func run(_ words: String...) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "\(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  private func load() throws {
    _ = try run(
      "import", Fixtures.path("dilly-daily"), "--data", directory.file("d"), "--project", "demo", "--quiet")
  }

  private func names(in place: String, _ more: String...) throws -> [String] {
    let result = try HearthBinary.run(["backups", "list", place, "--json"] + more)
    return try JSONNode(parsing: Array(result.output.utf8))["backups"]?.elements.compactMap { $0["name"]?.stringValue }
      ?? []
  }

  /// Gives the backups of a folder earlier names, because names have whole seconds. The identity at the end remains.
  private func rename(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(
      atPath: directory.file("places/\(name)"), toPath: directory.file("places/\(other)\(name.dropFirst(18))"))
  }

  @Test func aFolderKeepsTheNewestBackups() throws {
    try load()
    let place = directory.file("places")
    for day in ["2026-01-01T000000Z", "2026-01-02T000000Z", "2026-01-03T000000Z"] {
      _ = try run("backups", "create", place, "--data", directory.file("d"), "--quiet")
      try rename(try #require(try names(in: place).last), to: day)
    }
    let text = try run("backups", "create", place, "--data", directory.file("d"), "--keep", "2")
    #expect(text.contains("removed 2 older backups"))
    let oldest = try #require(try names(in: place).first)
    #expect(oldest.hasPrefix("2026-01-03T000000Z-"))
    #expect(try names(in: place).count == 2)
    #expect(
      try run("backups", "create", place, "--data", directory.file("d"), "--unless-newer-than", "1h").contains(
        "new enough"))
    _ = try run("backups", "restore", place, directory.file("r"), "--before", "2026-02-01T00:00:00Z", "--quiet")
    let export = try run("export", "--data", directory.file("r"), "--project", "demo")
    #expect(try export == run("export", "--data", directory.file("d"), "--project", "demo"))
    _ = try run("backups", "delete", place, oldest)
    #expect(try names(in: place).count == 1)
    let refused = try HearthBinary.run(["backups", "restore", place, directory.file("x"), "--name", "nosuch"])
    #expect(refused.exit == .code(1) && refused.output.contains("has no backup nosuch"))
  }

  @Test func severalDirectoriesShareAPlace() throws {
    try load()
    let place = directory.file("places")
    _ = try run("backup", directory.file("e"), "--data", directory.file("d"), "--quiet")
    for data in ["d", "e", "d", "e"] {
      _ = try run("backups", "create", place, "--data", directory.file(data), "--keep", "1", "--quiet")
    }
    let all = try names(in: place)
    let origins = try ["d", "e"].map { try directory.text("\($0)/backup-id").prefix(8) }
    #expect(all.count == 2 && Set(all.map { $0.suffix(8) }) == Set(origins), "\(all)")
    let list = try run("backups", "list", place)
    #expect(list.contains(":\(directory.file("d"))\n") && list.contains(":\(directory.file("e"))\n"), "\(list)")
    // A new backup of one directory says nothing about the other.
    try FileManager.default.removeItem(atPath: "\(place)/\(try #require(all.first { $0.hasSuffix(origins[0]) }))")
    let made = try run(
      "backups", "create", place, "--data", directory.file("d"), "--unless-newer-than", "1h")
    #expect(made.contains("stored the backup"), "\(made)")
    let ambiguous = try HearthBinary.run(["backups", "restore", place, directory.file("r")])
    #expect(ambiguous.exit == .code(1) && ambiguous.output.contains("--origin"), "\(ambiguous.output)")
    _ = try run("backups", "restore", place, directory.file("r"), "--origin", String(origins[1]), "--quiet")
    // A restored directory is another one.
    #expect(!FileManager.default.fileExists(atPath: directory.file("r/backup-id")))
  }

  @Test func oneBackupOfADirectoryIsMadeAtATime() throws {
    try load()
    let (data, place) = (directory.file("d"), directory.file("places"))
    var lock: BackupOrigin? = try BackupOrigin(of: data)
    let busy = try HearthBinary.run(["backups", "create", place, "--data", data])
    #expect(
      busy.exit == .code(75) && busy.output.contains("another process is making a backup of \(data)"), "\(busy.output)")
    let server = try HearthProcess(
      arguments: ["--emulator", "--data", data, "--project", "demo", "--backup-to", place])
    defer { server.process.stop() }
    #expect(
      OtherProcess.eventually {
        server.process.output.contains("the backup to \(place) was skipped: another process is making a backup")
      })
    withExtendedLifetime(lock) {}
    lock = nil
    _ = try run("backups", "create", place, "--data", data)
    #expect(try names(in: place).count == 1)
  }

  @Test func manyBackupsAtOnceAreRefusedOrComplete() throws {
    try load()
    let (data, place) = (directory.file("d"), directory.file("places"))
    _ = try run("backup", directory.file("e"), "--data", data, "--quiet")
    let processes = try (0..<6).map { number in
      try HearthBinary.start([
        "backups", "create", place, "--data", number.isMultiple(of: 2) ? data : directory.file("e"),
      ])
    }
    let exits = processes.map { $0.waitForExit(timeoutSeconds: 60) }
    #expect(exits.allSatisfy { $0 == .code(0) || $0 == .code(75) }, "\(processes.map(\.output))")
    let stored = try names(in: place)
    #expect(stored.count == exits.count { $0 == .code(0) } && stored.count >= 2)
    #expect(try FileManager.default.contentsOfDirectory(atPath: place).count == stored.count)
    for name in stored {
      _ = try run("backups", "restore", place, directory.file("r-\(name)"), "--name", name, "--quiet")
    }
  }

  @Test func aDatabaseIsRestoredIntoAnExistingDirectory() throws {
    try load()
    let (data, place) = (directory.file("d"), directory.file("places"))
    let local = ["--data", data, "--project", "demo"]
    let before = try run("export", "--data", data, "--project", "demo")
    _ = try run("backups", "create", place, "--data", data, "--quiet")
    #expect(try HearthBinary.run(["set", "users/later", #"{"n": 1}"#] + local).exit == .code(0))
    #expect(try HearthBinary.run(["accounts", "create", "--email", "ann@example.com"] + local).exit == .code(0))
    let words = ["backups", "restore", place, data, "--database", "(default)"]
    let server = try HearthProcess(arguments: ["--emulator"] + local)
    let locked = try HearthBinary.run(words)
    #expect(locked.exit == .code(1) && locked.output.contains("is in use by"), "\(locked.output)")
    server.process.stop()
    let unknown = try HearthBinary.run(["backups", "restore", place, data, "--database", "none"])
    #expect(unknown.exit == .code(1) && unknown.output.contains("databases/(default)"), "\(unknown.output)")
    let missing = try HearthBinary.run(["backups", "restore", place, directory.file("no"), "--database", "(default)"])
    #expect(missing.exit == .code(1) && missing.output.contains("does not exist"), "\(missing.output)")
    #expect(!FileManager.default.fileExists(atPath: directory.file("no")))
    let restored = try HearthBinary.run(words)
    #expect(restored.exit == .code(0) && restored.output.contains("accounts and files did not change"))
    #expect(try run("export", "--data", data, "--project", "demo") == before)
    #expect(try run("accounts", "list", "--data", data, "--project", "demo").contains("ann@example.com"))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: "\(data)/databases/demo/(default)").allSatisfy {
        $0.hasPrefix("data.mdb") && !$0.contains("former") && !$0.contains("restoring")
      })
    _ = try run("check", data)
    // A damaged backup leaves the present database.
    #expect(try HearthBinary.run(["set", "users/later", #"{"n": 1}"#] + local).exit == .code(0))
    let file = try "\(place)/\(#require(try names(in: place).first))/databases/demo/(default)/data.mdb"
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
    try handle.truncate(atOffset: 8192)
    let damaged = try HearthBinary.run(words)
    #expect(damaged.exit == .code(65) && damaged.output.contains("is damaged"), "\(damaged.output)")
    #expect(try run("get", "users/later", "--data", data, "--project", "demo").contains("\"n\": 1"))
  }

  @Test func aBucketOfAHearthServerTakesBackups() throws {
    try load()
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "store"])
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    let missing = try HearthBinary.run([
      "backups", "create", "gs://backups/shop", "--endpoint", url, "--data", directory.file("d"),
    ])
    #expect(
      missing.exit == .code(1) && missing.output.contains("the bucket backups does not exist; create it first"),
      "\(missing.output)")
    let nowhere = try HearthBinary.run(["backups", "list", "gs://backups", "--endpoint", "http://127.0.0.1:1"])
    #expect(nowhere.exit == .code(1) && nowhere.output.contains("name another with --endpoint"), "\(nowhere.output)")
    let created = try TestHTTPClient(port: server.port).send(
      "POST", "/storage/v1/b?project=store", headers: [("Authorization", "Bearer owner")],
      body: Array(#"{"name": "backups"}"#.utf8))
    try #require(created.status == 200)
    _ = try run("backups", "create", "gs://backups/shop", "--endpoint", url, "--data", directory.file("d"))
    #expect(try names(in: "gs://backups/shop", "--endpoint", url).count == 1)
    _ = try run("backups", "restore", "gs://backups/shop", directory.file("r"), "--endpoint", url)
    let export = try run("export", "--data", directory.file("r"), "--project", "demo")
    #expect(try export == run("export", "--data", directory.file("d"), "--project", "demo"))
    _ = try run(
      "backups", "restore", "gs://backups/shop", directory.file("r"), "--database", "(default)", "--endpoint", url)
    // The server refuses to store an object that exists.
    let bucket = try CloudStorageBucket(
      "backups", prefix: "", ServerClient(url: url, token: "owner", Arguments([], for: .listeners)))
    #expect(try bucket.putNew("new", [1, 2]))
    #expect(try bucket.putNew("new", [1, 2]), "a repeated request stored it")
    #expect(try !bucket.putNew("new", [3]))
    #expect(try bucket.get("new") == [1, 2])
  }

  @Test func optionsOfBucketsAreRefusedForFolders() throws {
    for option in [["--key", "k"], ["--token", "t"], ["--cacert", "c"], ["--region", "r"]] {
      let refused = try HearthBinary.run(["backups", "list", directory.file("places")] + option)
      #expect(
        refused.exit == .code(64) && refused.output.contains("'\(option[0])' needs a bucket"), "\(refused.output)")
    }
  }

  @Test func aFileIsNoPlaceOfBackups() throws {
    try Data("x".utf8).write(to: URL(fileURLWithPath: directory.file("occupied")))
    let refused = try HearthBinary.run(["backups", "list", directory.file("occupied")])
    #expect(refused.exit == .code(1) && refused.output.contains("is not a folder of backups"), "\(refused.output)")
  }

  @Test func aServerMakesBackupsAndReportsFailures() throws {
    let server = try HearthProcess(
      arguments: [
        "--emulator", "--data", directory.file("d"), "--project", "demo", "--backup-to", directory.file("places"),
        "--backup-every", "1h", "--log", "json",
      ])
    defer { server.process.stop() }
    #expect(OtherProcess.eventually { (try? names(in: directory.file("places")).count) == 1 })
    let line = try server.process.waitForLine("a completed backup", timeoutSeconds: 30) {
      $0.contains("backup.completed")
    }
    let event = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    #expect(event["place"] as? String == directory.file("places") && event["level"] as? String == "info", "\(line)")
    #expect((event["bytes"] as? Int).map { $0 > 1000 } == true && event["duration_ms"] is Int, "\(line)")
    let backup = try #require(event["backup"] as? String)
    #expect(try names(in: directory.file("places")) == [backup])
    let success = try metric("hearth_backup_last_success_timestamp_seconds", of: server)
    #expect(abs(success - Date().timeIntervalSince1970) < 600)
    #expect(try metric("hearth_backup_failures_total", of: server) == 0)
    // A newer server finds the backup that is new enough, and reports its time without making one.
    server.process.stop()
    let next = try HearthProcess(
      arguments: [
        "--emulator", "--data", directory.file("d"), "--project", "demo", "--backup-to", directory.file("places"),
        "--log", "json",
      ])
    defer { next.process.stop() }
    #expect(
      OtherProcess.eventually {
        (try? metric("hearth_backup_last_success_timestamp_seconds", of: next)) == success
      })
    #expect(!next.process.output.contains("backup.completed"))

    // The target is a file.
    try Data("x".utf8).write(to: URL(fileURLWithPath: directory.file("occupied")))
    let failing = try HearthProcess(
      arguments: [
        "--emulator", "--data", directory.file("d2"), "--project", "demo", "--backup-to", directory.file("occupied"),
      ])
    defer { failing.process.stop() }
    #expect(
      OtherProcess.eventually {
        failing.process.output.contains("the backup to \(directory.file("occupied")) failed")
      })
    #expect(try metric("hearth_backup_failures_total", of: failing) == 1)
    #expect(try metric("hearth_backup_last_success_timestamp_seconds", of: failing) == 0)
  }

  /// Returns a number of a server's metrics that has no labels.
  private func metric(_ name: String, of server: HearthProcess) throws -> Double {
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    let text = try client.send("GET", "/metrics", headers: [("Authorization", "Bearer owner")], body: []).text
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name + " ") }, "\(text)")
    return try #require(Double(line.dropFirst(name.count + 1)))
  }

  @Test(arguments: [
    (["--backup-every", "1h"], "needs --backup-to"), (["--backup-follow"], "needs --backup-to"),
    (["--backup-to", "x", "--data", "d", "--backup-follow", "--commit-log", "off"], "needs the commit logs"),
    (["--backup-to", "x", "--in-memory"], "needs a data directory"),
    (["--backup-to", "x", "--data", "d", "--backup-every", "1s"], "at least 1m"),
    (["--backup-to", "ftp://x", "--data", "d"], "is not a place for backups"),
    (["--backup-to", "x", "--data", "d", "--backup-region", "r"], "needs a bucket"),
    (["--backup-to", "x", "--data", "d", "--backup-key", "k"], "'--backup-key' needs a bucket"),
    (["--backup-to", "no-such-folder/in", "--data", "no-such-folder"], "is in the data directory"),
    (["--backup-to", "no-such-folder/../no-such-folder", "--data", "no-such-folder/"], "is in the data directory"),
    (["--backup-to", "s3://backups", "--data", "d"], "a credentials file with --backup-key"),
    (
      ["--backup-to", "s3://backups", "--data", "d", "--backup-endpoint", "http://s3.example.com"],
      "'--backup-endpoint http://s3.example.com' must be https"
    ),
  ])
  func aScheduleWithMistakesDoesNotStart(options: [String], reason: String) throws {
    let refused = try HearthBinary.run(["serve", "--emulator", "--port", "0"] + options)
    #expect(refused.exit == .code(64) && refused.output.contains(reason), "\(refused.output)")
  }

  @Test func compactionShrinksFilesAndKeepsTheirContent() throws {
    try load()
    let before = try run("export", "--data", directory.file("d"), "--project", "demo")
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory.file("d"), "--project", "demo"])
    let locked = try HearthBinary.run(["compact", "--data", directory.file("d")])
    #expect(locked.exit == .code(1) && locked.output.contains("is in use by"), "\(locked.output)")
    server.process.stop()
    #expect(try run("compact", "--data", directory.file("d")).contains("compacted"))
    #expect(try run("export", "--data", directory.file("d"), "--project", "demo") == before)
    _ = try run("check", directory.file("d"))
  }
}
