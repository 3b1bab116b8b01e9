import DocumentModel
import Foundation
import Glibc
import Testing
import TestSupport

@testable import HearthCLI

/// A moment that is not covered by copied commits is refused, whatever happened to the server, its files or the place.
@Suite(.needs(.hearth)) struct FollowedMomentTests {
  private static let owner = [("Authorization", "Bearer owner")]
  private let directory: TemporaryDirectory
  private let bucket = MemoryBucket()
  /// The time by which the clock of followers is ahead, in seconds.
  private let aheadSeconds = Observed<Int64>(0)
  private let notes = Observed<[String]>([])

  init() throws { directory = try TemporaryDirectory() }

  private var data: String { directory.file("d") }
  private var folder: BackupFolder { BackupFolder(directory.file("places")) }
  private var store: BackupBucket { BackupBucket(bucket) { BackupChoice.now() } }

  private func serve(hasLog: Bool = true) throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"], hasLog: hasLog)
  }

  private func follower(_ place: any BackupPlace, _ words: String...) throws -> BackupFollower {
    try BackupFollower(
      of: data, to: place, Arguments(words + ["--", "x"], for: .backupsFollow),
      now: { [aheadSeconds] in
        Timestamp(uncheckedMicroseconds: BackupChoice.now().microseconds + 1_000_000 * aheadSeconds.value)
      },
      report: { [notes, data] event in notes.update { $0.append(event.text(of: data)) } })
  }

  @discardableResult private func write(
    _ server: HearthProcess, _ number: Int, database: String = "(default)"
  ) throws -> Timestamp {
    let reply = try TestHTTPClient(port: server.port).send(
      "PATCH", "/v1/projects/demo/databases/\(database)/documents/c/d\(number)", headers: Self.owner,
      body: Array(#"{"fields": {"n": {"integerValue": "\#(number)"}}}"#.utf8))
    let text = String(decoding: reply.body, as: UTF8.self)
    let time = try #require(text.firstMatch(of: /"updateTime": ?"([^"]+)"/)?.1, "\(text)")
    return try #require(Timestamp(rfc3339: time.utf8))
  }

  /// Expects that a moment is refused because the commits were copied only until an earlier one.
  private func expectNotCovered(
    _ moment: Timestamp, of place: any BackupPlace, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try restore(moment, of: place)
    #expect(result.contains("were copied until"), "\(moment): \(result)\n\(notes.value)", sourceLocation: location)
  }

  /// Restores a moment and returns the numbers of the documents, or the reason why it is refused.
  private func restore(_ moment: Timestamp, of place: any BackupPlace) throws -> String {
    let target = directory.file("r-\(UUID())")
    if place is BackupFolder {
      let newest = try #require(try place.names().last?.origin)
      let result = try HearthBinary.run(
        ["backups", "restore", place.text, target, "--at", moment.description, "--origin", newest])
      guard result.exit == .code(0) else { return result.output }
    } else {
      do {
        _ = try MomentRestore(moment, place.names(), in: place).run(to: target) { _ in }
      } catch let failure as CommandFailure { return failure.message }
    }
    let words = ["export", "c", "--data", target, "--project", "demo", "--database", "(default)", "--format", "ndjson"]
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "\(result.output)")
    return "\(result.output.matches(of: /"n": ?(\d+)/).compactMap { Int($0.1) }.sorted())"
  }

  private static func later(_ moment: Timestamp, microseconds: Int64) -> Timestamp {
    Timestamp(uncheckedMicroseconds: moment.microseconds + microseconds)
  }

  @Test func aReplacedFileIsNoticed() throws {
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(folder)
    try followed.step()
    try write(server, 1)
    try followed.step()
    server.process.stop()
    // The follower has the former file and its lock file open meanwhile.
    #expect(try HearthBinary.run(["compact", "--data", data]).exit == .code(0))
    server = try serve()
    try write(server, 2)
    try followed.step()
    let last = try write(server, 3)
    try followed.step()
    #expect(try folder.names().count == 1, "\(notes.value)")
    #expect(try restore(last, of: folder) == "[0, 1, 2, 3]")
  }

  /// A server that stops waits two seconds for followers, and one of a bucket copies less often.
  @Test func aLogThatIsClosedIsCopiedAtOnce() throws {
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(store)
    try followed.step()
    try write(server, 1)
    #expect(!followed.isUrgent)
    server.process.stop()
    #expect(followed.isUrgent)
    try followed.step()
    #expect(!followed.isUrgent)
  }

  @Test func aReplacedDirectoryIsNoticed() throws {
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(folder)
    try followed.step()
    let identity = try #require(try folder.names().last?.origin)
    server.process.stop()
    let copy = directory.file("copy")
    #expect(try HearthBinary.run(["backup", copy, "--data", data]).exit == .code(0))
    try FileManager.default.moveItem(atPath: data, toPath: directory.file("former"))
    try FileManager.default.moveItem(atPath: copy, toPath: data)
    server = try serve()
    try write(server, 1)
    try followed.step()
    let last = try write(server, 2)
    try followed.step()
    let restored = try #require(try BackupOrigin.read(data))
    #expect(try folder.names().filter { $0.origin == identity }.count == 1, "\(notes.value)")
    #expect(try folder.names().filter { $0.origin == restored }.count == 1, "\(notes.value)")
    let target = directory.file("r")
    let result = try HearthBinary.run(
      ["backups", "restore", folder.text, target, "--at", last.description, "--origin", restored])
    #expect(result.exit == .code(0), "\(result.output)")
    let text = try HearthBinary.run(["get", "c", "--data", target, "--project", "demo"]).output
    #expect(["d0", "d1", "d2"].allSatisfy { text.contains($0) }, "\(text)")
  }

  @Test(arguments: ["shorter", "changed", "removed"]) func lostCopiesAreNoticed(damage: String) throws {
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(folder)
    try followed.step()
    let first = try write(server, 1)
    let last = try write(server, 2)
    try followed.step()
    aheadSeconds.value = 20
    try followed.step()
    let between = Self.later(last, microseconds: 1)
    #expect(try restore(between, of: folder) == "[0, 1, 2]")
    let backup = try #require(try folder.names().last)
    let file = try #require(try folder.logFiles(of: backup).first { $0.hasPrefix("0/") })
    let url = URL(fileURLWithPath: "\(directory.file("places"))/\(backup.text)/log/\(file)")
    var content = try Data(contentsOf: url)
    switch damage {
    case "shorter": try content.dropLast(8).write(to: url)
    case "changed":
      content[content.count - 30] ^= 1
      try content.write(to: url)
    default: try FileManager.default.removeItem(at: url)
    }
    try expectNotCovered(between, of: folder)
    if damage != "removed" { #expect(try restore(first, of: folder) == "[0, 1]") }
  }

  /// A database that is created while no follower runs has commits of moments that the log of the others covers.
  @Test func aNewDatabaseEndsTheLogOfTheOthers() throws {
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    let before = try {
      var followed = try follower(store)
      try followed.step()
      return try write(server, 1)
    }()
    let missing = try write(server, 5, database: "second")
    let last = try write(server, 2)
    aheadSeconds.value = 20
    var followed = try follower(store)
    try followed.step()
    #expect(notes.value.last?.contains("projects/demo/databases/second is new") == true, "\(notes.value)")
    #expect(try restore(before, of: store) == "[0, 1]")
    try expectNotCovered(missing, of: store)
    try expectNotCovered(last, of: store)
  }

  @Test func commitsWithoutALogAreNotCovered() throws {
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(store)
    try followed.step()
    try write(server, 1)
    server.process.stop()
    server = try serve(hasLog: false)
    try write(server, 2)
    try followed.step()
    #expect(notes.value.last?.contains("no longer continues") == true, "\(notes.value)")
    let last = try write(server, 3)
    aheadSeconds.value = 30
    try followed.step()
    #expect(notes.value.last?.contains("has no commit log") == true, "\(notes.value)")
    #expect(try restore(last, of: store).contains("cannot be restored"))
  }

  /// After a gap, no commit can be copied to the log of the backup before, also if no other backup can be made.
  @Test func aBackupThatFailsIsMadeLater() throws {
    struct Refusal: Error {}
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    try {
      var followed = try follower(store)
      try followed.step()
      try write(server, 1)
      try followed.step()
    }()
    // Nobody holds the commits that a stopped server moves to its data file.
    try write(server, 2)
    server.process.stop()
    server = try serve()
    let lost = try write(server, 3)
    var followed = try follower(store)
    bucket.beforePut = { name in if !name.contains("/log/") { throw Refusal() } }
    #expect(throws: Refusal.self) { try followed.step() }
    aheadSeconds.value = 30
    try followed.step()
    try expectNotCovered(lost, of: store)
    bucket.beforePut = { _ in }
    aheadSeconds.value = 100
    try followed.step()
    #expect(notes.value.last?.contains("made the backup") == true, "\(notes.value)")
    try expectNotCovered(lost, of: store)
    // The next backup is of a later second.
    let last = try write(server, 4)
    try followed.step()
    #expect(try restore(last, of: store) == "[0, 1, 2, 3, 4]")
  }

  /// While a backup cannot be made, the commits are copied to the log of the backup before.
  @Test func commitsAreCopiedWhileNoBackupCanBeMade() throws {
    struct Refusal: Error {}
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(store, "--every", "10s")
    try followed.step()
    aheadSeconds.value = 20
    bucket.beforePut = { name in if !name.contains("/log/") { throw Refusal() } }
    #expect(throws: Refusal.self) { try followed.step() }
    let last = try write(server, 1)
    try followed.step()
    #expect(try restore(last, of: store) == "[0, 1]")
  }

  @Test func aClockThatIsSetBackEndsTheCoveredTime() throws {
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed = try follower(store)
    try followed.step()
    aheadSeconds.value = 10_000
    try followed.step()
    aheadSeconds.value = 20
    try followed.step()
    let late = Self.later(BackupChoice.now(), microseconds: 5_000_000_000)
    try expectNotCovered(late, of: store)
  }

  /// Each database takes several descriptors, and shells allow few.
  @Test func manyDatabasesAreFollowed() throws {
    let server = try serve()
    defer { server.process.stop() }
    for number in 0..<20 { try write(server, number, database: "db-\(number)") }
    let binary = try #require(HearthBinary.path)
    let process = try ServerProcess(
      executable: "/bin/sh",
      arguments: [
        "-c", #"ulimit -Sn 40; exec "$@""#, "sh", binary, "backups", "follow", directory.file("places"), "--data", data,
      ])
    defer { process.stop() }
    _ = try process.waitForLine(prefix: "following", timeoutSeconds: 60)
  }
}
