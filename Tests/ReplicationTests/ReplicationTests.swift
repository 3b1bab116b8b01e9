import ClusterTesting
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Members with their replicas on tables in memory.
@Suite(.serialized) struct ReplicationTests {
  private static let documents = StoreName(database: "(default)")!
  private static let stores: [StoreName] = [.accounts, .files, documents]

  let tables = MemoryTables()

  private func node(_ number: UInt32, seed: UInt64 = 1) throws -> TestNode {
    try TestNode(number, Line(seed: seed) { [tables] in tables.perform($0) })
  }

  /// Waits until all nodes have the log up to now, and compares what they have.
  private func expectEqual(_ nodes: [TestNode], _ comment: String = "") throws {
    let head = tables.state.withLock { $0.head }
    for node in nodes {
      let isThere = OtherProcess.eventually { node.replica?.applied.sequence ?? 0 >= head.sequence }
      try #require(isThere, "node \(node.number): \(String(describing: node.member?.status)) \(comment)")
    }
    for store in Self.stores {
      let contents = try nodes.map { try $0.contents(store) }
      #expect(contents.allSatisfy { $0 == contents[0] }, "\(store) \(comment)")
    }
  }

  /// Writes random operations.
  private func scribble(_ node: TestNode, _ random: inout SplitMix) throws {
    try node.write(Self.stores[Int.random(in: 0..<3, using: &random)]) { (transaction) throws(StorageError) in
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let key: [UInt8] = [9, UInt8.random(in: 0...60, using: &random)]
        switch Int.random(in: 0..<12, using: &random) {
        case 0: try transaction.removeRange(from: key, to: [9, 200])
        case 1...3: try transaction.remove(key)
        default:
          let value = UInt8.random(in: 0...255, using: &random)
          try transaction.put(key, [UInt8](repeating: value, count: Int.random(in: 0...400, using: &random)))
        }
      }
    }
  }

  @Test func commitsAppearOnFollowersByteForByte() throws {
    let nodes = try [node(1), node(2), node(3)]
    var random = SplitMix(seed: 11)
    for node in nodes.prefix(2) { try node.start() }
    var owner = try TestNode.owner(of: nodes)
    for _ in 0..<300 { try scribble(owner, &random) }
    // A node that joins later reads the whole log.
    try nodes[2].start()
    for _ in 0..<100 { try scribble(owner, &random) }
    try expectEqual(nodes)
    #expect(nodes.count(where: \.isOwner) == 1)
    // A planned stop: another node continues at once.
    let former = owner
    try former.stop()
    owner = try TestNode.owner(of: nodes)
    for _ in 0..<100 { try scribble(owner, &random) }
    try former.start()
    try expectEqual(nodes, "after a restart")
    for node in nodes { try node.stop() }
  }

  /// The files of a node that stopped are whole without the cluster. If somebody writes to one, it is no replica any
  /// more.
  @Test(arguments: [false, true])
  func aStoppedNodeIsServedAlone(withLog: Bool) throws {
    let nodes = try [node(1), node(2)]
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[1].start()
    var random = SplitMix(seed: 5)
    for _ in 0..<200 { try scribble(nodes[0], &random) }
    try expectEqual(nodes)
    let contents = try Self.stores.map { try nodes[0].contents($0) }
    try nodes[1].stop()
    try nodes[0].stop()
    for node in nodes {
      for (store, content) in zip(Self.stores, contents) {
        let alone: any KeyValueStore =
          withLog ? try LoggedStore.open(node.options(store)) : try LMDBStore.open(node.options(store))
        #expect(try alone.contents() == content)
      }
      // Nothing was written, so it is still a replica.
      let origin = try node.openReplica()
      try origin.close()
    }
    let written = Self.documents
    do {
      let alone: any KeyValueStore =
        withLog
        ? try LoggedStore.open(nodes[0].options(written)) : try LMDBStore.open(nodes[0].options(written))
      try alone.write { (transaction) throws(StorageError) in try transaction.put([77], [1]) }
    }
    #expect(throws: ReplicaError.notAReplica(path: nodes[0].options(written).path)) { try nodes[0].openReplica() }
    try nodes[1].start()
    try nodes[1].becomesOwner()
    try nodes[1].stop()
  }

  /// Kills, handovers and losses at random. Every increment that was acknowledged counts once; one of unknown outcome
  /// at most once.
  @Test(arguments: TestSeeds.of("HEARTH_REPLICATION_SEED", otherwise: [1, 2, 3]))
  func acknowledgedCommitsCountOnce(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let nodes = try (1...3).map { try node($0, seed: seed &* 100 &+ UInt64($0)) }
    for node in nodes {
      node.line.faults.withLock { $0.lossIn = 12 }
      try node.start()
    }
    var acknowledged: [StoreName: UInt64] = [:]
    var unknown: [StoreName: UInt64] = [:]
    var refused = 0
    for _ in 0..<12 {
      for _ in 0..<Int.random(in: 20...60, using: &random) {
        let isOwned = OtherProcess.eventually { nodes.contains(where: \.isOwner) }
        try #require(isOwned, "seed \(seed): \(nodes.map { String(describing: $0.member?.status) })")
        guard let owner = nodes.first(where: \.isOwner) else { continue }
        let store = random.pick(Self.stores)
        do {
          try owner.increment(store)
          acknowledged[store, default: 0] += 1
        } catch StorageError.notOwner {
          refused += 1
        } catch StorageError.outcomeUnknown {
          unknown[store, default: 0] += 1
        }
      }
      let victim = random.pick(nodes)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: victim.member?.handOver()
      case 1:
        try victim.stop()
        try victim.start()
      default:
        victim.kill()
        try victim.start()
      }
    }
    for node in nodes { node.line.faults.withLock { $0.lossIn = nil } }
    try #require(OtherProcess.eventually { nodes.contains(where: \.isOwner) })
    // One more commit confirms the last one.
    let isCommitted = OtherProcess.eventually {
      nodes.contains { node in node.isOwner && (try? node.increment(.files)) != nil }
    }
    try #require(isCommitted)
    acknowledged[.files, default: 0] += 1
    try expectEqual(nodes, "seed \(seed)")
    for store in Self.stores {
      let count = try nodes[0].count(store)
      let least = acknowledged[store] ?? 0
      #expect(count >= least && count <= least + (unknown[store] ?? 0), "seed \(seed): \(store)")
      #expect(count == UInt64(tables.batches.count { $0.store == store }), "seed \(seed): \(store)")
    }
    #expect(acknowledged.values.reduce(0, +) > 150, "seed \(seed): \(refused) refused, \(unknown) unknown")
    for node in nodes { node.kill() }
  }

  @Test func aZombieIsRefused() throws {
    let nodes = try [node(1), node(2)]
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[1].start()
    try nodes[0].increment(.accounts)
    let member = try #require(nodes[0].member)
    let zombie = try member.store(.accounts)
    nodes[0].line.cut(true)
    try nodes[1].becomesOwner()
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try zombie.snapshot() }
    try nodes[1].increment(.accounts)
    // It still believes to be the owner, but its lease is over.
    #expect(member.status.role == .owner(epoch: 1))
    nodes[0].line.cut(false)
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) {
      try zombie.write { (transaction) throws(StorageError) in try transaction.put([5], [5]) }
    }
    try #require(nodes[0].events.wait(secondsMax: 20) { $0.contains(.steppedDown) })
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try zombie.snapshot() }
    // A new epoch does not make it valid again.
    nodes[1].member?.setMayOwn(false)
    nodes[1].member?.handOver()
    try nodes[0].becomesOwner()
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try zombie.snapshot() }
    try nodes[0].increment(.accounts)
    #expect(try nodes[0].count(.accounts) == 3)
    for node in nodes { try node.stop() }
  }

  /// The clock of an owner stands still, so it believes in its lease. The log refuses its entry.
  @Test func theLogRefusesAZombieWithALease() throws {
    let nodes = try [node(1), node(2)]
    let clock = StoppableClock()
    nodes[0].now = { clock.now() }
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[0].increment(.accounts)
    let zombie = try #require(nodes[0].member).store(.accounts)
    try nodes[1].start()
    clock.freeze()
    try nodes[1].becomesOwner()
    try nodes[1].increment(.accounts)
    #expect(zombie.lease.holds)
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) {
      try zombie.write { (transaction) throws(StorageError) in try transaction.put([5], [5]) }
    }
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try zombie.snapshot() }
    clock.thaw()
    try expectEqual(nodes)
    #expect(tables.batches.count == 2)
    for node in nodes { try node.stop() }
  }

  /// The writer gives up, and the node settles the entry before it owns the project again.
  @Test(arguments: [false, true])
  func aCommitOfUnknownOutcomeIsSettled(isAppended: Bool) throws {
    let node = try node(1)
    node.patience.commit = 200_000
    try node.start()
    try node.becomesOwner()
    try node.increment(.accounts)
    if isAppended {
      node.line.faults.withLock { $0.losesAppends = true }
    } else {
      node.line.cut(true)
    }
    #expect {
      try node.increment(.accounts)
    } throws: { error in
      if case .outcomeUnknown? = error as? StorageError { true } else { false }
    }
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try node.increment(.accounts) }
    try #require(node.events.wait(secondsMax: 20) { $0.contains(.steppedDown) })
    node.line.faults.withLock { ($0.losesAppends, $0.isCut) = (false, false) }
    try node.becomesOwner()
    // It repeats the entry until it is in the log, so it counts in both cases.
    #expect(try node.count(.accounts) == 2)
    #expect(tables.batches.count == 2)
    try node.increment(.accounts)
    #expect(try node.count(.accounts) == 3)
    try node.stop()
  }

  /// The engine lost commits that it had acknowledged, and the owner has them. It notices without a commit, too.
  @Test func theOwnerAppendsAgainWhatTheLogLost() throws {
    let nodes = try [node(1), node(2), node(3)]
    for node in nodes {
      // A busy machine must not end the lease.
      node.timing = ClusterTiming()
      try node.start()
    }
    let owner = try TestNode.owner(of: nodes)
    for _ in 0..<20 { try owner.increment(.accounts) }
    try expectEqual(nodes)
    let entries = tables.entries
    func lose(_ count: Int) throws {
      let isLost = tables.state.withLock { state in
        guard state.entries.suffix(count + 1).allSatisfy({ $0.kind == .batch }) else { return false }
        state.lose(count)
        return true
      }
      try #require(isLost, "another node has taken over")
    }
    try lose(7)
    try #require(OtherProcess.eventually { tables.entries.count == entries.count })
    #expect(tables.entries == entries)
    try #require(owner.events.wait(secondsMax: 20) { $0.contains(.healed(7)) })
    // A commit finds the loss, waits for the repair, and succeeds.
    try lose(3)
    try owner.increment(.accounts)
    #expect(Array(tables.entries.prefix(entries.count)) == entries && tables.entries.count == entries.count + 1)
    try expectEqual(nodes)
    #expect(try nodes[2].count(.accounts) == 21)
    for node in nodes {
      #expect(node.events.value.allSatisfy { if case .join = $0 { false } else { true } })
      try node.stop()
    }
  }

  /// The log loses entries again and again while all stores are written to.
  @Test func lossesUnderLoadLoseNothing() async throws {
    let nodes = try [node(1), node(2)]
    for node in nodes { node.timing = ClusterTiming() }
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[1].start()
    let stores = try Self.stores.map { try #require(nodes[0].member).store($0) }
    for store in stores { try store.increment() }
    let (failures, losses) = try await onDedicatedThread { [tables] in
      let isOver = Atomic(false)
      let join = startThreads(stores.count) { index in
        while !isOver.load(ordering: .sequentiallyConsistent) {
          do throws(StorageError) { try stores[index].increment() } catch { return "\(error)" }
        }
        return ""
      }
      var random = SplitMix(seed: 3)
      var losses = 0
      for _ in 0..<30 {
        let head = tables.state.withLock { $0.head.sequence }
        _ = OtherProcess.eventually { tables.state.withLock { $0.head.sequence } > head + 10 }
        losses += tables.state.withLock { state in
          let count = Int.random(in: 1...5, using: &random)
          guard state.entries.suffix(count + 1).allSatisfy({ $0.kind == .batch }) else { return 0 }
          state.lose(count)
          return 1
        }
      }
      isOver.store(true, ordering: .sequentiallyConsistent)
      return (join(), losses)
    }
    #expect(failures == ["", "", ""] && losses > 20, "\(failures)")
    try expectEqual(nodes)
    for store in Self.stores {
      #expect(try nodes[1].count(store) == UInt64(tables.batches.count { $0.store == store }))
    }
    for node in nodes { try node.stop() }
  }

  /// An outage that is shorter than the patience costs no epoch.
  @Test func anOwnerSurvivesAnOutage() throws {
    let node = try node(1)
    try node.start()
    try node.becomesOwner()
    let store = try #require(node.member).store(.accounts)
    node.line.cut(true)
    try #require(OtherProcess.eventually { !store.lease.holds })
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try store.snapshot() }
    #expect(throws: StorageError.notOwner(of: "accounts", owner: nil)) { try node.increment(.accounts) }
    node.line.cut(false)
    try #require(OtherProcess.eventually { store.lease.holds })
    try node.increment(.accounts)
    #expect(try node.count(.accounts) == 1)
    try node.stop()
  }
}
