import Foundation
import Glibc
import KeyValue
import LMDBEngine
import Testing
import TestSupport

@Suite struct LockTests {
  @Test func aProcessOpensAFileOnlyOnce() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    var store: LMDBStore? = try LMDBStore.open(LMDBOptions(path: path))
    let otherName = directory.file("other.mdb")
    try FileManager.default.createSymbolicLink(atPath: otherName, withDestinationPath: path)
    for name in [path, otherName] {
      #expect {
        try LMDBStore.open(LMDBOptions(path: name))
      } throws: { error in
        guard case StorageError.locked(name, let holder) = error else { return false }
        return holder.contains("this process")
      }
    }
    // A snapshot keeps the store open. Ending it releases the store.
    let snapshot = try store?.snapshot()
    store = nil
    #expect(throws: StorageError.self) { try LMDBStore.open(LMDBOptions(path: path)) }
    snapshot?.end()
    store = try LMDBStore.open(LMDBOptions(path: path))
    try store?.put([Entry([1], [1])])
  }

  /// The file system gives the inode of a removed file to a new one as soon as the removed one is closed.
  @Test func aNewFileIsNotTakenForARemovedOne() throws {
    let directory = try TemporaryDirectory()
    let failures = startThreads(4) { thread -> [String] in
      (0..<200).compactMap { number in
        let path = directory.file("\(thread)-\(number).mdb")
        do {
          let store = try LMDBStore.open(LMDBOptions(path: path, mapBytes: 1 << 20))
          unlink(path)
          unlink("\(path)-lock")
          withExtendedLifetime(store) {}
          return nil
        } catch { return "\(error)" }
      }
    }()
    #expect(failures.flatMap { $0 }.isEmpty, "\(failures)")
  }

  @Test func aDataDirectoryHasOneHolder() throws {
    let directory = try TemporaryDirectory()
    var lock: DataDirectoryLock? = try DataDirectoryLock(directory: directory.path)
    try lock?.announce(serverURL: "http://127.0.0.1:8080")
    let holder = "hearth, process \(getpid()) (http://127.0.0.1:8080)"
    #expect(throws: StorageError.locked(path: directory.path, holder: holder)) {
      try DataDirectoryLock(directory: directory.path)
    }
    lock = nil
    lock = try DataDirectoryLock(directory: directory.path)
    #expect(throws: StorageError.locked(path: directory.path, holder: "hearth, process \(getpid())")) {
      try DataDirectoryLock(directory: directory.path)
    }
    _ = lock
  }

  /// A second close would be that of a file which another thread opened meanwhile.
  @Test func aRefusedLockClosesItsFileOnce() throws {
    let directory = try TemporaryDirectory()
    let lock = try DataDirectoryLock(directory: directory.path)
    let failures = startThreads(4) { thread -> Int in
      (0..<20_000).count { _ in
        if thread == 0 { return (try? DataDirectoryLock(directory: directory.path)) != nil }
        return close(open("/dev/null", O_RDONLY | O_CLOEXEC)) != 0
      }
    }()
    #expect(failures == [0, 0, 0, 0])
    withExtendedLifetime(lock) {}
  }

  /// A child process that is just being started has copies of all descriptors for a moment.
  @Test func aLockEndsEvenIfItsDescriptorWasCopied() throws {
    let directory = try TemporaryDirectory()
    var lock: DataDirectoryLock? = try DataDirectoryLock(directory: directory.path)
    let file = URL(filePath: directory.path).lastPathComponent + "/" + DataDirectoryLock.fileName
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      let place = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
      return place?.hasSuffix(file) == true
    }
    let copy = dup(try #require(descriptors.first.flatMap { Int32($0) }))
    defer { close(copy) }
    #expect(lock != nil)
    lock = nil
    lock = try DataDirectoryLock(directory: directory.path)
  }

  @Test func anotherProcessHoldsADataDirectoryUntilItEnds() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file(DataDirectoryLock.fileName)
    try Data("process 7 (http://[::1]:9)\n".utf8).write(to: URL(filePath: file))
    let child = Process()
    child.executableURL = URL(filePath: "/usr/bin/flock")
    child.arguments = ["--no-fork", file, "sh", "-c", "echo ready; read line"]
    let (input, output) = (Pipe(), Pipe())
    child.standardInput = input
    child.standardOutput = output
    try child.run()
    #expect(try output.fileHandleForReading.read(upToCount: 5) == Data("ready".utf8))
    #expect(throws: StorageError.locked(path: directory.path, holder: "hearth, process 7 (http://[::1]:9)")) {
      try DataDirectoryLock(directory: directory.path)
    }
    kill(child.processIdentifier, SIGKILL)
    child.waitUntilExit()
    _ = try DataDirectoryLock(directory: directory.path)
  }

  @Test func errorsNameAMissingDirectory() throws {
    let directory = try TemporaryDirectory()
    let missing = directory.file("nowhere")
    #expect(
      throws: StorageError.system(
        operation: "open", path: "\(missing)/\(DataDirectoryLock.fileName)", code: ENOENT)
    ) {
      try DataDirectoryLock(directory: missing)
    }
    #expect(throws: StorageError.self) { try LMDBStore.open(LMDBOptions(path: "\(missing)/data.mdb")) }
  }
}
