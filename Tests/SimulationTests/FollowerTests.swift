import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import Synchronization
import Testing
import TestSupport
import Watch

/// A node whose database another node writes, and clients that come to it from that node.
@Suite struct FollowerTests {
  private let owner: SimulatedService
  private let follower: SimulatedService

  init() throws {
    owner = try SimulatedService()
    follower = try SimulatedService(adopts: false)
    try owner.commit([.set("c/x", ("a", 1))])
    try catchUp()
  }

  private var followed: DocumentDatabase {
    get throws { try #require(try follower.databases.database(follower.id)) }
  }

  /// Makes the follower's store equal to the owner's. `isOfOneLine` is what the follower says of it.
  private func catchUp(isOfOneLine: Bool = true) throws {
    let snapshot = try owner.store.snapshot()
    defer { snapshot.end() }
    try follower.store.write { (transaction) throws(StorageError) in
      let (lower, upper): ([UInt8], [UInt8]) = ([], [0xFF, 0xFF])
      var failure: StorageError?
      lower.withUnsafeBytes { lower in
        upper.withUnsafeBytes { upper in
          do throws(StorageError) { try transaction.removeRange(from: lower, to: upper) } catch { failure = error }
        }
      }
      if let failure { throw failure }
      let cursor = try snapshot.makeCursor()
      var isThere = try cursor.seek(atOrAfter: UnsafeRawBufferPointer(start: nil, count: 0))
      while isThere {
        try transaction.put(cursor.key, cursor.value)
        isThere = try cursor.next()
      }
    }
    #expect(try followed.noteApplied() == isOfOneLine)
    follower.settleWatchHubs()
  }

  /// A listener at the owner that has seen everything.
  private func listened() throws -> (token: [UInt8], version: Int64) {
    let client = try ListeningClient(owner)
    try client.add(2, .query(Query(collectionID: "c")))
    try client.settle()
    let snapshot = try #require(client.snapshot)
    return (snapshot.token, snapshot.version)
  }

  @Test func aListenerThatIsAheadWaits() throws {
    try owner.commit([.set("c/y", ("a", 1))])
    let (token, version) = try listened()
    let client = try ListeningClient(follower)
    try client.add(2, .query(Query(collectionID: "c")), from: token)
    try client.settle()
    #expect(client.takeEvents() == ["ADD 2"])
    try catchUp()
    try client.settle()
    #expect(client.takeEvents() == ["CURRENT 2", "SNAPSHOT"])
    #expect(client.snapshot?.version == version)
    try owner.commit([.set("c/z", ("a", 1))])
    try catchUp()
    try client.settle()
    #expect(client.takeEvents() == ["c/z +2", "SNAPSHOT"])
  }

  /// A snapshot is of all targets, so none is sent that is older than the position of one of them.
  @Test func otherTargetsOfItsStreamSendNoEarlierSnapshot() throws {
    try owner.commit([.set("c/y", ("a", 1))])
    let (token, version) = try listened()
    let client = try ListeningClient(follower)
    try client.add(2, .query(Query(collectionID: "c")), from: token)
    try client.add(4, .documents([document("c/x").path]))
    try client.settle()
    #expect(client.takeEvents() == ["ADD 2", "ADD 4", "c/x +4", "CURRENT 4"])
    try catchUp()
    try client.settle()
    #expect(client.takeEvents().last == "SNAPSHOT")
    #expect(client.snapshot?.version == version)
  }

  @Test func aListenerWaitsForSomeBeatsOnly() throws {
    try owner.commit([.set("c/y", ("a", 1))])
    let client = try ListeningClient(follower)
    try client.add(2, .query(Query(collectionID: "c")), from: listened().token)
    try client.settle()
    for _ in 0...WatchHub.joinBeatsMax { for hub in follower.service.hubs.all { hub.beat() } }
    follower.settleWatchHubs()
    #expect { try client.pull() } throws: { error in (error as? Status)?.code == .unavailable }
  }

  @Test func aTargetThatEndsWhileItWaitsIsForgotten() throws {
    try owner.commit([.set("c/y", ("a", 1))])
    let client = try ListeningClient(follower)
    try client.add(2, .query(Query(collectionID: "c")), from: listened().token)
    try client.settle()
    try client.remove(2)
    try client.settle()
    _ = client.takeEvents()
    for _ in 0...WatchHub.joinBeatsMax { for hub in follower.service.hubs.all { hub.beat() } }
    try catchUp()
    try client.settle()
    #expect(client.takeEvents() == [])
  }

  /// The node that writes has every commit, so a token of its incarnation that is ahead belongs to a lost history.
  @Test func afterAdoptionAListenerThatIsAheadStartsOver() throws {
    try owner.commit([.set("c/y", ("a", 1))])
    let client = try ListeningClient(follower)
    try client.add(2, .query(Query(collectionID: "c")), from: listened().token)
    try client.settle()
    _ = client.takeEvents()
    try followed.adopt()
    try client.settle()
    #expect(client.takeEvents() == ["RESET 2", "c/x +2", "CURRENT 2", "SNAPSHOT"])
  }

  /// The log lost commits that clients have seen. A token of them must not be valid for what came in their place.
  @Test func afterARenewalTheDatabaseIsOpenedAgain() throws {
    let former = try listened().token
    let incarnation = try followed.incarnation
    try owner.commit([.set("c/y", ("a", 1))])
    try DocumentDatabase.renewIncarnation(owner.store)
    try catchUp(isOfOneLine: false)
    // Until it is opened again, clients get no token of the new incarnation.
    #expect(try followed.incarnation == incarnation)
    let opened = try DocumentDatabase(id: follower.id, store: follower.store)
    #expect(opened.incarnation != incarnation && opened.incarnation != 0)
    let client = try ListeningClient(SimulatedService(adopts: false, store: follower.store))
    try client.add(2, .query(Query(collectionID: "c")), from: former)
    try client.settle()
    #expect(client.takeEvents() == ["ADD 2", "RESET 2", "c/x +2", "c/y +2", "CURRENT 2", "SNAPSHOT"])
  }

  @Test func aClearedDatabaseIsNotOpenedAgain() throws {
    let incarnation = try followed.incarnation
    try wait { done in try owner.service.clear(owner.id, completion: done) }.get()
    try catchUp()
    #expect(try followed.incarnation != incarnation)
  }

  /// A client would give up a target that ends with an error, but connects again after the end of its stream.
  @Test func aStreamEndsWithTheOwnershipOfItsNode() throws {
    let store = LeasedStore(owner.store)
    let client = try ListeningClient(SimulatedService(adopts: false, store: store))
    try client.add(2, .query(Query(collectionID: "c")))
    // The hub lets the target join, which reads its documents when the client pulls the second event.
    client.settleHubs()
    try client.pull(eventsMax: 1)
    store.end()
    #expect { try client.pull() } throws: { error in (error as? Status)?.code == .unavailable }
    #expect(client.takeEvents() == ["ADD 2"])
  }

  @Test func aChangeFeedThatIsAheadWaits() throws {
    let first = try ChangesTests.Client(owner)
    try owner.commit([.set("c/y", ("a", 1))])
    try first.pull()
    let client = try ChangesTests.Client(follower, since: first.tokens.last)
    try client.pull()
    #expect(client.takeEvents() == [])
    try catchUp()
    try client.pull()
    #expect(client.takeEvents() == ["CAUGHT UP"])
    try owner.commit([.set("c/y", ("a", 2))])
    try catchUp()
    try client.pull()
    let events = client.takeEvents()
    #expect(events.count == 2 && events.last == "COMMIT", "\(events)")
  }

  @Test func afterAdoptionAChangeFeedThatIsAheadStartsOver() throws {
    let first = try ChangesTests.Client(owner)
    try owner.commit([.set("c/y", ("a", 1))])
    try first.pull()
    let client = try ChangesTests.Client(follower, since: first.tokens.last)
    try client.pull()
    try followed.adopt()
    #expect { try client.pull() } throws: { error in (error as? Status)?.code == .outOfRange }
  }

  @Test func writesAreRefused() throws {
    let result = try follower.result(of: [.set("c/z")], transaction: nil)
    #expect { try result.get() } throws: { error in (error as? Status)?.code == .unavailable }
    // Another node's commit arrives nevertheless.
    try owner.commit([.set("c/z")])
    try catchUp()
    #expect(try follower.updateTime(of: document("c/z"), .latest) > 0)
  }

  @Test func aClearedDatabaseHasAnotherIncarnationHereToo() throws {
    let before = try followed.incarnation
    try wait { done in
      do { try owner.service.clear(owner.id, completion: done) } catch { done(.failure(Status(error, database: nil))) }
    }.get()
    try catchUp()
    #expect(try followed.incarnation != before)
    #expect(try followed.incarnation == owner.databases.database(owner.id)?.incarnation)
  }
}

/// A store that refuses reads after the lease of its owner.
private final class LeasedStore: KeyValueStore {
  private let store: any KeyValueStore
  private let isOver = Atomic(false)

  init(_ store: any KeyValueStore) { self.store = store }

  func end() { isOver.store(true, ordering: .sequentiallyConsistent) }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    guard !isOver.load(ordering: .sequentiallyConsistent) else { throw .notOwner(of: "a store", owner: nil) }
    return try store.snapshot()
  }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try store.write(body)
  }

  func copy(toFile path: String) throws(StorageError) { try store.copy(toFile: path) }

  func statistics() throws(StorageError) -> KeyValueStatistics { try store.statistics() }
}
