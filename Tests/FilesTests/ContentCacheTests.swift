import ContentSharing
import Files
import Foundation
import Glibc
import KeyValue
import Synchronization
import Testing
import TestSupport

/// The content directory as a cache of the shared content: one fetch, no partial file, a limit, and damage that is noticed.
@Suite struct ContentCacheTests {
  private let shared = MemoryContent()

  /// Returns the successor of a node, with an empty cache.
  private func successor(of node: SharedNode, cache: Int = .max) throws -> SharedNode {
    try SharedNode(shared, metadata: try node.copyMetadata(), cache: cache)
  }

  @Test func concurrentFirstReadsFetchOnce() throws {
    let owner = try SharedNode(shared)
    let text = String(repeating: "all want it. ", count: 1000)
    try owner.put("a", text)
    let node = try successor(of: owner)
    // The fetch continues when all readers have begun.
    let begun = Observed(0)
    shared.before { call in
      if call == .fetch { _ = begun.wait { $0 == 100 } }
      return nil
    }
    let texts = Mutex<[String?]>([])
    let threads = (0..<100).map { _ in
      Thread {
        begun.update { $0 += 1 }
        let found = try? node.text("a")
        texts.withLock { $0.append(found) }
      }
    }
    for thread in threads { thread.start() }
    #expect(OtherProcess.eventually { texts.withLock { $0.count == 100 } })
    #expect(texts.withLock { $0.allSatisfy { $0 == text } })
    #expect(shared.count(.fetch) == 1)
    #expect(try node.text("a") == text)
    #expect(shared.count(.fetch) == 1)
  }

  @Test func brokenFetchLeavesNothing() throws {
    let owner = try SharedNode(shared)
    let text = String(repeating: "x", count: 5000)
    try owner.put("a", text)
    let node = try successor(of: owner)
    #expect(throws: FilesError.notCached) { try node.store.open(TestFiles.name("a"), waits: false) }
    // The connection breaks after the first piece.
    shared.after { $0 == .fetch ? .unavailable("broken") : nil }
    #expect(throws: FilesError.sharedContent("broken")) { try node.text("a") }
    #expect(node.cached.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: node.directory.file("incoming")).isEmpty)
    shared.after(nil)
    #expect(try node.text("a") == text)
    #expect(try node.store.open(TestFiles.name("a"), waits: false).map { TestFiles.read($0.descriptor) } == text)
  }

  @Test(arguments: ["changed", "longer", "shorter", "missing"])
  func damagedCopyIsNoticedAndReplaced(damage: String) throws {
    let owner = try SharedNode(shared)
    try owner.put("a", "precious")
    switch damage {
    case "changed": shared.change { $0[0] ^= 1 }
    case "longer": shared.change { $0.append(0) }
    case "shorter": shared.change { $0.removeLast() }
    default: shared.removeAll()
    }
    let node = try successor(of: owner)
    #expect(throws: FilesError.damaged(TestFiles.name("a"))) { try node.text("a") }
    #expect(node.cached.isEmpty)
    // An upload of the same content repairs the object, although an object refers to the content.
    try node.put("b", "precious")
    #expect(try node.text("a") == "precious")
    #expect(try successor(of: node).text("a") == "precious")
  }

  @Test func damagedCacheIsFetchedAgain() throws {
    let owner = try SharedNode(shared)
    try owner.put("a", "precious")
    let file = try #require(owner.cached.first)
    func damage(_ text: String) throws {
      chmod(file, 0o600)
      try Data(text.utf8).write(to: URL(fileURLWithPath: file))
      chmod(file, 0o400)
    }
    // Every read sees another length.
    try damage("short")
    #expect(try owner.text("a") == "precious")
    #expect(shared.count(.fetch) == 1)
    try damage("preciouS")
    #expect(try owner.store.verifyCache() == 1)
    #expect(try owner.text("a") == "precious")
    #expect(try owner.store.verifyCache() == 0)
  }

