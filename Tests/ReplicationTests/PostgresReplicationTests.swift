import ClusterTesting
import Foundation
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

  /// A node with an empty directory loads a snapshot of some size. Prints how long that takes, and a copy of the file.
  @Test func aNodeJoinsAfterTruncation() throws {
    let url = try server.makeDatabase("joining")
    let nodes = try nodes(2, url)
    for node in nodes {
      node.snapshots = try PostgresSnapshots(url)
      node.settings.store.memtableBytesMax = 16 << 20
    }
    try nodes[0].start()
    try nodes[0].becomesOwner()
    var random = SplitMix(seed: 1)
    let value = (0..<200_000).map { _ in UInt8.random(in: 0...15, using: &random) }
    for number in 0..<Self.joinedMegabytes * 5 {
      try nodes[0].write(.files) { (transaction) throws(StorageError) in
        try transaction.put([7, UInt8(number >> 8), UInt8(number & 255)], value)
      }
    }
    let writing = try microseconds { try nodes[0].writeSnapshot() }
    let snapshots = try PostgresSnapshots(url)
    let head = try #require(try snapshots.snapshots().first)
    let session = try #require(nodes[0].member?.status.session)
    while try snapshots.truncate(before: head.position.sequence, by: session, epoch: 1) {}
    try nodes[0].increment(.files)
    let sequence = nodes[0].member?.status.applied.sequence ?? 0
    let joining = try microseconds {
      try nodes[1].start()
      let isJoined = OtherProcess.eventually(secondsMax: 120) {
        nodes[1].member?.status.applied.sequence ?? 0 >= sequence && nodes[1].member?.status.isJoining == false
      }
      try #require(isJoined, "\(nodes[1].events.value)")
    }
    let copying = try microseconds {
      try nodes[0].replica?.loggedStore(.files)?.copy(toFile: nodes[0].directory.file("copy"))
    }
    #expect(try nodes[1].contents(.files) == nodes[0].contents(.files))
    print(
      """
      joining: a snapshot of \(head.fileBytes >> 20) MiB as \(head.bytes >> 20) MiB takes \(writing / 1000) ms, a join \
      \(joining / 1000) ms, a copy of the file \(copying / 1000) ms
      """)
    for node in nodes { try node.stop() }
  }

  /// The size of the data of that test: few, unless the environment names more.
  private static let joinedMegabytes =
    ProcessInfo.processInfo.environment["HEARTH_JOINED_MEGABYTES"].flatMap { Int($0) } ?? 20

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
