import ClusterTesting
import Foundation
import Glibc
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Snapshots, nodes that load them, and a log that is shortened.
@Suite(.serialized) struct JoiningTests {
  private static let stores: [StoreName] = [.accounts, .files, StoreName(database: "(default)")!]

  private let tables = MemoryTables()
  private let snapshots: MemorySnapshots

  init() { snapshots = MemorySnapshots(tables) }

  private func node(_ number: UInt32, seed: UInt64 = 1) throws -> TestNode {
    let node = try TestNode(number, Line(seed: seed) { [tables] in tables.perform($0) })
    node.snapshots = snapshots
    return node
  }

  /// Writes random operations to a random store.
  private func scribble(_ node: TestNode, _ random: inout SplitMix, bytesMax: Int = 400) throws {
    try node.write(random.pick(Self.stores)) { (transaction) throws(StorageError) in
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let key: [UInt8] = [9, UInt8.random(in: 0...60, using: &random)]
        switch Int.random(in: 0..<12, using: &random) {
        case 0: try transaction.removeRange(from: key, to: [9, 200])
        case 1...3: try transaction.remove(key)
        default:
          let length = Int.random(in: 0...bytesMax, using: &random)
          try transaction.put(key, (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
      }
    }
  }

  private func expectEqual(_ nodes: [TestNode], _ comment: String = "") throws {
    let head = tables.state.withLock { $0.head }
    for node in nodes {
      let isThere = OtherProcess.eventually(secondsMax: 60) {
        node.member?.status.isJoining == false && node.replica?.applied == head
      }
      try #require(isThere, "node \(node.number): \(String(describing: node.member?.status)) \(comment)")
    }
    for store in Self.stores {
      let contents = try nodes.map { try $0.contents(store) }
      #expect(contents.allSatisfy { $0 == contents[0] }, "\(store) \(comment)")
    }
  }

  private func truncate(before sequence: UInt64) { tables.state.withLock { $0.truncate(before: sequence) } }

  private func joined(_ node: TestNode) -> [JoinEvent] {
    node.events.value.compactMap { if case .join(let event) = $0 { event } else { nil } }
  }

  // MARK: Joining

  /// An owner with some commits, of which the log has only those after a snapshot.
  private func truncatedCluster(_ random: inout SplitMix, bytesMax: Int = 400) throws -> TestNode {
    let owner = try node(1)
    try owner.start()
    try owner.becomesOwner()
    for _ in 0..<200 { try scribble(owner, &random, bytesMax: bytesMax) }
    let head = try owner.writeSnapshot()
    #expect(head.position.sequence > 100)
    truncate(before: head.position.sequence)
    for _ in 0..<50 { try scribble(owner, &random, bytesMax: bytesMax) }
    return owner
  }

  @Test func anEmptyNodeLoadsTheSnapshot() throws {
    var random = SplitMix(seed: 3)
    // Several parts for each store.
    let owner = try truncatedCluster(&random, bytesMax: 60_000)
    let late = try node(2)
    try late.start()
    try expectEqual([owner, late])
    let events = joined(late)
    #expect(events.first == .began(nil) && events.contains { if case .loading = $0 { true } else { false } })
    // It is an ordinary replica: after a stop, its files can be read alone, and it continues.
    let contents = try Self.stores.map { try owner.contents($0) }
    try late.stop()
    for (store, content) in zip(Self.stores, contents) {
      #expect(try LMDBStore.open(late.options(store)).contents() == content)
    }
    try late.start()
    try owner.stop()
    try late.becomesOwner()
    try scribble(late, &random)
    try late.stop()
  }

  @Test func aNodeThatWasAwayTooLongJoinsAnew() throws {
    var random = SplitMix(seed: 4)
    let (owner, away) = (try node(1), try node(2))
    try owner.start()
    try owner.becomesOwner()
    for _ in 0..<50 { try scribble(owner, &random) }
    try away.start()
    try expectEqual([owner, away])
    // Both ways of leaving, and a file that the cluster does not have.
    for isKilled in [false, true] {
      if isKilled { away.kill() } else { try away.stop() }
      for _ in 0..<100 { try scribble(owner, &random) }
      truncate(before: try owner.writeSnapshot().position.sequence)
      try away.start()
      try expectEqual([owner, away], "killed: \(isKilled)")
      #expect(joined(away).first == .began(.truncated))
    }
    // While it runs, but is cut off.
    away.line.cut(true)
    for _ in 0..<100 { try scribble(owner, &random) }
    truncate(before: try owner.writeSnapshot().position.sequence)
    away.line.cut(false)
    try expectEqual([owner, away], "was cut off")
    #expect(!away.events.value.contains { if case .broken = $0 { true } else { false } })
    for node in [away, owner] { try node.stop() }
  }

  @Test func aJoinWaitsForASnapshotAndSurvivesLosses() throws {
    var random = SplitMix(seed: 5)
    let owner = try truncatedCluster(&random)
    let lost = snapshots.state.withLock { state in
      defer { state.heads = [] }
      return state.heads
    }
    let late = try node(2)
    try late.start()
    let isWaiting = late.events.wait(secondsMax: 20) { events in
      events.contains { if case .join(.failed(let text)) = $0 { text.contains("no snapshot") } else { false } }
    }
    try #require(isWaiting)
    snapshots.state.withLock { state in (state.heads, state.lossIn) = (lost, 6) }
    try expectEqual([owner, late])
    for node in [late, owner] { try node.stop() }
  }

  /// A snapshot with a wrong byte is not used. An older one is.
  @Test func damagedSnapshotsAreRefused() throws {
    var random = SplitMix(seed: 6)
    let owner = try truncatedCluster(&random)
    let newest = try owner.writeSnapshot()
    snapshots.state.withLock { state in
      guard var part = state.parts[newest.id]?[0] else { return }
      part[part.count / 2] ^= 1
      state.parts[newest.id]?[0] = part
    }
    let late = try node(2)
    try late.start()
    try expectEqual([owner, late])
    // Without another one, the node says why it waits, and has no files of it.
    snapshots.state.withLock { state in state.heads.removeAll { $0.head.id != newest.id } }
    let other = try node(3)
    try other.start()
    let isRefused = other.events.wait(secondsMax: 20) { events in
      events.contains { if case .join(.failed(let text)) = $0 { text.contains("damaged") } else { false } }
    }
    try #require(isRefused)
    #expect(try other.existing.isEmpty)
    for node in [other, late, owner] { try node.stop() }
  }

  // MARK: Divergence

  /// The engine lost commits that it had acknowledged, and their owner died, so it cannot append them again. The replica that
  /// has them is set aside.
  @Test func aDivergedReplicaIsSetAside() throws {
    var random = SplitMix(seed: 7)
    let nodes = [try node(1), try node(2)]
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[1].start()
    for _ in 0..<100 { try scribble(nodes[0], &random) }
    try nodes[0].writeSnapshot()
    let before = tables.state.withLock { $0 }
    for _ in 0..<10 { try scribble(nodes[0], &random) }
    try nodes[0].write(.files) { (transaction) throws(StorageError) in try transaction.put([77], [7]) }
    try expectEqual(nodes)
    // A failover to a standby that lacks the last eleven commits.
    nodes[0].kill()
    tables.state.withLock { $0 = before }
    let isNoticed = OtherProcess.eventually(secondsMax: 60) {
      joined(nodes[1]).contains { if case .ended(_, let aside) = $0 { aside != nil } else { false } }
    }
    try #require(isNoticed, "\(nodes.map { String(describing: $0.member?.status) })")
    let isOwned = OtherProcess.eventually(secondsMax: 60) {
      nodes[1].isOwner && (try? nodes[1].increment(.files)) != nil
    }
    try #require(isOwned)
    // The owner can learn of it.
    #expect(snapshots.state.withLock { $0.losses.map(\.node) } == [2])
    // The lost commit is in the file that was set aside, which can be read alone.
    let name = try #require(try nodes[1].directory.fileNames.first { $0.hasPrefix("replica.diverged-") })
    let lost = try LMDBStore.open(
      LMDBOptions(path: nodes[1].directory.file("\(name)/files.mdb"), mapBytes: 64 << 20))
    #expect(try lost.contents().contains([77]))
    #expect(try !nodes[1].contents(.files).contains([77]))
    try nodes[0].start()
    try expectEqual(nodes, "after the loss")
    for node in nodes { try node.stop() }
  }

  /// Without a snapshot, the log has everything that is left.
  @Test func withoutASnapshotADivergedReplicaBeginsWithTheLog() throws {
    var random = SplitMix(seed: 8)
    let nodes = [try node(1), try node(2)]
    try nodes[0].start()
    try nodes[0].becomesOwner()
    try nodes[1].start()
    for _ in 0..<20 { try scribble(nodes[0], &random) }
    let before = tables.state.withLock { $0 }
    try nodes[0].write(.files) { (transaction) throws(StorageError) in try transaction.put([77], [7]) }
    try expectEqual(nodes)
    // The report is lost at first, and sent again.
    snapshots.state.withLock { $0.lossIn = 3 }
    nodes[0].kill()
    tables.state.withLock { $0 = before }
    let isOwned = OtherProcess.eventually(secondsMax: 60) {
      snapshots.state.withLock { $0.losses.count } > 0
        && nodes[1].isOwner && (try? nodes[1].increment(.files)) != nil
    }
    try #require(isOwned, "\(nodes.map { String(describing: $0.member?.status) })")
    snapshots.state.withLock { $0.lossIn = nil }
    try nodes[0].start()
    try expectEqual(nodes, "after the loss")
    for node in nodes {
      #expect(try !node.contents(.files).contains([77]))
      try node.stop()
    }
  }

  // MARK: Crashes

  /// A crash at each step of a replacement leaves the old replica or the new one.
  @Test(arguments: [nil, "replica.diverged-1"] as [String?])
  func aReplacementIsWholeOrNotAtAll(aside: String?) throws {
    let node = try node(1)
    let folder = node.folder
    func text(_ path: String) -> String? {
      try? String(contentsOfFile: node.directory.file(path), encoding: .utf8)
    }
    for (store, content) in [(StoreName.accounts, "old"), (StoreName(database: "gone")!, "old")] {
      _ = try node.directory.write(node.options(store).path.split(separator: "/").last.map(String.init) ?? "", content)
    }
    try folder.beginLoading()
    _ = try node.directory.write("joining/0", "new")
    _ = try node.directory.write("joining/1", "new")
    // Without a plan, nothing happens.
    try folder.finishReplacement()
    #expect(text("accounts.mdb") == "old" && access(node.directory.file("joining"), F_OK) != 0)
    try folder.beginLoading()
    _ = try node.directory.write("joining/0", "new")
    _ = try node.directory.write("joining/1", "new")
    _ = try node.directory.write(
      "joining/plan", "hearth join 1\naside \(aside ?? "")\nstore accounts\nstore files\n")
    // As if the first rename had happened before the crash.
    rename(node.directory.file("accounts.mdb"), node.directory.file("old-accounts"))
    rename(node.directory.file("joining/0"), node.directory.file("accounts.mdb"))
    try folder.finishReplacement()
    #expect(text("accounts.mdb") == "new" && text("files.mdb") == "new" && text("documents+gone.mdb") == nil)
    #expect(access(node.directory.file("joining"), F_OK) != 0)
    let kept = aside.map { access(node.directory.file("\($0)/documents+gone.mdb"), F_OK) == 0 } ?? true
    #expect(kept)
  }

  @Test func aWriterThatDiesLeavesNothing() throws {
    var random = SplitMix(seed: 8)
    let owner = try truncatedCluster(&random, bytesMax: 60_000)
    let count = snapshots.state.withLock { $0.heads.count }
    for left in 0..<3 {
      snapshots.state.withLock { $0.partsLeft = left }
      #expect(throws: SnapshotWritingError.self) { try owner.writeSnapshot() }
      snapshots.state.withLock { $0.partsLeft = nil }
      // As if the process had died, so that it could not give the claim back.
      let id = snapshots.state.withLock { state in
        state.parts.keys.first { id in !state.heads.contains { $0.head.id == id } }
      }
      snapshots.state.withLock { $0.claim = id ?? 1 }
      #expect(throws: SnapshotWritingError.noClaim) { try owner.writeSnapshot() }
      #expect(try !snapshots.removeLeftovers())
      snapshots.state.withLock { $0.isClaimOld = true }
      while try snapshots.removeLeftovers() {}
      #expect(snapshots.state.withLock { $0.parts.count } == count)
    }
    try owner.writeSnapshot()
    #expect(snapshots.state.withLock { $0.heads.count } == count + 1)
    try owner.stop()
  }

  /// A writer whose claim was taken cannot finish.
  @Test func theSlowerOfTwoWritersFinishesNothing() throws {
    var random = SplitMix(seed: 9)
    let owner = try truncatedCluster(&random)
    let replica = try #require(owner.replica)
    let other = UInt64(77)
    let snapshots = snapshots
    let isTaken = Mutex(false)
    let sources = replica.sources.map { source in
      SnapshotWriter.Source(name: source.name) { () throws(StorageError) in
        // Another node takes the claim after a minute of silence.
        snapshots.state.withLock { state in (state.claim, state.isClaimOld) = (other, false) }
        isTaken.withLock { $0 = true }
        return try source.begin()
      }
    }
    #expect(throws: SnapshotWritingError.noClaim) { try SnapshotWriter(snapshots, sealed: nil).write { sources } }
    #expect(isTaken.withLock { $0 } && snapshots.state.withLock { $0.claim } == other)
    try owner.stop()
  }

  /// The first batch of a store that was made meanwhile may be before the position of the snapshot: a node that loads it would
  /// never have the store.
  @Test func aStoreThatIsMadeMeanwhileIsNotForgotten() throws {
    var random = SplitMix(seed: 10)
    let owner = try truncatedCluster(&random)
    let replica = try #require(owner.replica)
    let made = try #require(StoreName(database: "made"))
    let count = snapshots.state.withLock { $0.heads.count }
    let writer = SnapshotWriter(snapshots, sealed: nil)
    #expect(throws: SnapshotWritingError.storeMade) {
      try writer.write {
        let sources = replica.sources
        // After the list of stores, and before the first copy.
        #expect(throws: Never.self) {
          try owner.write(made) { (transaction) throws(StorageError) in try transaction.put([1], [2]) }
        }
        return sources
      }
    }
    #expect(snapshots.state.withLock { $0.heads.count } == count && snapshots.state.withLock { $0.claim } == nil)
    try owner.writeSnapshot()
    let late = try node(2)
    try late.start()
    try expectEqual([owner, late])
    #expect(try late.contents(made) == owner.contents(made))
    try late.stop()
    try owner.stop()
  }