  @Test func trimKeepsWhatIsReadOrNotShared() throws {
    let owner = try SharedNode(shared, cache: 50_000)
    let texts = (0..<20).map { String(repeating: "\($0 % 10)", count: 5000 + $0) }
    // Trims in the background are of no consequence: the limit is not exceeded before.
    for number in 0..<9 { try owner.put("n\(number)", texts[number]) }
    let (object, held) = try #require(try owner.store.open(TestFiles.name("n0")))
    for number in 9..<20 { try owner.put("n\(number)", texts[number]) }
    #expect(OtherProcess.eventually { owner.store.trimCache() == 0 && owner.cached.count <= 10 })
    #expect(owner.cached.contains(owner.store.contents.file(of: object.content.digest)), "it is being read")
    #expect(TestFiles.read(held) == texts[0])
    // The newest ones stay.
    #expect(owner.cached.contains { $0 == owner.store.contents.file(of: digest(owner, "n19")) })
    #expect(!owner.cached.contains { $0 == owner.store.contents.file(of: digest(owner, "n1")) })
    for number in 0..<20 { #expect(try owner.text("n\(number)") == texts[number]) }
  }

  private func digest(_ node: SharedNode, _ name: String) -> ContentDigest {
    (try? node.store.object(TestFiles.name(name)))?.content.digest ?? ContentDigest(bytes: [])
  }

  @Test func readersAndTrimsDoNotDisturbEachOther() throws {
    let owner = try SharedNode(shared, cache: 30_000)
    let texts = (0..<12).map { String(repeating: "\($0),", count: 3000) }
    for (number, text) in texts.enumerated() { try owner.put("n\(number)", text) }
    let wrong = Mutex<[String]>([])
    let done = Observed(0)
    for reader in 0..<6 {
      Thread {
        var random = SplitMix(seed: UInt64(reader))
        for _ in 0..<200 {
          let number = Int.random(in: 0..<12, using: &random)
          do {
            if try owner.text("n\(number)") != texts[number] { wrong.withLock { $0.append("n\(number)") } }
          } catch { wrong.withLock { $0.append("n\(number): \(error)") } }
          if random.chance(oneIn: 5) { owner.store.trimCache() }
        }
        done.update { $0 += 1 }
      }.start()
    }
    #expect(done.wait { $0 == 6 })
    #expect(wrong.withLock { $0 } == [])
  }

  // MARK: Sweeps

  @Test func contentOfDeletedObjectsStaysAnHour() throws {
    let owner = try SharedNode(shared)
    try owner.put("a", "gone")
    try owner.put("b", "kept")
    try owner.store.delete(TestFiles.name("a"))
    #expect(try owner.store.sweepShared() == 0)
    owner.advance(seconds: 3599)
    #expect(try owner.store.sweepShared() == 0)
    owner.advance(seconds: 1)
    #expect(try owner.store.sweepShared() == 1)
    #expect(shared.copies.count == 1)
    #expect(try successor(of: owner).text("b") == "kept")
  }

  /// The sweep has decided to remove a copy, and an upload of the same content comes before the removal.
  @Test func uploadDuringARemovalKeepsItsCopy() throws {
    let owner = try SharedNode(shared)
    try owner.put("a", "again")
    try owner.store.delete(TestFiles.name("a"))
    _ = try owner.store.sweepShared()
    owner.advance(seconds: 3600)
    let uploads = Mutex(0)
    shared.before { call in
      guard call == .remove,
        uploads.withLock({
          $0 += 1; return $0 == 1
        })
      else { return nil }
      _ = try? owner.put("b", "again")
      return nil
    }
    #expect(try owner.store.sweepShared() == 1)
    #expect(uploads.withLock { $0 } == 1)
    #expect(try successor(of: owner).text("b") == "again")
    // The new copy is not removed later either.
    owner.advance(seconds: 7200)
    #expect(try owner.store.sweepShared() == 0)
    #expect(try successor(of: owner).text("b") == "again")
  }

  /// The last other object with the content vanishes between the look and the transaction.
  @Test func uploadThatReliedOnAnotherObjectMakesACopy() throws {
    let owner = try SharedNode(shared)
    try owner.put("a", "same")
    try owner.put("c", "other")
    let isFirst = Mutex(true)
    shared.before { call in
      // The upload of "b" has begun.
      guard call == .publish,
        isFirst.withLock({
          let first = $0; $0 = false; return first
        })
      else { return nil }
      Issue.record("the upload needs no copy at first")
      return nil
    }
    owner.whenObjectWaits {
      owner.whenObjectWaits(nil)
      shared.before(nil)
      try? owner.store.delete(TestFiles.name("a"))
    }
    try owner.put("b", "same")
    #expect(shared.copies.keys.filter { $0.digest == digest(owner, "b") }.count == 2)
    #expect(try successor(of: owner).text("b") == "same")
  }

  /// A node that was the owner before decides nothing.
  @Test func staleNodeRemovesNothing() throws {
    let owner = try SharedNode(shared)
    try owner.put("z", "old")
    let stale = try successor(of: owner)
    try owner.put("a", "new")
    #expect(try stale.store.sweepShared() == 0)
    stale.advance(seconds: 4000)
    stale.faults.failWrites(.diskFull(path: "not the owner"), times: 1)
    #expect(throws: FilesError.self) { try stale.store.sweepShared() }
    #expect(try owner.text("a") == "new")
    #expect(shared.copies.count == 2)
  }
}
