import DocumentModel
import Files
import Foundation
import HearthServer
import KeyValue
import LMDBEngine
import Testing
import TestSupport

@testable import HearthCLI

/// Backups in a bucket, with pieces of a kilobyte.
@Suite(.needs(.hearth)) struct BackupBucketTests {
  private let directory: TemporaryDirectory
  private let bucket = MemoryBucket()
  private let place: BackupBucket
  private static let firstTime = Timestamp(uncheckedMicroseconds: 1_800_000_000_000_000)

  init() throws {
    directory = try TemporaryDirectory()
    place = BackupBucket(bucket, pieceBytes: 1024) { [bucket] in bucket.now }
    let made = try HearthBinary.run([
      "import", Fixtures.path("dilly-daily"), "--data", directory.file("d"), "--project", "demo", "--quiet",
    ])
    try #require(made.exit == .code(0), "\(made.output)")
  }

  private func addFile(_ name: String, bytes: Int) throws {
    let path = directory.file("content")
    try Data((0..<bytes).map { UInt8(truncatingIfNeeded: $0 / 7 + bytes) }).write(to: URL(fileURLWithPath: path))
    let copied = try HearthBinary.run([
      "files", "cp", path, "gs://demo.appspot.com/\(name)", "--data", directory.file("d"), "--project", "demo",
      "--quiet",
    ])
    try #require(copied.exit == .code(0), "\(copied.output)")
  }

  @discardableResult private func make(afterHours hours: Int64 = 0) throws -> BackupOutcome {
    bucket.now = Timestamp(uncheckedMicroseconds: Self.firstTime.microseconds + hours * 3_600_000_000)
    return try place.make(BackupName(bucket.now), of: DirectoryReader(directory.file("d")), since: nil) { _ in }
  }

  /// The content of the files of one of several projects is shared with that of all others.
  @Test func contentOfEveryProjectIsShared() {
    let digest = String(repeating: "ab", count: 32)
    let path = "content/\(digest.prefix(2))/\(digest.dropFirst(2))"
    for (folder, isContent) in [
      ("files", true), ("project-files/red", true), ("project-files/red/x", false), ("other/red", false),
      ("project-files", false), ("files/red", false),
    ] {
      #expect(BackedUpFile.contentDigest("\(folder)/\(path)") == (isContent ? digest : nil), "\(folder)")
    }
    #expect(BackedUpFile.contentDigest("project-files/red/data.mdb") == nil)
  }

  private func export(_ data: String) throws -> String {
    try HearthBinary.run(["export", "--data", directory.file(data), "--project", "demo"]).output
  }

  @Test func aRestoredBackupEqualsTheOriginal() throws {
    try addFile("a", bytes: 5000)
    try addFile("empty", bytes: 0)
    try make()
    let backup = try #require(try place.names().first)
    try place.restore(backup, to: directory.file("r")) { _ in }
    #expect(try export("r") == export("d"))
    let check = try HearthBinary.run(["check", directory.file("r")])
    #expect(check.exit == .code(0), "\(check.output)")
    #expect(
      try HearthBinary.run(["files", "ls", "--data", directory.file("r"), "--project", "demo"]).output.contains("a "))
    #expect(bucket.objects.values.allSatisfy { $0.content.count <= 1024 || $0.content.starts(with: "{".utf8) })
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.file("d")).allSatisfy { !$0.hasSuffix(".part") })
  }

  @Test func aSecondBackupSendsOnlyNewContent() throws {
    try addFile("a", bytes: 5000)
    try make()
    try addFile("b", bytes: 3000)
    let before = bucket.puts.count
    try make(afterHours: 1)
    let content = bucket.puts[before...].filter { $0.hasPrefix("content/") }
    #expect(content.count == 3, "\(content)")
    // An upload that ended early left the first piece only.
    bucket.objects[try #require(content.last)] = nil
    let interrupted = bucket.puts.count
    try make(afterHours: 2)
    #expect(bucket.puts[interrupted...].filter { $0.hasPrefix("content/") }.count == 3)
  }

  @Test func aBackupDoesNotReplaceAnotherOfTheSameName() throws {
    try make()
    let stored = bucket.objects.mapValues(\.content)
    try addFile("a", bytes: 3000)
    #expect(throws: CommandFailure.self) { try make() }
    #expect(bucket.objects.mapValues(\.content) == stored)
    // Another process reserved the name, or stored the manifest at the last moment.
    let name = BackupName(Timestamp(uncheckedMicroseconds: Self.firstTime.microseconds + 3_600_000_000)).text
    try bucket.put("running/\(name)", [1])
    #expect(throws: CommandFailure.self) { try make(afterHours: 1) }
    #expect(bucket.objects["running/\(name)"] != nil)
    bucket.objects["running/\(name)"] = nil
    bucket.beforePut = { [bucket] object in
      if object.hasSuffix("/list.0") { bucket.objects["manifests/\(name).json"] = ([2], bucket.now) }
    }
    #expect(throws: CommandFailure.self) { try make(afterHours: 1) }
    #expect(bucket.objects["manifests/\(name).json"]?.content == [2])
  }

  @Test func aDatabaseOfABackupIsCopiedAndVerified() throws {
    try make()
    let name = try #require(try place.names().first)
    let id = try #require(try place.databases(of: name).first)
    #expect(try place.databases(of: name).map(\.name) == DirectoryReader(directory.file("d")).databases.map(\.name))
    try place.copyDatabase(id, of: name, to: directory.file("copy.mdb")) { _ in }
    #expect(try LMDBStore.open(LMDBOptions(path: directory.file("copy.mdb"), readOnly: true)).statistics().entries > 0)
    for piece in bucket.objects.keys where piece.hasPrefix("data/") && !piece.contains("/list.") {
      bucket.objects[piece]?.content[0] ^= 1
    }
    #expect(throws: (any Error).self) { try place.copyDatabase(id, of: name, to: directory.file("x.mdb")) { _ in } }
  }

  @Test func aFailedBackupDoesNotExist() throws {
    try addFile("a", bytes: 5000)
    bucket.beforePut = { name in
      if name.hasPrefix("manifests/") { throw CommandFailure.failed("the store is full") }
    }
    #expect(throws: CommandFailure.self) { try make() }
    #expect(try place.names().isEmpty)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.file("d")).allSatisfy { !$0.hasSuffix(".part") })
    bucket.beforePut = { _ in }
    let before = bucket.puts.count
    try make(afterHours: 1)
    #expect(try place.names().count == 1)
    #expect(!bucket.puts[before...].contains { $0.hasPrefix("content/") }, "the content was sent again")
  }

  @Test func removalKeepsContentOfOtherBackupsAndOfRunningOnes() throws {
    try addFile("a", bytes: 2000)
    try make()
    try addFile("b", bytes: 2000)
    try make(afterHours: 1)
    bucket.objects["content/abandoned.0"] = ([1], Self.firstTime)
    bucket.objects["data/2027-01-01T000000Z/0.0"] = ([1], Self.firstTime)
    let first = try #require(try place.names().first)
    try place.remove([first])
    #expect(try place.names().count == 1)
    #expect(bucket.objects["content/abandoned.0"] != nil, "a running backup may have stored it")
    #expect(!bucket.objects.keys.contains { $0.hasPrefix("data/\(first.text)/") })
    try place.restore(try #require(try place.names().first), to: directory.file("r")) { _ in }

    try make(afterHours: 30)
    try place.remove([try #require(try place.names().first)])
    #expect(bucket.objects["content/abandoned.0"] == nil && bucket.objects["data/2027-01-01T000000Z/0.0"] == nil)
    try place.restore(try #require(try place.names().first), to: directory.file("r2")) { _ in }
    #expect(try export("r2") == export("d"))
  }

  @Test func aDamagedBackupLeavesNothingAtItsTarget() throws {
    try addFile("a", bytes: 5000)
    try make()
    let backup = try #require(try place.names().first)
    let intact = bucket.objects
    var random = SplitMix(seed: 11)
    for name in intact.keys.filter({ !$0.hasPrefix("manifests/") }).sorted() {
      bucket.objects = intact
      var content = intact[name]?.content ?? []
      let damage = Int.random(in: 0..<3, using: &random)
      switch damage {
      case 0: bucket.objects[name] = nil
      case 1: bucket.objects[name]?.content = Array(content.dropLast())
      default:
        if !content.isEmpty { content[Int.random(in: 0..<content.count, using: &random)] ^= 0x10 }
        bucket.objects[name]?.content = content
      }
      if content.isEmpty, damage > 0 { continue }
      #expect(throws: CommandFailure.self, "damage \(damage) of \(name)") {
        try place.restore(backup, to: directory.file("r")) { _ in }
      }
      #expect(!FileManager.default.fileExists(atPath: directory.file("r")))
    }
    bucket.objects = intact
    try place.restore(backup, to: directory.file("r")) { _ in }
    #expect(throws: CommandFailure.self) { try place.restore(backup, to: directory.file("r")) { _ in } }
  }

  @Test func aBackupFailsIfItsContentIsRemovedMeanwhile() throws {
    try addFile("a", bytes: 2000)
    try make()
    bucket.beforePut = { [bucket] name in
      if name.hasPrefix("data/") { bucket.objects = bucket.objects.filter { !$0.key.hasPrefix("content/") } }
    }
    #expect(throws: CommandFailure.self) { try make(afterHours: 1) }
    #expect(try place.names().count == 1)
    #expect(!bucket.objects.keys.contains { $0.hasPrefix("running/") })
  }

  @Test func contentStaysWhileAnotherBackupIsMade() throws {
    try addFile("a", bytes: 2000)
    try make()
    let first = try #require(try place.names().first)
    bucket.now = Timestamp(uncheckedMicroseconds: Self.firstTime.microseconds + 30 * 3_600_000_000)
    try bucket.put("running/2027-01-16T000000Z", [])
    try place.remove([first])
    #expect(bucket.objects.keys.contains { $0.hasPrefix("content/") })
    #expect(!bucket.objects.keys.contains { $0.hasPrefix("data/") })
    // The process that made the other backup was killed.
    try make(afterHours: 60)
    try place.remove([])
    let second = try #require(try place.names().first)
    try make(afterHours: 61)
    try place.remove([second])
    #expect(!bucket.objects.keys.contains { $0.hasPrefix("running/") })
  }

  @Test(arguments: [
    "1 1 DIGEST ../x", "1 1 DIGEST /etc/x", "1 1 DIGEST a//b", "1 1 DIGEST a/../b", "1 1 DIGEST ", "1 1 ab a",
    "-1 1 DIGEST a", "1 0 DIGEST a", "1 1 DIGEST files/content/ab/OTHER",
  ])
  func damagedLinesOfTheListAreRefused(line: String) {
    let digest = String(repeating: "0", count: 64)
    let other = String(repeating: "c", count: 62)
    let text = line.replacingOccurrences(of: "DIGEST", with: digest).replacingOccurrences(of: "OTHER", with: other)
    #expect(BackedUpFile(line: text[...]) == nil)
  }

  @Test func manifestsAreReadAsTheyWereWritten() throws {
    let list = BackedUpFile(path: "list", size: 1 << 40, digest: String(repeating: "a", count: 64), pieceCount: 7)
    let manifest = BackupManifest(
      time: Self.firstTime, size: 1 << 41, addedBytes: 12, list: list, origin: "4f1c2a9b", source: "a:/b")
    #expect(try BackupManifest(manifest.json, of: "b") == manifest)
    let newer = String(decoding: manifest.json, as: UTF8.self)
      .replacingOccurrences(of: #""format": "1""#, with: #""format": "3""#)
    let failure = #expect(throws: CommandFailure.self) { try BackupManifest(Array(newer.utf8), of: "b") }
    #expect(failure?.message.contains("newer version") == true)
  }

  @Test(arguments: [
    ("2026-11-22T031500Z", true), ("2026-11-22T0315Z", false), ("2026-11-22T03:15:00Z", false),
    ("2026-11-22T031500Z-4f1c2a9b", true), ("2026-11-22T031500Z-4F1C2A9B", false), ("2026-11-22T031500Z-", false),
    ("2026-11-22T031500Z-4f1c2a9", false), ("2026-13-22T031500Z", false), ("2026-11-22T031500Z.removed", false),
    ("2026-11-22T03150éZ", false), ("", false),
  ])
  func namesAreTimes(text: String, isValid: Bool) {
    #expect(BackupName(text)?.text == (isValid ? text : nil))
  }
}