  // MARK: Everything together

  /// Load, snapshots, truncation, kills and empty directories at random. Replicas are equal afterwards, and each commit that
  /// was acknowledged counts once.
  @Test(arguments: TestSeeds.of("HEARTH_JOINING_SEED", otherwise: [1, 2]))
  func nodesJoinInTheMiddleOfLoad(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var keeping = SnapshotSettings()
    (keeping.logBytes, keeping.ownerPatience, keeping.keptTime, keeping.interval) = (20_000, 100_000, 0, 20_000)
    var nodes: [TestNode] = []
    for number in 1...3 {
      let node = try node(UInt32(number), seed: seed &* 100 &+ UInt64(number))
      node.keeping = keeping
      node.line.faults.withLock { $0.lossIn = 15 }
      nodes.append(node)
      try node.start()
    }
    snapshots.state.withLock { $0.lossIn = 15 }
    var acknowledged: [StoreName: UInt64] = [:]
    var unknown: [StoreName: UInt64] = [:]
    /// Commits at the owner, and counts the commit. Returns `false` if no node acknowledges it.
    func commits(_ store: StoreName) throws -> Bool {
      guard let owner = nodes.first(where: \.isOwner) else { return false }
      do {
        try owner.increment(store)
        acknowledged[store, default: 0] += 1
        return true
      } catch StorageError.notOwner {
      } catch StorageError.outcomeUnknown { unknown[store, default: 0] += 1 }
      return false
    }
    for round in 0..<10 {
      for _ in 0..<Int.random(in: 40...80, using: &random) {
        let isOwned = OtherProcess.eventually(secondsMax: 60) { nodes.contains(where: \.isOwner) }
        try #require(isOwned, "seed \(seed): \(nodes.map { String(describing: $0.member?.status) })")
        _ = try commits(random.pick(Self.stores))
      }
      let victim = Int.random(in: nodes.indices, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: nodes[victim].member?.handOver()
      case 1:
        try nodes[victim].stop()
        try nodes[victim].start()
      case 2:
        nodes[victim].kill()
        try nodes[victim].start()
      default:
        // The machine is replaced by another one.
        nodes[victim].kill()
        let fresh = try node(UInt32(10 + round), seed: seed &* 1000 &+ UInt64(round))
        fresh.keeping = keeping
        fresh.line.faults.withLock { $0.lossIn = 15 }
        nodes[victim] = fresh
        try fresh.start()
      }
    }
    // A claim that was not given back, because that request was lost, goes to the next node.
    snapshots.state.withLock { ($0.lossIn, $0.isClaimOld) = (nil, true) }
    for node in nodes { node.line.faults.withLock { $0.lossIn = nil } }
    try #require(try OtherProcess.eventually(secondsMax: 60) { try commits(.files) })
    // The owner shortens the log, if enough was committed since the newest snapshot.
    let isTruncated = try OtherProcess.eventually(secondsMax: 60) {
      _ = try commits(.files)
      return tables.state.withLock { $0.firstSequence } > 1
    }
    #expect(isTruncated, "seed \(seed): \(snapshots.state.withLock { $0.heads.count }) snapshots")
    try expectEqual(nodes, "seed \(seed)")
    for store in Self.stores {
      let count = try nodes[0].count(store)
      let least = acknowledged[store] ?? 0
      #expect(count >= least && count <= least + (unknown[store] ?? 0), "seed \(seed): \(store)")
    }
    let isTidy = OtherProcess.eventually(secondsMax: 60) { snapshots.state.withLock { $0.heads.count <= 3 } }
    #expect(isTidy)
    for node in nodes { node.kill() }
  }
}
