import Foundation
import Glibc
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport

@testable import Files

/// Copies of files are complete even during writes, and a check reports damage.
@Suite struct FilesBackupTests {
  private static func copy(_ store: FileStore, to path: String, earlier: String? = nil) throws -> FilesBackup {
    let contentLock = try ContentLock(store.contents.path)
    return try withExtendedLifetime(contentLock) {
      let destination = try ContentDirectory(path)
      try store.metadata.copy(toFile: path + "/data.mdb")
      return try FilesBackup(
        of: LMDBStore.open(LMDBOptions(path: path + "/data.mdb")), from: store.contents, to: destination,
        earlier: earlier.map { try ContentDirectory($0) })
    }
  }

  private static func check(_ path: String) throws -> FilesCheck {
    try FilesCheck(
      LMDBStore.open(LMDBOptions(path: path + "/data.mdb", readOnly: true)), ContentDirectory(path))
  }

  private static func contentFiles(_ path: String) -> [String] {
    (FileManager.default.enumerator(atPath: path + "/content")?.compactMap { $0 as? String } ?? [])
      .filter { $0.contains("/") }.sorted()
  }

  /// Replaces and removes objects continuously. Each operation leaves unreferenced content.
  private final class Load: Sendable {
    let isOver = Atomic(false)

    func run(_ store: FileStore) throws -> [String] {
      var random = SplitMix(seed: 7)
      var count = 0
      while !isOver.load(ordering: .relaxed) {
        count += 1
        let name = TestFiles.name("n\(Int.random(in: 0...5, using: &random))")
        if Int.random(in: 0...3, using: &random) == 0 { try? store.delete(name) }
        let incoming = try store.makeIncoming()
        try Array("\(Int.random(in: 0...1_000_000, using: &random))".utf8).withUnsafeBytes { try incoming.append($0) }
        _ = try store.put(name, incoming, ObjectAttributes())
        if count % 50 == 0 { _ = try store.sweep() }
      }
      return []
    }
  }

  @Test func copiesAreCompleteDuringWrites() async throws {
    let files = try TestFiles()
    let directory = try TemporaryDirectory()
    for index in 0..<50 { try files.put("kept/\(index)", "content \(index % 40)") }
    let store = files.store
    let load = Load()
    let problems = try await withThrowingTaskGroup(of: [String].self) { group in
      group.addTask { try load.run(store) }
      group.addTask {
        defer { load.isOver.store(true, ordering: .relaxed) }
        return try (0..<15).flatMap { round in
          let path = "\(directory.path)/\(round)"
          let backup = try Self.copy(store, to: path)
          let check = try Self.check(path)
          var problems = backup.problems + check.problems
          if check.objects != backup.objects || check.contents != backup.contents || check.orphans > 0 {
            problems.append("copied \(backup), found \(check)")
          }
          return problems
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(problems.isEmpty, "\(problems.prefix(5))")
    // Content that was locked during the copies is removed now.
    try files.store.maintain()
    let own = try FilesCheck(files.store.metadata, files.store.contents)
    #expect(own.problems.isEmpty && own.orphans == 0)
    #expect(Self.contentFiles(files.path).count == own.contents)
  }

  @Test func contentLockPreventsRemoval() throws {
    let files = try TestFiles()
    try files.put("a", "one")
    var contentLock: ContentLock? = try ContentLock(files.path)
    try files.put("a", "two")
    try files.store.delete(TestFiles.name("a"))
    #expect(Self.contentFiles(files.path).count == 2)
    #expect(try files.store.sweep() == 0)
    try files.store.maintain()
    #expect(Self.contentFiles(files.path).count == 2)
    // A child process that is just being started has a copy of the lock's descriptor for a moment.
    let lock = URL(filePath: files.path).lastPathComponent + "/content.lock"
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      let place = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
      return place?.hasSuffix(lock) == true
    }
    let copy = dup(try #require(descriptors.first.flatMap { Int32($0) }))
    defer { close(copy) }
    #expect(contentLock != nil)
    contentLock = nil
    try files.store.maintain()
    #expect(Self.contentFiles(files.path).isEmpty)
  }

  @Test func contentOfAnEarlierCopyIsLinked() throws {
    let files = try TestFiles()
    let directory = try TemporaryDirectory()
    let (first, second) = (directory.path + "/1", directory.path + "/2")
    try files.put("a", "one")
    try files.put("b", "one")
    try files.store.beginUpload(UploadRecord(name: TestFiles.name("u"), attributes: ObjectAttributes()))
    #expect(try Self.copy(files.store, to: first).contents == 1)
    try files.put("c", "two")
    let backup = try Self.copy(files.store, to: second, earlier: first)
    #expect(backup.objects == 3 && backup.contents == 2 && backup.bytes == 6)
    let shared = try #require(Self.contentFiles(first).first)
    var status = stat()
    #expect(stat("\(second)/content/\(shared)", &status) == 0 && status.st_nlink == 2)
    let check = try Self.check(second)
    #expect(check.problems.isEmpty && check.uploads == 0 && check.contents == 2)
  }

  @Test(arguments: ["flipped", "longer", "shorter", "missing", "checksum", "count", "record"])
  func damageIsReported(kind: String) throws {
    let files = try TestFiles()
    try files.put("ok", "fine")
    let object = try files.put("bad/one", "these bytes")
    try files.put("bad/two", "these bytes")
    let file = files.store.contents.file(of: object.content.digest)
    var expected = "b/bad/one: "
    switch kind {
    case "flipped": try "those bytes".write(toFile: file, atomically: false, encoding: .utf8)
    case "longer": try "these bytes and".write(toFile: file, atomically: false, encoding: .utf8)
    case "shorter": truncate(file, 3)
    case "missing": unlink(file)
    default:
      try files.store.change { (transaction, _, _) throws(FilesError) in
        switch kind {
        case "checksum":
          var wrong = object
          wrong.content.crc32c ^= 1
          try transaction.write(FilesKeySpace.object(wrong.name), ObjectRecord.encode(wrong))
        case "record": try transaction.write(FilesKeySpace.object(object.name), [5, 200])
        default: _ = try transaction.count(object.content, by: 1)
        }
      }
      if kind == "count" { expected = "the reference counts of content are wrong" }
    }
    let check = try FilesCheck(files.store.metadata, files.store.contents)
    #expect(check.problemCount > 0 && check.problems.contains { $0.hasPrefix(expected) }, "\(check.problems)")
    #expect(!check.problems.contains { $0.contains("b/ok") })
    let directory = try TemporaryDirectory()
    let backup = try Self.copy(files.store, to: directory.path)
    // A copy keeps everything that can be read, and reports the rest.
    #expect(backup.problems.isEmpty == ["checksum", "count", "record"].contains(kind))
    #expect(try Self.check(directory.path).problemCount > 0)
  }

  @Test func filesAreCounted() throws {
    let files = try TestFiles()
    try files.put("a", "four")
    try files.put("b", "four")
    try files.put("c", "seven!!", bucket: "other")
    #expect(try files.store.statistics().values == [2, 3, 15, 2, 11, 0])
    #expect(FilesStatistics([2, 3, 15, 2, 11]) == (try files.store.statistics()))
  }
}
