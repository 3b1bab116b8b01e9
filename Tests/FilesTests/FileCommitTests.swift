import Foundation
import Glibc
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport

@testable import Files

/// A file and documents change together, or neither does, whatever the document store reports and whenever a crash
/// happens.
@Suite struct FileCommitTests {
  /// Replaces the document store: contains the number of the last commit.
  private final class Documents: Sendable {
    private let mark = Mutex<UInt64>(0)

    func commit(_ number: UInt64) { mark.withLock { $0 = number } }
    func wasCommitted(_ number: UInt64) -> Bool { mark.withLock { $0 == number } }
  }

  private static func open(_ path: String, _ documents: Documents) throws -> FileStore {
    var configuration = FileStore.Configuration { 1_700_000_000_000_000 }
    configuration.makesBuckets = true
    configuration.wasCommitted = { (database, number) throws(FilesError) in
      guard database == "p/d" else { throw .invalid(database) }
      return documents.wasCommitted(number)
    }
    return try TestFiles.open(path, configuration)
  }

  private static func put(
    _ text: String, _ store: FileStore, _ run: @escaping (UInt64) throws(FilesError) -> Void
  ) throws -> StoredObject {
    let incoming = try store.makeIncoming()
    try Array(text.utf8).withUnsafeBytes { try incoming.append($0) }
    return try store.put(
      name, incoming, ObjectAttributes(), with: DocumentsCommit(database: "p/d", run: run))
  }

  private static let name = TestFiles.name("a")

  private static func text(_ store: FileStore) throws -> String? {
    guard let (object, descriptor) = try store.open(name) else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: object.content.size)
    let count = read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// Expects no problems and no content without an object.
  private static func expectClean(_ store: FileStore) throws {
    let check = try FilesCheck(store.metadata, store.contents)
    #expect(check.problems.isEmpty && check.orphans == 0 && check.objects == check.contents, "\(check)")
  }

  @Test func objectAppearsWithTheDocuments() throws {
    let directory = try TemporaryDirectory()
    let documents = Documents()
    let store = try Self.open(directory.path, documents)
    for (before, text) in [(nil, "one"), ("one", "two")] as [(String?, String)] {
      var seen: [String?] = []
      let object = try Self.put(text, store) { (number) throws(FilesError) in
        seen.append(try? Self.text(store))
        documents.commit(number)
        seen.append(try? Self.text(store))
      }
      #expect(seen == [before, text])
      #expect(try store.object(Self.name) == object)
      #expect(try store.list(ObjectListing(bucket: "b")).objects == [object])
      try Self.expectClean(store)
    }
  }

  @Test(arguments: [false, true]) func documentCommitDecides(isCommitted: Bool) throws {
    let directory = try TemporaryDirectory()
    let documents = Documents()
    let store = try Self.open(directory.path, documents)
    _ = try Self.put("one", store) { (number) throws(FilesError) in documents.commit(number) }
    // The commit throws. Only the stored number shows whether it succeeded.
    let outcome = Result {
      try Self.put("two", store) { (number) throws(FilesError) in
        if isCommitted { documents.commit(number) }
        throw .commitRefused(code: 6, message: "no")
      }
    }
    #expect(try Self.text(store) == (isCommitted ? "two" : "one"))
    switch outcome {
    case .success: #expect(isCommitted)
    case .failure(let error):
      #expect(!isCommitted && error as? FilesError == .commitRefused(code: 6, message: "no"))
    }
    try Self.expectClean(store)
    // Other writes still work.
    try store.delete(Self.name)
    try Self.expectClean(store)
  }

  @Test(arguments: ["before the documents", "after the documents"])
  func crashLeavesBothOrNeither(moment: String) throws {
    let directory = try TemporaryDirectory()
    let documents = Documents()
    let store = try Self.open(directory.path + "/own", documents)
    let crashed = directory.path + "/crashed"
    _ = try Self.put("one", store) { (number) throws(FilesError) in documents.commit(number) }
    _ = try? Self.put("two", store) { (number) throws(FilesError) in
      if moment == "after the documents" { documents.commit(number) }
      // The current files are those that a crash would leave.
      try? FileManager.default.createDirectory(atPath: crashed, withIntermediateDirectories: true)
      try? FileManager.default.copyItem(atPath: directory.path + "/own/content", toPath: crashed + "/content")
      try? store.metadata.copy(toFile: crashed + "/data.mdb")
      throw .commitRefused(code: 13, message: "gone")
    }
    let image = try Self.open(crashed, documents)
    #expect(try Self.text(image) == (moment == "after the documents" ? "two" : "one"))
    _ = try image.sweep()
    try Self.expectClean(image)
  }

  @Test func undecidedCommitStaysPending() throws {
    let directory = try TemporaryDirectory()
    let isDown = Mutex(false)
    var configuration = FileStore.Configuration { 1_700_000_000_000_000 }
    configuration.makesBuckets = true
    configuration.wasCommitted = { (_, _) throws(FilesError) in
      if isDown.withLock({ $0 }) { throw .full }
      return true
    }
    let store = try TestFiles.open(directory.path, configuration)
    #expect(throws: FilesError.full) {
      try Self.put("one", store) { (_) throws(FilesError) in
        isDown.withLock { $0 = true }
        throw .commitRefused(code: 13, message: "lost")
      }
    }
    #expect(throws: FilesError.full) { try store.object(Self.name) }
    #expect(throws: FilesError.full) { try store.delete(Self.name) }
    #expect(try store.object(TestFiles.name("other")) == nil)
    isDown.withLock { $0 = false }
    #expect(try Self.text(store) == "one")
    #expect(try store.list(ObjectListing(bucket: "b")).objects.count == 1)
    try Self.expectClean(store)
  }
}
