import Basics
import KeyValue
import Synchronization
import Testing
import TestSupport

@testable import Files

/// The bytes of objects that quotas count: they equal a scan after everything that can change them.
@Suite struct FileUseTests {
  private let quota = Quota(.files, of: "p", limit: 10_000)

  private func files(versions: Bool = false) throws -> TestFiles {
    let files = try TestFiles { [quota] in $0.quota = quota }
    if versions { _ = try files.store.makeBucket("b") { $0.keepsVersions = true } }
    return files
  }

  /// Expects that the stored sum, the quota and a scan agree, and returns the bytes.
  @discardableResult
  private func bytes(_ files: TestFiles) throws -> Int {
    let snapshot = try files.store.metadata.snapshot()
    defer { snapshot.end() }
    let counted = try snapshot.countedUse()
    #expect(try snapshot.storedUse() == counted && quota.used == counted)
    #expect(try files.store.statistics().objectBytes == counted)
    return counted
  }

  @Test func everyChangeOfObjectsCounts() throws {
    let files = try files()
    #expect(try bytes(files) == 0)
    try files.put("a", "12345")
    try files.put("b", "12345")
    #expect(try bytes(files) == 10, "shared content counts for each object")
    try files.put("a", "123")
    #expect(try bytes(files) == 8)
    _ = try files.store.copy(TestFiles.name("a"), to: TestFiles.name("c")) { _ in }
    _ = try files.store.move(TestFiles.name("b"), to: TestFiles.name("c"))
    #expect(try bytes(files) == 8)
    _ = try files.store.update(TestFiles.name("a")) { $0.contentType = "text/plain" }
    _ = try files.store.compose(
      [ComposedPart(name: "a"), ComposedPart(name: "c")], to: TestFiles.name("d"), ObjectAttributes(),
      conditions: ObjectConditions(), removesParts: true)
    #expect(try bytes(files) == 8)
    try files.reopen()
    #expect(try bytes(files) == 8)
    try files.store.delete(TestFiles.name("d"))
    #expect(try bytes(files) == 0)
  }

  @Test func keptVersionsCount() throws {
    let files = try files(versions: true)
    let first = try files.put("a", String(repeating: "x", count: 4000))
    try files.put("a", String(repeating: "y", count: 4000))
    #expect(try bytes(files) == 8000)
    // The replaced object stays as a version, so the new one is growth.
    #expect(throws: FilesError.overQuota(quota.error)) { try files.put("a", String(repeating: "z", count: 4000)) }
    try files.store.delete(TestFiles.name("a"))
    #expect(try bytes(files) == 8000)
    try files.store.delete(TestFiles.name("a"), generation: first.generation)
    #expect(try bytes(files) == 4000)
  }

  @Test func growthBeyondTheQuotaChangesNothing() throws {
    let files = try files()
    try files.put("a", String(repeating: "x", count: 6000))
    #expect(throws: FilesError.overQuota(quota.error)) { try files.put("b", String(repeating: "y", count: 6000)) }
    #expect(throws: FilesError.overQuota(quota.error)) {
      try files.store.copy(TestFiles.name("a"), to: TestFiles.name("c")) { _ in }
    }
    #expect(try bytes(files) == 6000 && files.store.object(TestFiles.name("b")) == nil)
    try files.put("a", String(repeating: "x", count: 10_000))
    quota.setLimit(100)
    try files.put("a", String(repeating: "x", count: 9000))
    #expect(throws: FilesError.self) { try files.put("a", String(repeating: "x", count: 9001)) }
    #expect(try bytes(files) == 9000 && quota.refusals == 3)
    #expect(try FilesCheck(files.store.metadata, files.store.contents).problems.isEmpty)
  }

  @Test func concurrentUploadsFillTheQuotaAndNoMore() throws {
    let files = try files()
    let stored = Mutex(0)
    let store = files.store
    onThreads(6) { thread in
      for round in 0..<20 {
        do {
          let incoming = try store.makeIncoming()
          let content = [UInt8](repeating: UInt8(round), count: 300)
          try content.withUnsafeBytes { try incoming.append($0) }
          _ = try store.put(TestFiles.name("\(thread)-\(round)"), incoming, ObjectAttributes())
          stored.withLock { $0 += 1 }
        } catch FilesError.overQuota { continue } catch { Issue.record("\(error)") }
      }
    }
    #expect(stored.withLock { $0 } == 33)
    #expect(try bytes(files) == 9900)
  }

  @Test func failedTransactionLeavesTheSum() throws {
    let files = try files()
    try files.put("a", "12345")
    files.faults.failWrites(.diskFull(path: "x"), times: 3)
    #expect(throws: FilesError.full) { try files.put("b", "123") }
    files.faults.failWrites(.diskFull(path: "x"), times: 0)
    try files.put("c", "1")
    #expect(try bytes(files) == 6)
  }

  @Test func storeOfAnOlderReleaseIsCounted() throws {
    let files = try files()
    try files.put("a", "12345")
    try files.store.change { (transaction, _, _) throws(FilesError) in try transaction.erase(FilesKeySpace.use) }
    try files.reopen()
    #expect(try bytes(files) == 5)
  }
}
