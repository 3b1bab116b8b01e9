import ClusterTesting
import Dispatch
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Digests of replicas at one position of the log.
@Suite(.serialized) struct ReplicaDigestTests {
  private static let documents = StoreName(database: "(default)")!

  private let tables = MemoryTables()

  private func startedNodes(_ count: UInt32) throws -> [TestNode] {
    let nodes = try (1...count).map { try TestNode($0, Line(seed: UInt64($0)) { [tables] in tables.perform($0) }) }
    try nodes[0].start()
    try nodes[0].becomesOwner()
    for node in nodes.dropFirst() { try node.start() }
    return nodes
  }

  private var head: UInt64 { tables.state.withLock { $0.head.sequence } }

  private static func digest(
    of node: TestNode, at sequence: UInt64, milliseconds: Int = 20_000
  ) throws -> DigestOutcome {
    try #require(node.member).digest(at: sequence, milliseconds: milliseconds) { _ in true }
  }

  /// Asks all nodes at the same time.
  private static func digests(of nodes: [TestNode], at sequence: UInt64) async throws -> [DigestOutcome] {
    let members = try nodes.map { try #require($0.member) }
    return try await onDedicatedThread { outcomes(of: members, at: sequence) }.get()
  }

  private static func outcomes(
    of members: [ClusterMember], at sequence: UInt64
  ) -> Result<[DigestOutcome], any Error> {
    let results = onThreads(members.count) { index in
      Result { try members[index].digest(at: sequence, milliseconds: 20_000) { _ in true } }
    }
    return Result { try results.map { try $0.get() } }
  }

  @Test func anIdleReplicaIsAtItsPosition() async throws {
    let nodes = try startedNodes(2)
    for _ in 0..<30 { try nodes[0].increment(.accounts) }
    try nodes[0].increment(Self.documents)
    let head = head
    let outcomes = try await Self.digests(of: nodes, at: head)
    guard case .digest(let digest) = outcomes[0] else { throw Unexpected(outcomes[0]) }
    #expect(outcomes[1] == outcomes[0])
    #expect(digest.position == tables.state.withLock { $0.head })
    // The counter, and the values that fill the tables.
    #expect(digest.stores.map(\.name) == [.accounts, Self.documents])
    #expect(digest.stores.map(\.entries) == [31, 2] && digest.stores[0].digest.count == 32)
    #expect(try Self.digest(of: nodes[0], at: head - 1) == .passed(head))
    #expect(try Self.digest(of: nodes[1], at: head + 1, milliseconds: 50) == .notReached(head))
    // A replica that gave up continues.
    try nodes[0].increment(.accounts)
    #expect(try await Self.digests(of: nodes, at: head + 1)[1] != outcomes[1])
    for node in nodes { try node.stop() }
  }

  /// A store that the owner opened and never wrote to does not exist elsewhere.
  @Test func emptyStoresAreLeftOut() async throws {
    let nodes = try startedNodes(2)
    try nodes[0].increment(.accounts)
    _ = try nodes[0].member?.store(Self.documents)
    let outcomes = try await Self.digests(of: nodes, at: head)
    #expect(outcomes[0] == outcomes[1])
    for node in nodes { try node.stop() }
  }

  /// All nodes halt between the same two entries while three stores are written to. Every commit counts once afterwards.
  @Test func replicasAreEqualInTheMiddleOfLoad() async throws {
    let nodes = try startedNodes(3)
    let names: [StoreName] = [.accounts, .files, Self.documents]
    let stores = try names.map { try #require(nodes[0].member).store($0) }
    let members = try nodes.map { try #require($0.member) }
    let (rounds, writes) = try await onDedicatedThread { [tables] in
      let isOver = Atomic(false)
      let join = startThreads(stores.count) { index in
        var count = 0
        while !isOver.load(ordering: .sequentiallyConsistent) {
          do throws(StorageError) { try stores[index].increment() } catch { return -1 }
          count += 1
        }
        return count
      }
      let rounds = (0..<10).map { _ in
        // A thread that begins late finds that its node has passed the position.
        var lead: UInt64 = 30
        while true {
          let outcomes = Self.outcomes(of: members, at: tables.state.withLock { $0.head.sequence } + lead)
          guard case .success(let found) = outcomes, found.contains(where: \.isPassed), lead < 1 << 20 else {
            return outcomes
          }
          lead *= 2
        }
      }
      isOver.store(true, ordering: .sequentiallyConsistent)
      return (rounds, join())
    }
    for round in rounds {
      let outcomes = try round.get()
      guard case .digest(let digest) = outcomes[0] else { throw Unexpected(outcomes[0]) }
      #expect(outcomes.allSatisfy { $0 == outcomes[0] }, "\(outcomes)")
      #expect(digest.stores.count == 3)
    }
    for (name, count) in zip(names, writes) { #expect(try nodes[0].count(name) == UInt64(count)) }
    for node in nodes { try node.stop() }
  }

  @Test func aDamagedReplicaDiffers() async throws {
    let nodes = try startedNodes(2)
    for _ in 0..<5 { try nodes[0].increment(.accounts) }
    _ = try await Self.digests(of: nodes, at: head)
    try nodes[1].stop()
    // The mark stays, so the node does not notice.
    do {
      var options = nodes[1].options(.accounts)
      options.acceptsOpenLog = true
      let store = try LMDBStore.open(options)
      let mark = try store.logMark()
      try store.writeMarked { (transaction) throws(StorageError) in
        try transaction.put([1, 2], [7])
        return mark
      }
    }
    try nodes[1].start()
    let outcomes = try await Self.digests(of: nodes, at: head)
    guard case .digest(let good) = outcomes[0], case .digest(let bad) = outcomes[1] else {
      throw Unexpected(outcomes[0])
    }
    #expect(good.position == bad.position && good.stores[0].digest != bad.stores[0].digest)
    #expect(good.stores[0].entries == bad.stores[0].entries)
    for node in nodes { try node.stop() }
  }

  @Test func aCallerCanEndIt() throws {
    let nodes = try startedNodes(1)
    for _ in 0..<400 {
      try nodes[0].write(.accounts) { (transaction) throws(StorageError) in
        try transaction.put([UInt8.random(in: 0...255), UInt8.random(in: 0...255)], [UInt8](repeating: 1, count: 900))
      }
    }
    let outcome = try #require(nodes[0].member).digest(at: head, milliseconds: 20_000) { _ in false }
    #expect(outcome == .cancelled)
    try nodes[0].stop()
  }

  /// A thread that takes no snapshots in time delays commits for half a second, and gets none.
  @Test func aHaltIsBounded() async throws {
    let stop = LogStop(at: 7)
    let outcome = try await onDedicatedThread {
      let join = startThreads(1) { _ in
        stop.arrive(at: 6)
        stop.arrive(at: 7)
        stop.arrive(at: 8)
        return true
      }
      // The halt ends while the body runs.
      #expect(stop.waitForArrival(until: .now() + .seconds(20)))
      return stop.run { _ = join() }
    }
    #expect(outcome == 7)
  }

  @Test func aPositionThatIsSkippedIsPassed() {
    let stop = LogStop(at: 7)
    stop.arrive(at: 9)
    #expect(stop.waitForArrival(until: .now()))
    #expect(stop.run { Issue.record("the replica is not there") } == 9)
    let late = LogStop(at: 7)
    #expect(!late.waitForArrival(until: .now()))
    #expect(late.run { Issue.record("the replica is not there") } == 0)
    // Nobody waits any more.
    late.arrive(at: 7)
  }

  private struct Unexpected: Error {
    let outcome: DigestOutcome
    init(_ outcome: DigestOutcome) { self.outcome = outcome }
  }
}

extension DigestOutcome {
  fileprivate var isPassed: Bool { if case .passed = self { true } else { false } }
}
