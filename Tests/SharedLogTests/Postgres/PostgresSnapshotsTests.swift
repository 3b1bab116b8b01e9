import Foundation
import LogEngine
import PostgresEngine
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Snapshots in a real PostgreSQL: only whole ones are seen, and the log is shortened by its owner only.
@Suite(.needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct PostgresSnapshotsTests {
  private static let secret: UInt64 = 0xFEDC_BA98_7654_3210
  private let server: PostgresServer

  init() throws { server = try PostgresServer() }

  /// The tables of a cluster with some entries, of which node 1 is the owner.
  private struct Cluster {
    let url: String
    let tables: PostgresTables
    let owner: NodeSession
    let entries: [SharedEntry]
  }

  private func cluster(_ name: String, entries count: Int = 10) throws -> Cluster {
    let url = try server.makeDatabase(name)
    try ClusterSchema.create(
      at: url, ClusterIdentity(project: "shop", keyCheck: [1], acceptsLoss: true, secret: Self.secret))
    var patience = PostgresTables.Patience()
    (patience.request, patience.append) = (60_000, 60_000)
    let tables = try PostgresTables(url, secret: Self.secret, patience: patience)
    guard case .session(let session) = tables.perform(.beginSession(node: 1, after: 0, renewal: 1)),
      case .takenOver(let first) = tables.perform(.takeOver(by: session, from: nil, epoch: 0))
    else { throw try #require(tables.lastFailure) }
    var entries = [first]
    for number in 0..<count {
      let entry = SharedEntry(
        .batch, [UInt8](repeating: UInt8(number % 256), count: 100), after: entries[number].position, epoch: 1,
        secret: Self.secret)
      #expect(tables.perform(.append(entry, behind: entries[number].position)) == .appended)
      entries.append(entry)
    }
    return Cluster(url: url, tables: tables, owner: session, entries: entries)
  }

  private func head(_ id: UInt64, _ entry: SharedEntry, parts: Int) -> SnapshotHead {
    SnapshotHead(id: id, position: entry.position, parts: parts, bytes: Int64(parts * 1000), fileBytes: 5000)
  }

  private func add(_ id: UInt64, parts: Int, _ snapshots: PostgresSnapshots) throws {
    for number in 0..<parts {
      #expect(try snapshots.add([UInt8](repeating: UInt8(number), count: 1000), number: number, to: id))
    }
  }

  @Test(arguments: ["read committed", "serializable"])
  func onlyWholeSnapshotsAreSeen(isolation: String) throws {
    let cluster = try cluster("whole")
    try server.sql("ALTER DATABASE whole SET default_transaction_isolation = '\(isolation)'", in: "postgres")
    let (one, other) = (try PostgresSnapshots(cluster.url), try PostgresSnapshots(cluster.url))
    let mark = cluster.entries[5]
    #expect(try one.claim(7))
    #expect(try !other.claim(8), "another node has the claim")
    #expect(try !other.add([1], number: 0, to: 8))
    try add(7, parts: 3, one)
    #expect(try one.snapshots().isEmpty)
    // A part is missing, or the log has another entry at the position.
    #expect(try !one.finish(head(7, mark, parts: 4), manifest: [1], marks: [mark.position]))
    var strange = mark.position
    strange.chain ^= 1
    #expect(try !one.finish(head(7, mark, parts: 3), manifest: [1], marks: [mark.position, strange]))
    // The same part twice, after a lost answer.
    #expect(try one.add([UInt8](repeating: 2, count: 1000), number: 2, to: 7))
    #expect(try one.finish(head(7, mark, parts: 3), manifest: [1, 2], marks: [mark.position]))
    #expect(try one.finish(head(7, mark, parts: 3), manifest: [1, 2], marks: [mark.position]), "a repetition")
    #expect(try other.snapshots() == [head(7, mark, parts: 3)])
    #expect(try other.manifest(of: 7) == [1, 2])
    #expect(try other.part(1, of: 7) == [UInt8](repeating: 1, count: 1000))
    #expect(try other.part(3, of: 7) == nil)
    #expect(try other.hasEntry(at: mark.position) && !other.hasEntry(at: strange))
    #expect(try other.logBytes(after: 6) == Int64(cluster.entries.count - 6) * 100)
    // The claim is free again, and the parts of a finished snapshot are no leftovers.
    #expect(try other.claim(9))
    try other.release(9)
    #expect(try !other.removeLeftovers())
    while try other.remove(7) {}
    #expect(try other.snapshots().isEmpty && other.part(0, of: 7) == nil)
  }

  @Test func aSilentWriterLosesItsClaimAndItsParts() throws {
    let cluster = try cluster("silent")
    let (one, other) = (try PostgresSnapshots(cluster.url), try PostgresSnapshots(cluster.url))
    let mark = cluster.entries[5]
    #expect(try one.claim(7))
    try add(7, parts: 70, one)
    #expect(try !other.removeLeftovers(), "its writer may go on")
    try server.sql("UPDATE hearth_snapshot_claim SET until = until - 100", in: "silent")
    while try other.removeLeftovers() {}
    #expect(try server.sql("SELECT count(*) FROM hearth_snapshot_part", in: "silent") == "0")
    #expect(try !one.finish(head(7, mark, parts: 70), manifest: [1], marks: [mark.position]))
    #expect(try !one.add([1], number: 70, to: 7))
    #expect(try other.claim(8))
    try server.sql("UPDATE hearth_snapshot_claim SET until = until - 100", in: "silent")
    #expect(try one.claim(9), "a claim that was not used goes to the next node")
    #expect(try !other.add([1], number: 0, to: 8))
  }

  @Test func onlyTheOwnerShortensTheLog() throws {
    let cluster = try cluster("short", entries: 4500)
    let snapshots = try PostgresSnapshots(cluster.url)
    let bound = cluster.entries[4400].position.sequence
    #expect(throws: SnapshotFailure.self) { try snapshots.truncate(before: bound, by: cluster.owner, epoch: 2) }
    #expect(throws: SnapshotFailure.self) {
      try snapshots.truncate(before: bound, by: NodeSession(node: 2, session: 1), epoch: 1)
    }
    #expect(try server.sql("SELECT count(*) FROM hearth_log", in: "short") == "\(cluster.entries.count)")
    // An owner appends, and others observe meanwhile: each observation has no gap.
    let gaps = Mutex<[String]>([])
    let isOver = Mutex(false)
    DispatchQueue.concurrentPerform(iterations: 3) { thread in
      switch thread {
      case 0:
        while (try? snapshots.truncate(before: bound, by: cluster.owner, epoch: 1)) == true {}
        isOver.withLock { $0 = true }
      case 1:
        guard let tables = try? PostgresTables(cluster.url, secret: Self.secret) else { return }
        while !isOver.withLock({ $0 }) {
          guard case .observed(let seen) = tables.perform(.observe(after: 0)) else { continue }
          if let first = seen.entries.first, first.position.sequence != seen.firstSequence {
            gaps.withLock { $0.append("\(first.position.sequence) after \(seen.firstSequence)") }
          }
        }
      default:
        var last = cluster.entries[cluster.entries.count - 1].position
        for _ in 0..<50 {
          let entry = SharedEntry(.batch, [1], after: last, epoch: 1, secret: Self.secret)
          let reply = cluster.tables.perform(.append(entry, behind: last))
          if reply != .appended { gaps.withLock { $0.append("\(String(describing: reply))") } }
          last = entry.position
        }
      }
    }
    #expect(gaps.withLock { $0 } == [])
    let left = try server.sql("SELECT min(seq), max(seq) FROM hearth_log", in: "short")
    #expect(left == "\(bound)|\(cluster.entries.count + 50)")
    #expect(try server.sql("SELECT log_from FROM hearth_cluster", in: "short") == "\(bound)")
  }

  /// A cluster of the former version is refused with the command that helps.
  @Test func formerTablesAreUpgraded() throws {
    let url = try server.makeDatabase("former")
    let identity = ClusterIdentity(project: "shop", keyCheck: [1], acceptsLoss: true, secret: Self.secret)
    try ClusterSchema.create(at: url, identity)
    try server.sql("DROP TABLE hearth_snapshot, hearth_snapshot_part, hearth_snapshot_claim", in: "former")
    try server.sql("UPDATE hearth_meta SET v = '1' WHERE k = 'format'", in: "former")
    #expect(throws: PostgresFailure.formerFormat) { try ClusterSchema.check(at: url) }
    #expect(PostgresFailure.formerFormat.description.contains("hearth cluster upgrade"))
    try ClusterSchema.upgrade(at: url)
    #expect(try ClusterSchema.check(at: url) == identity)
    try ClusterSchema.upgrade(at: url)
    #expect(try PostgresSnapshots(url).snapshots().isEmpty && PostgresSnapshots(url).claim(1))
  }

  /// The tables of a cluster that begins with uploaded data can be removed until a node uses them.
  @Test func aClusterWithoutNodesCanBeRemoved() throws {
    let url = try server.makeDatabase("removed")
    let identity = ClusterIdentity(project: "shop", keyCheck: [1], acceptsLoss: true, secret: Self.secret)
    let first = SharedEntry(.handover, [], after: LogPosition(sequence: 1), epoch: 0, secret: Self.secret)
    try ClusterSchema.create(at: url, identity, first: first)
    let tables = try PostgresTables(url, secret: Self.secret)
    guard case .observed(let seen) = tables.perform(.observe(after: 0)) else { throw try #require(tables.lastFailure) }
    #expect(seen.firstSequence == 2 && seen.entries == [first])
    try ClusterSchema.remove(at: url, identity)
    #expect(throws: PostgresFailure.noTables) { try ClusterSchema.check(at: url) }
    try ClusterSchema.create(at: url, identity, first: first)
    _ = tables.perform(.beginSession(node: 1, after: 0, renewal: 1))
    #expect(throws: PostgresFailure.self) { try ClusterSchema.remove(at: url, identity) }
  }
}
