import ClusterTesting
import KeyValue
import LogEngine
import PostgresEngine
@testable import Replication
import SharedLog
import Testing
import TestSupport

/// Members on a real PostgreSQL, with the times of production.
@Suite(.needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct PostgresReplicationTests {
  private static let secret: UInt64 = 0x0123_4567_89AB_CDEF
  private let server: PostgresServer

  init() throws { server = try PostgresServer() }

  private func nodes(_ count: Int, _ url: String) throws -> [TestNode] {
    let identity = ClusterIdentity(
      project: "shop", keyCheck: try ClusterKey().check(), acceptsLoss: true, secret: Self.secret)
    try ClusterSchema.create(at: url, identity)
    return try (1...count).map { number in
      let tables = try PostgresTables(url, secret: Self.secret)
      let node = try TestNode(UInt32(number), Line { tables.perform($0) }, secret: Self.secret)
      node.timing = ClusterTiming()
      node.settings = Replica.Settings()
      node.settings.store.memtableBytesMax = 200_000
      return node
    }
  }

  private func microseconds(_ work: () throws -> Void) rethrows -> Int64 {
    let start = BootTime.now()
    try work()
    return BootTime.now() - start
  }

  @Test func anotherNodeContinues() throws {
    let nodes = try nodes(3, server.makeDatabase("failover"))
    try nodes[0].start()
    try nodes[0].becomesOwner()
    for node in nodes.dropFirst() { try node.start() }
    let commits: UInt64 = 300
    let time = try microseconds { for _ in 0..<commits { try nodes[0].increment(.files) } }
    nodes[0].kill()
    var next: TestNode?
    let failover = try microseconds {
      let isOwned = OtherProcess.eventually(secondsMax: 60) {
        next = nodes.dropFirst().first { $0.isOwner && (try? $0.increment(.files)) != nil }
        return next != nil
      }
      try #require(isOwned)
    }
    let owner = try #require(next)
    #expect(try owner.count(.files) == commits + 1)
    try nodes[0].start()
    let handover = try microseconds { try owner.stop() }
    let takeover = try microseconds {
      let isOwned = OtherProcess.eventually(secondsMax: 60) {
        nodes.contains { $0.isOwner && (try? $0.increment(.files)) != nil }
      }
      try #require(isOwned)
    }
    let other = try TestNode.owner(of: nodes)
    #expect(try other.count(.files) == commits + 2)
    try owner.start()
    let isCaughtUp = OtherProcess.eventually(secondsMax: 60) { (try? owner.count(.files)) == commits + 2 }
    try #require(isCaughtUp)
    print(
      """
      replication: a commit takes \(time / Int64(commits)) µs, the first commit after a kill \(failover / 1000) ms, \
      a stop \(handover / 1000) ms, the first commit after it \(takeover / 1000) ms
      """)
    #expect(failover < 30_000_000)
    for node in nodes { try node.stop() }
  }

  /// PostgreSQL ends all connections again and again while an owner commits.
  @Test func lostConnectionsLoseNothing() throws {
    let url = try server.makeDatabase("cuts")
    let node = try nodes(1, url)[0]
    try node.start()
    try node.becomesOwner()
    var acknowledged: UInt64 = 0
    for round in 0..<200 {
      if round % 10 == 5 {
        try server.sql(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'cuts'", in: "postgres")
      }
      do {
        try node.increment(.accounts)
        acknowledged += 1
      } catch StorageError.notOwner { try node.becomesOwner() }
    }
    #expect(try node.count(.accounts) == acknowledged)
    let rows = try server.sql("SELECT count(*) FROM hearth_log WHERE kind = 1", in: "cuts")
    #expect(rows == "\(acknowledged)")
    try node.stop()
  }
}
