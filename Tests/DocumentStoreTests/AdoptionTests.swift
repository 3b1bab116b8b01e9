import Basics
import DocumentModel
import KeyValue
import LMDBEngine
import Testing
import TestSupport
@testable import DocumentStore

/// A database that was opened reads; one that was adopted writes.
@Suite struct AdoptionTests {
  private let store: LMDBStore
  private let id: DatabaseID
  private let write = CommitRequest([.set("c/x", ("a", 1))])

  init() throws {
    store = try LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    id = try #require(DatabaseID(project: "p"))
  }

  @Test func openingAnEmptyStoreWritesNothing() throws {
    let watched = WatchedStore(store)
    let database = try DocumentDatabase(id: id, store: watched)
    #expect(try database.read { reader in try reader.document(document("c/x")) == nil })
    #expect(try database.read { reader in try reader.lastVersion() } == 0)
    database.maintain()
    database.continueBackgroundWork()
    database.drain()
    #expect(watched.writes == 0)
  }

  @Test func writesNeedAdoption() throws {
    let watched = WatchedStore(store)
    let database = try DocumentDatabase(id: id, store: watched)
    let refusal = StorageError.notOwner(of: id.name, owner: nil)
    let outcome = wait { done in database.commit(write, completion: done) }
    #expect(throws: CommitError.storage(refusal)) { try outcome.get() }
    let cleared = wait { done in database.clear(completion: done) }
    #expect(throws: refusal) { try cleared.get() }
    #expect(throws: refusal) { try database.setIndexes(IndexConfiguration()) }
    #expect(throws: refusal) { try database.makeLoader() }
    #expect(watched.writes == 0)
    try database.adopt()
    _ = try wait { done in database.commit(write, completion: done) }.get()
    #expect(try database.read { reader in try reader.document(document("c/x")) != nil })
    database.drain()
  }

  @Test func openingShowsTheSameAsAdopting() throws {
    let owner = try TestDatabase(store)
    try owner.commit(.set("c/x", ("a", 1)))
    owner.database.drain()
    let watched = WatchedStore(store)
    let opened = try DocumentDatabase(id: id, store: watched)
    #expect(opened.incarnation == owner.database.incarnation)
    #expect(try opened.read { reader in try reader.document(document("c/x")) != nil })
    // Adopting a store that is initialized has nothing to write, unless indexes are declared.
    try opened.adopt()
    #expect(watched.writes == 0)
    #expect(opened.incarnation == owner.database.incarnation)
  }

  /// A former owner may have promised a reader that no commit comes at or below a version.
  @Test func versionsAreAboveTheFloor() throws {
    let database = try DocumentDatabase(id: id, store: store)
    let floor = Clock.system.now() + 60_000_000
    try database.adopt(floor: floor)
    #expect(database.queue.settledVersion == floor)
    _ = try wait { done in database.commit(write, completion: done) }.get()
    #expect(try database.read { reader in try reader.lastVersion() } == floor + 1)
    database.drain()
  }

  /// A node that opened an empty store adopts it after another one initialized it.
  @Test func adoptingReadsTheIncarnationAgain() throws {
    let database = try DocumentDatabase(id: id, store: store)
    #expect(database.incarnation == 0)
    let other = try DocumentDatabase(id: id, store: store)
    try other.adopt()
    try database.adopt()
    #expect(database.incarnation != 0 && database.incarnation == other.incarnation)
  }
}
