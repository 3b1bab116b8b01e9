import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import Synchronization
import Testing
import TestSupport
import Watch

/// Listeners of a node that asks the owner whether it has everything.
@Suite struct FreshnessTests {
  /// A gate that a test opens.
  private final class Gate: FreshnessGate {
    private let waiters = Mutex<[@Sendable (Bool) -> Void]>([])

    func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) { waiters.withLock { $0.append(done) } }

    var count: Int { waiters.withLock { $0.count } }

    /// Answers all questions so far.
    func answer(_ isNewest: Bool) {
      let all = waiters.withLock { waiters in
        defer { waiters = [] }
        return waiters
      }
      for waiter in all { waiter(isNewest) }
    }
  }

  private let gate = Gate()
  private let service: SimulatedService

  init() throws { service = try SimulatedService(adopts: false, freshness: gate) }

  private func client() throws -> ListeningClient {
    // Something to read: another process wrote it.
    let owner = try SimulatedService()
    try owner.commit([.set("c/x", ("a", 1))])
    let snapshot = try owner.store.snapshot()
    defer { snapshot.end() }
    try service.store.write { (transaction) throws(StorageError) in
      let cursor = try snapshot.makeCursor()
      var isThere = try cursor.seek(atOrAfter: UnsafeRawBufferPointer(start: nil, count: 0))
      while isThere {
        try transaction.put(cursor.key, cursor.value)
        isThere = try cursor.next()
      }
    }
    return try ListeningClient(service)
  }

  @Test func aTargetJoinsWhenTheNodeHasEverything() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "c")))
    try client.settle()
    #expect(client.takeEvents() == ["ADD 2"])
    #expect(gate.count == 1)
    gate.answer(true)
    try client.settle()
    #expect(client.takeEvents() == ["c/x +2", "CURRENT 2", "SNAPSHOT"])
  }

  /// A target that left before the answer is not followed, and a later one waits for its own answer.
  @Test func aTargetThatLeavesIsForgotten() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "c")))
    try client.settle()
    try client.remove(2)
    try client.settle()
    _ = client.takeEvents()
    gate.answer(true)
    try client.settle()
    #expect(client.takeEvents() == [])
    try client.add(4, .query(Query(collectionID: "c")))
    try client.settle()
    #expect(client.takeEvents() == ["ADD 4"])
    gate.answer(true)
    try client.settle()
    #expect(client.takeEvents() == ["c/x +4", "CURRENT 4", "SNAPSHOT"])
  }

  @Test func aNodeThatBecomesTheOwnerNeedsNoAnswer() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "c")))
    try client.settle()
    _ = client.takeEvents()
    try #require(try service.databases.database(service.id)).adopt()
    try client.settle()
    #expect(client.takeEvents() == ["c/x +2", "CURRENT 2", "SNAPSHOT"])
  }

  /// The stream ends after some beats, so that its client connects to another node.
  @Test func aNodeThatCannotFindOutEndsTheStream() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "c")))
    try client.settle()
    gate.answer(false)
    for _ in 0...WatchHub.joinBeatsMax { for hub in service.service.hubs.all { hub.beat() } }
    service.settleWatchHubs()
    #expect { try client.pull() } throws: { error in (error as? Status)?.code == .unavailable }
  }
}
