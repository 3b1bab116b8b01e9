import DocumentModel
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport
@testable import DocumentStore

@Suite struct RegistryTests {
  /// Opens stores and counts the openings. The data survives closing, because it is in files.
  private final class Files: Sendable {
    let opened = Mutex<[DatabaseID: Int]>([:])
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    func open(_ id: DatabaseID) throws(StorageError) -> (any KeyValueStore)? {
      guard id.project != "undeclared" else { return nil }
      opened.withLock { $0[id, default: 0] += 1 }
      return try LMDBStore.open(LMDBOptions(path: "\(directory.path)/\(id.project)-\(id.database)", mapBytes: 16 << 20))
    }
  }

  private func make(idleSeconds: Int?) throws -> (DatabaseRegistry, Files, SteppedTime) {
    let (files, time) = (try Files(), SteppedTime())
    let registry = DatabaseRegistry(clock: Clock { time.now }, idleSeconds: idleSeconds) { (id) throws(StorageError) in
      try files.open(id)
    }
    return (registry, files, time)
  }

  private func id(_ project: String) throws -> DatabaseID { try #require(DatabaseID(project: project)) }

  @Test func opensOnFirstUse() throws {
    let (registry, files, _) = try make(idleSeconds: 60)
    #expect(registry.openDatabases.isEmpty)
    let (a, b) = (try id("a"), try id("b"))
    let first = try #require(try registry.database(a))
    #expect(try registry.database(a) === first)
    #expect(try registry.database(b) !== first)
    #expect(registry.openDatabases.map(\.id) == [a, b])
    #expect(files.opened.withLock { $0 } == [a: 1, b: 1])
    #expect(try registry.database(try id("undeclared")) == nil)
    onThreads(8) { _ in _ = try? registry.database(a) }
    #expect(files.opened.withLock { $0 } == [a: 1, b: 1])
  }

  @Test func closesIdleDatabases() throws {
    let (registry, files, time) = try make(idleSeconds: 60)
    let (a, b) = (try id("a"), try id("b"))
    let write = CommitRequest([.set("c/x", ("a", 1))])
    for id in [a, b] {
      let database = try #require(try registry.database(id))
      let outcome = wait { done in database.commit(write, completion: done) }
      #expect((try? outcome.get()) != nil)
    }
    time.advance(seconds: 60)
    registry.maintain()
    #expect(registry.openDatabases.count == 2)
    // One database is still held by this test.
    let held = try #require(registry.openDatabases.last)
    time.advance(seconds: 1)
    try waitUntilClosed(registry, a)
    #expect(registry.openDatabases.map(\.id) == [b])
    #expect(held.id == b)
    // The database reopens with its data.
    let again = try #require(try registry.database(a))
    #expect(files.opened.withLock { $0[a] } == 2)
    #expect(try again.read { reader in try reader.document(document("c/x")) != nil })
  }

  /// Trimming holds its database for a moment, so let it finish and then maintain again.
  private func waitUntilClosed(_ registry: DatabaseRegistry, _ id: DatabaseID) throws {
    let deadline = ContinuousClock.now + .seconds(120)
    repeat {
      if let database = registry.openDatabases.first(where: { $0.id == id }) {
        _ = wait { done in database.commit(CommitRequest([]), completion: done) }
      }
      registry.maintain()
    } while registry.openDatabases.contains { $0.id == id } && ContinuousClock.now < deadline
    #expect(!registry.openDatabases.contains { $0.id == id })
  }

  @Test func keepsDatabasesOpenWithoutAnIdleLimit() throws {
    let (registry, _, time) = try make(idleSeconds: nil)
    _ = try registry.database(try id("a"))
    time.advance(seconds: 1_000_000)
    registry.maintain()
    #expect(registry.openDatabases.count == 1)
    registry.closeAll()
    #expect(registry.openDatabases.isEmpty)
  }

  @Test func anOpenTransactionKeepsItsDatabaseOpen() throws {
    let (registry, _, time) = try make(idleSeconds: 30)
    let a = try id("a")
    _ = try registry.database(a)?.transactions.begin(.readWrite, readVersion: 1, by: .administrator)
    time.advance(seconds: 40)
    for _ in 0..<3 { registry.maintain() }
    #expect(registry.openDatabases.map(\.id) == [a])
    time.advance(seconds: 40)
    try waitUntilClosed(registry, a)
  }

  @Test func refusesANewerFormat() throws {
    let store = try LMDBStore.open(.inMemory(mapBytes: 16 << 20))
    _ = try TestDatabase(store)
    try store.write { (transaction) throws(StorageError) in
      try transaction.put(.format, 3)
    }
    #expect(throws: StorageError.unsupportedFormat(path: "database", found: "3", supported: "up to 2")) {
      try DocumentDatabase(id: try id("p"), store: store)
    }
  }
}
