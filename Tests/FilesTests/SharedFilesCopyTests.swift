import ContentSharing
import Foundation
import Glibc
import LMDBEngine
import Testing
import TestSupport

@testable import Files

/// The content of files in a copy of a cluster.
@Suite struct SharedFilesCopyTests {
  private let shared = MemoryContent()
  private let node: SharedNode
  private let directory: TemporaryDirectory
  private let contents: ContentDirectory

  init() throws {
    node = try SharedNode(shared)
    directory = try TemporaryDirectory()
    contents = try ContentDirectory(directory.path)
  }

  private func copy() throws -> SharedFilesCopy {
    let metadata = try LMDBStore.open(LMDBOptions(path: node.copyMetadata(), readOnly: true))
    return try SharedFilesCopy(of: metadata, from: shared, to: contents, progress: { _ in })
  }

  private func digest(_ name: String, _ text: String) throws -> ContentDigest {
    try node.put(name, text).content.digest
  }

  /// The texts of the contents in the copy, sorted.
  private var texts: [String] {
    (UInt8.min...UInt8.max).flatMap { contents.digests(part: $0) }.compactMap {
      try? String(contentsOfFile: contents.file(of: $0), encoding: .utf8)
    }.sorted()
  }

  @Test func onlyContentThatIsMissingIsFetched() throws {
    _ = (try digest("a", "one"), try digest("b", "three"))
    let first = try copy()
    #expect(first.contents == 2 && first.fetched == 2 && first.bytes == 8 && first.problemCount == 0)
    #expect(texts == ["one", "three"])
    _ = try digest("c", "new")
    try node.store.delete(TestFiles.name("a"))
    let second = try copy()
    #expect(second.contents == 2 && second.fetched == 1 && second.bytes == 3)
    #expect(texts == ["new", "three"])
    #expect(try copy().fetched == 0)
  }

  /// A killed run left a part of the same content.
  @Test func aRunThatWasKilledIsNoObstacle() throws {
    let digest = try digest("a", "one")
    try Data("o".utf8).write(to: URL(filePath: "\(directory.path)/incoming/\(digest.text)"))
    #expect(try copy().fetched == 1)
    #expect(texts == ["one"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/incoming").isEmpty)
  }

  @Test func contentWithoutAnIntactCopyIsNamed() throws {
    let digest = try digest("a", "one")
    _ = try self.digest("b", "two")
    shared.change { bytes in if bytes == Array("one".utf8) { bytes[0] = 0 } }
    let damaged = try copy()
    #expect(damaged.fetched == 1 && damaged.problemCount == 1)
    #expect(damaged.problems == ["the test has no intact copy of the content with the SHA-256 \(digest.text)"])
    #expect(texts == ["two"])
    // Another upload of the content makes an intact copy beside the damaged one.
    let file = directory.file("one")
    try Data("one".utf8).write(to: URL(filePath: file))
    try shared.publish(SharedCopy(of: digest), fromFile: file, size: 3)
    #expect(shared.copies.count == 3)
    #expect(try copy().problemCount == 0)
    #expect(texts == ["one", "two"])
  }

  @Test(arguments: [nil, 99] as [UInt64?]) func anotherPlaceIsNoObstacleIfNothingIsFetched(identity: UInt64?) throws {
    _ = try digest("a", "one")
    #expect(try copy().fetched == 1)
    shared.setIdentity(identity)
    // Nothing is needed from there.
    #expect(try copy().fetched == 0)
    try node.store.delete(TestFiles.name("a"))
    #expect(try copy().contents == 0 && texts.isEmpty)
  }

  @Test(arguments: [nil, 99] as [UInt64?]) func contentIsNotTakenFromAnotherPlace(identity: UInt64?) throws {
    _ = try digest("a", "one")
    shared.setIdentity(identity)
    #expect {
      try copy()
    } throws: { "\($0)".contains("the test is not the place of these files; name it with --shared-files") }
  }

  /// A backup of a copy does not belong to the place of the cluster.
  @Test func aBackupForgetsThePlace() throws {
    _ = try digest("a", "one")
    _ = try copy()
    let backup = try TemporaryDirectory()
    let file = backup.file("data.mdb")
    try LMDBStore.open(LMDBOptions(path: node.copyMetadata(), readOnly: true)).copy(toFile: file)
    let made = try FilesBackup(
      of: LMDBStore.open(LMDBOptions(path: file)), from: contents, to: try ContentDirectory(backup.path))
    #expect(made.objects == 1 && made.problemCount == 0)
    let other = MemoryContent()
    let restored = try SharedNode(other, in: backup)
    #expect(try restored.store.shareStored().contents == 1)
    #expect(try restored.text("a") == "one" && other.copies.count == 1)
  }
}
