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

  /// Creates a registry of an emulator that keeps three databases open, in memory or in files.
  private func makeEmulator(_ idleSeconds: Int?) throws -> (DatabaseRegistry, Files, SteppedTime) {
    let (files, time) = (try Files(), SteppedTime())
    let blanks = BlankDatabases(
      openMax: 3, isStored: { id in idleSeconds != nil && files.opened.withLock { $0[id] != nil } },
      makeStore: { () throws(StorageError) in try LMDBStore.open(.inMemory(mapBytes: 16 << 20)) })
    let registry = DatabaseRegistry(clock: Clock { time.now }, idleSeconds: idleSeconds, blanks: blanks) {
      (id) throws(StorageError) in
      idleSeconds == nil ? try LMDBStore.open(.inMemory(mapBytes: 16 << 20)) : try files.open(id)
    }
    return (registry, files, time)
  }

  @Test func readsOfUnknownDatabasesCreateNothing() throws {
    let (registry, files, time) = try makeEmulator(60)
    let a = try id("a")
    let blank = try #require(try registry.database(a, creates: false))
    #expect(blank.id == a)
    let origin = try blank.read { reader in try reader.lastVersion() }
    #expect(try blank.read { reader in try reader.document(document("c/x")) == nil })
    for name in ["b", "c", "d", "e"] { _ = try registry.database(try id(name), creates: false) }
    #expect(registry.openDatabases.isEmpty && files.opened.withLock { $0.isEmpty })
    #expect(try registry.existing(a) == nil)
    // Nothing can be written to it.
    let outcome = wait { done in blank.commit(CommitRequest([.set("c/x", ("a", 1))]), completion: done) }
    #expect(throws: CommitError.storage(.notOwner(of: a.name, owner: nil))) { try outcome.get() }
    // The created database continues the one that was read.
    time.advance(seconds: 5)
    let created = try #require(try registry.database(a))
    #expect(try created.read { reader in try reader.lastVersion() } == origin)
    #expect(try registry.database(a, creates: false) === created)
    #expect(try registry.existing(a) === created)
  }

  @Test func theNumberOfDatabasesInMemoryIsLimited() throws {
    let (registry, _, time) = try makeEmulator(nil)
    let write = CommitRequest([.set("c/x", ("a", 1))])
    func create(_ name: String) throws {
      let database = try #require(try registry.database(try id(name)))
      _ = try wait { done in database.commit(write, completion: done) }.get()
      // Afterwards the writer holds the database no more.
      database.drain()
    }
    for name in ["a", "b"] { try create(name) }
    func open(_ name: String) throws {
      let database = try #require(try registry.database(try id(name)))
      // The work on indexes holds a new database for a moment.
      database.drain()
    }
    try open("empty")
    // The empty one makes room, those with documents do not.
    try create("c")
    #expect(registry.openDatabases.map(\.id.project) == ["a", "b", "c"])
    #expect(throws: StorageError.tooManyDatabases(limit: 3)) { try registry.database(id("d")) }
    #expect(try registry.database(try id("d"), creates: false) != nil)
    #expect(try registry.database(try id("a")) != nil)
    // A cleared one makes room too, a second after the failure at the latest.
    func clear() throws {
      let cleared = try #require(try registry.database(try id("b")))
      _ = try wait { done in cleared.clear(completion: done) }.get()
      cleared.drain()
    }
    try clear()
    #expect(throws: StorageError.tooManyDatabases(limit: 3)) { try registry.database(id("d")) }
    time.advance(seconds: 1)
    #expect(try registry.database(try id("d")) != nil)
    #expect(registry.openDatabases.map(\.id.project) == ["a", "c", "d"])
  }

  @Test func databasesInFilesAreClosedToMakeRoom() throws {
    let (registry, _, time) = try makeEmulator(600)
    let write = CommitRequest([.set("c/x", ("a", 1))])
    for name in ["a", "b", "c", "d", "e"] {
      time.advance(seconds: 1)
      let database = try #require(try registry.database(try id(name)))
      _ = try wait { done in database.commit(write, completion: done) }.get()
      // Afterwards the writer holds the database no more.
      database.drain()
    }
    #expect(registry.openDatabases.map(\.id.project) == ["c", "d", "e"])
    let again = try #require(try registry.database(try id("a"), creates: false))
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
      try transaction.put(.format, 4)
    }
    #expect(throws: StorageError.unsupportedFormat(path: "database", found: "4", supported: "up to 3")) {
      try DocumentDatabase(id: try id("p"), store: store)
    }
  }
}
