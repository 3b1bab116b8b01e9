import Foundation
import Testing
import TestSupport

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

  /// Gives the backups of a folder earlier names, because names have whole seconds.
  private func rename(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(
      atPath: directory.file("places/\(name)"), toPath: directory.file("places/\(other)"))
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
    #expect(try names(in: place).first == "2026-01-03T000000Z")
    #expect(try names(in: place).count == 2)
    #expect(
      try run("backups", "create", place, "--data", directory.file("d"), "--unless-newer-than", "1h").contains(
        "new enough"))
    _ = try run("backups", "restore", place, directory.file("r"), "--before", "2026-02-01T00:00:00Z", "--quiet")
    let export = try run("export", "--data", directory.file("r"), "--project", "demo")
    #expect(try export == run("export", "--data", directory.file("d"), "--project", "demo"))
    _ = try run("backups", "delete", place, "2026-01-03T000000Z")
    #expect(try names(in: place).count == 1)
    let refused = try HearthBinary.run(["backups", "restore", place, directory.file("x"), "--name", "nosuch"])
    #expect(refused.exit == .code(1) && refused.output.contains("has no backup nosuch"))
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
  }

  @Test func optionsOfBucketsAreRefusedForFolders() throws {
    for option in [["--key", "k"], ["--token", "t"], ["--cacert", "c"], ["--region", "r"]] {
      let refused = try HearthBinary.run(["backups", "list", directory.file("places")] + option)
      #expect(
        refused.exit == .code(64) && refused.output.contains("'\(option[0])' needs a bucket"), "\(refused.output)")
    }
  }

  @Test func aServerMakesBackupsAndReportsFailures() throws {
    let server = try HearthProcess(
      arguments: [
        "--emulator", "--data", directory.file("d"), "--project", "demo", "--backup-to", directory.file("places"),
        "--backup-every", "1h",
      ])
    defer { server.process.stop() }
    #expect(OtherProcess.eventually { (try? names(in: directory.file("places")).count) == 1 })

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
  }

  @Test(arguments: [
    (["--backup-every", "1h"], "needs --backup-to"), (["--backup-to", "x", "--in-memory"], "needs a data directory"),
    (["--backup-to", "x", "--data", "d", "--backup-every", "1s"], "at least 1m"),
    (["--backup-to", "ftp://x", "--data", "d"], "is not a place for backups"),
    (["--backup-to", "x", "--data", "d", "--backup-region", "r"], "needs a bucket"),
    (["--backup-to", "x", "--data", "d", "--backup-key", "k"], "'--backup-key' needs a bucket"),
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
