import ClusterTesting
import Foundation
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Copies of a cluster, which no node keeps up to date.
@Suite(.serialized) struct ReplicaRefreshTests {
  private static let documents = StoreName(database: "(default)")!

  private let tables = MemoryTables()
  private let snapshots: MemorySnapshots
  private let owner: TestNode
  /// Only the folder of the copy.
  private let copy: TestNode

  init() throws {
    snapshots = MemorySnapshots(tables)
    owner = try TestNode(1, Line { [tables] in tables.perform($0) })
    owner.snapshots = snapshots
    copy = try TestNode(2, Line { [tables] in tables.perform($0) })
    try owner.start()
    try owner.becomesOwner()
  }

  /// The outcome of a run.
  private struct Outcome {
    var position = LogPosition()
    /// The number of snapshots that were loaded.
    var loads = 0
    var aside: String?
  }

  private func refresh(_ line: Line? = nil) throws -> Outcome {
    let replica = try copy.openReplica()
    let outcome = Mutex(Outcome())
    let patience = ReplicaRefresh.Patience(pause: 10_000, silence: 200_000)
    let work = ReplicaRefresh(replica, line ?? copy.line, snapshots, copy.folder, patience) { progress in
      switch progress {
      case .loading(let bytes, let total): if bytes == total { outcome.withLock { $0.loads += 1 } }
      case .aside(let folder): outcome.withLock { $0.aside = folder }
      case .applied: break
      }
    }
    do {
      let end = try work.run()
      outcome.withLock { $0.position = end }
    } catch {
      replica.abandon()
      throw error
    }
    try replica.close()
    return outcome.withLock { $0 }
  }

  /// The copy has what the owner has, in files that can be read alone.
  private func expectEqual(_ outcome: Outcome, _ comment: String = "") throws {
    #expect(outcome.position == tables.state.withLock { $0.head }, "\(comment)")
    #expect(try LMDBStore.open(copy.options(Self.documents)).contents() == owner.contents(Self.documents), "\(comment)")
  }

  private func increment(_ count: Int) throws { for _ in 0..<count { try owner.increment(Self.documents) } }

  @Test func eachRunAppliesWhatIsNew() throws {
    try increment(20)
    for round in 0..<3 {
      try increment(round * 10)
      let outcome = try refresh()
      try expectEqual(outcome, "round \(round)")
      #expect(outcome.loads == 0 && outcome.aside == nil)
    }
  }

  @Test func aSnapshotIsLoadedIfTheLogDoesNotReachBack() throws {
    try increment(50)
    let first = try owner.writeSnapshot()
    tables.state.withLock { $0.truncate(before: first.position.sequence) }
    try increment(5)
    #expect(try refresh().loads == 1)
    try increment(50)
    let second = try owner.writeSnapshot()
    tables.state.withLock { $0.truncate(before: second.position.sequence) }
    try increment(5)
    let outcome = try refresh()
    try expectEqual(outcome)
    #expect(outcome.loads == 1 && outcome.aside == nil)
  }

  /// The last entry is visible, and then lost: it was never acknowledged.
  @Test func anEntryThatIsNotDurableIsNotCopied() throws {
    try increment(10)
    owner.kill()
    let lost = Mutex(false)
    let line = Line { [tables] request in
      guard case .settle = request, !lost.withLock({ $0 }) else { return tables.perform(request) }
      lost.withLock { $0 = true }
      tables.state.withLock { $0.lose(1) }
      return .notSettled
    }
    let head = tables.state.withLock { $0.head }
    let outcome = try refresh(line)
    #expect(lost.withLock { $0 } && outcome.position.sequence == head.sequence - 1)
    #expect(outcome.position == tables.state.withLock { $0.head })
  }

  @Test func commitsThatTheLogLostAreSetAside() throws {
    try increment(20)
    #expect(try refresh().aside == nil)
    owner.kill()
    tables.state.withLock { $0.lose(3) }
    // Nobody appends them again.
    let outcome = try refresh()
    #expect(outcome.position == tables.state.withLock { $0.head })
    let aside = try #require(outcome.aside)
    let former = "\(copy.directory.path)/\(aside)/documents+(default).mdb"
    let count = try LMDBStore.open(LMDBOptions(path: former, mapBytes: TestNode.mapBytes)).snapshot()
    #expect(try count.count() == 20)
    count.end()
    let kept = try LMDBStore.open(copy.options(Self.documents)).snapshot()
    #expect(try kept.count() == 17)
    kept.end()
  }

  @Test func silentTablesAreNamed() throws {
    try increment(3)
    copy.line.cut(true)
    #expect(throws: ReplicaRefresh.Failure.noAnswer) { try refresh() }
    copy.line.cut(false)
    try expectEqual(try refresh())
  }
}
