import Foundation
import KeyValue
import LMDBEngine
import Testing
import TestSupport

/// Full disks, and callers that break the contract. Each test runs in a child process.
@Suite struct FailureTests {
  /// Replaces LMDB's descriptors of a data file with one that always reports a full disk.
  ///
  /// LMDB has two: one that syncs each write, for meta pages, and one for everything else.
  private struct FullDisk {
    private var replaced: [(number: Int32, original: Int32)] = []

    init(path: String, metaPages: Bool) throws {
      let full = open("/dev/full", O_RDWR)
      var file = stat()
      try #require(stat(path, &file) == 0)
      let numbers = (0..<Int32(256)).filter { number in
        var other = stat()
        return fstat(number, &other) == 0 && other.st_ino == file.st_ino && other.st_dev == file.st_dev
          && (fcntl(number, F_GETFL) & O_DSYNC != 0) == metaPages
      }
      try #require(numbers.count == 1, "\(numbers)")
      replaced = numbers.map { ($0, dup($0)) }
      for number in numbers { dup2(full, number) }
    }

    func end() {
      for (number, original) in replaced { dup2(original, number) }
    }
  }

  /// A command does not know the limit of the server whose file it opens.
  @Test func optionsOfCommandsLeaveRoomToGrow() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("large")
    _ = FileManager.default.createFile(atPath: file, contents: nil)
    #expect(truncate(file, 100 << 30) == 0)
    #expect(LMDBOptions(path: file).withRoom().mapBytes == 200 << 30)
    #expect(LMDBOptions(path: directory.file("missing")).withRoom().mapBytes == 64 << 30)
  }

  @Test func aFullDiskFailsOnlyTheCommit() async {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let path = directory.file("data.mdb")
      let store = try LMDBStore.open(LMDBOptions(path: path))
      try store.put([Entry([1], [1])])
      let disk = try FullDisk(path: path, metaPages: false)
      let entries = [Entry([1], [2]), Entry([2], Bytes(repeating: 2, count: 50_000))]
      #expect(throws: StorageError.diskFull(path: path)) { try store.put(entries) }
      try #require(try store.entries() == [Entry([1], [1])])
      disk.end()
      try store.put(entries)
      try #require(try store.entries() == entries)
      _ = try store.verify()
    }
  }

  @Test func aFailedMetaPageStopsTheStoreWithAClearError() async {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let path = directory.file("data.mdb")
      var store: LMDBStore? = try LMDBStore.open(LMDBOptions(path: path))
      try store?.put([Entry([1], [1])])
      let disk = try FullDisk(path: path, metaPages: true)
      #expect(throws: StorageError.diskFull(path: path)) { try store?.put([Entry([1], [2])]) }
      disk.end()
      for _ in 0..<2 {
        do {
          try store?.put([Entry([1], [3])])
          Issue.record("wrote after a fatal error")
        } catch StorageError.corruption(_, let detail) {
          try #require(detail.contains("restart"))
        }
      }
      // A restart.
      store = nil
      store = try LMDBStore.open(LMDBOptions(path: path))
      try #require(try store?.entries() == [Entry([1], [1])])
      try store?.put([Entry([1], [4])])
    }
  }

  @Test func aWriteInsideAWriteTraps() async {
    await #expect(processExitsWith: .failure) {
      let store = try LMDBStore.open(.inMemory())
      try store.write { _ throws(StorageError) in try store.put([Entry([1], [1])]) }
    }
  }

  @Test func steppingACursorAfterAWriteTraps() async {
    await #expect(processExitsWith: .failure) {
      let store = try LMDBStore.open(.inMemory())
      try store.write { transaction throws(StorageError) in
        try transaction.put([1], [1])
        let cursor = try transaction.makeCursor()
        _ = try cursor.seek(atOrAfter: [1])
        try transaction.put([2], [2])
        _ = try cursor.next()
      }
    }
  }

  @Test func usingASnapshotOrItsCursorAfterItsEndTraps() async {
    await #expect(processExitsWith: .failure) {
      let snapshot = try LMDBStore.open(.inMemory()).snapshot()
      snapshot.end()
      _ = try snapshot.get([1])
    }
    await #expect(processExitsWith: .failure) {
      let store = try LMDBStore.open(.inMemory())
      try store.put([Entry([1], [1]), Entry([2], [2])])
      let snapshot = try store.snapshot()
      let cursor = try snapshot.makeCursor()
      _ = try cursor.seek(atOrAfter: [1])
      snapshot.end()
      _ = try cursor.next()
    }
  }
}
