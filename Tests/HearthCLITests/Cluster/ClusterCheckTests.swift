import Foundation
@testable import HearthCLI
import KeyValue
import LMDBEngine
import LogEngine
import PostgresEngine
import Replication
import Testing
import TestSupport

/// `hearth cluster check`: the comparison of the replicas of all nodes.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterCheckTests {
  private let cluster: ServedCluster
  private let owner: Int

  init() throws {
    cluster = try ServedCluster(nodes: 3)
    owner = try cluster.owner()
    for number in 0..<40 {
      let made = try ServedCluster.send(
        cluster.ports[number % 3], "POST", "\(ServedCluster.documents)/items?documentId=i\(number)",
        #"{"fields": {"n": {"integerValue": "1"}}}"#)
      #expect(made.status == 200, "\(made.text)")
    }
  }

  private func check(_ options: String...) throws -> (exit: ProcessExit?, output: String) {
    let run = try HearthBinary.run(
      ["cluster", "check", cluster.url, "--key", cluster.directory.file("cluster.key")] + options)
    return (run.exit, run.output)
  }

  /// Changes an entry of the documents of a node that has stopped, as a damaged disk could. Its mark stays.
  private func damage(_ index: Int) throws {
    let folder = cluster.directory.file("node\(index + 1)")
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
    let file = try #require(names.first { $0.contains("(default)") && $0.hasSuffix(".mdb") }, "\(names)")
    var options = LMDBOptions(path: "\(folder)/\(file)", mapBytes: 1 << 30)
    options.acceptsOpenLog = true
    let store = try LMDBStore.open(options)
    let mark = try store.logMark()
    try store.writeMarked { (transaction) throws(StorageError) in
      var failure: StorageError?
      [UInt8]([0xFE, 1]).withUnsafeBytes { bytes in
        do throws(StorageError) { try transaction.put(bytes, bytes) } catch { failure = error }
      }
      if let failure { throw failure }
      return mark
    }
  }

  @Test func itFindsTheReplicaThatDiffers() throws {
    let good = try check()
    try #require(good.exit == .code(0), "\(good.output)")
    let lines = good.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    #expect(lines[1].hasPrefix("3 replicas at entry "))
    let rows = lines.map { $0.split(separator: " ", omittingEmptySubsequences: true).map(String.init) }
    try #require(rows.count > 6, "\(good.output)")
    #expect(rows[3] == ["store", "entries", "data", "digest", "nodes"])
    #expect(rows[4].first == "accounts" && rows[4].suffix(3) == ["1,", "2,", "3"])
    #expect(rows[5].first == "documents/(default)" && rows[5].suffix(3) == ["1,", "2,", "3"])
    #expect(lines.suffix(3) == ["", "all 3 replicas are equal", ""])
    let json = try JSONNode(parsing: Array(check("--json").output.utf8))
    #expect(json["ok"]?.text == "true" && json["nodes"]?.elements.count == 3)
    #expect(json["stores"]?.elements.last?["sha256"]?.stringValue?.count == 64)

    let victim = (owner + 1) % 3
    cluster.nodes[victim].process.stop()
    try damage(victim)
    try cluster.restart(victim)
    try cluster.waitUntilReading(victim)
    let bad = try check()
    #expect(bad.exit == .code(1))
    let others = [1, 2, 3].filter { $0 != victim + 1 }
    let found = bad.output.split(separator: "\n").map(String.init)
    let documents = found.filter { $0.hasPrefix("documents/(default)") }
    #expect(documents.count == 2, "\(bad.output)")
    #expect(documents.first?.hasSuffix("  \(others[0]), \(others[1])") == true)
    #expect(documents.last?.hasSuffix("  \(victim + 1)") == true)
    #expect(
      found.suffix(2) == [
        "the replica of node \(victim + 1) differs from the others.",
        "Stop the node, move its data directory away, and start it: it loads the data anew.",
      ])

    // A node without its directory is a new one, which loads the data.
    cluster.nodes[victim].process.stop()
    try FileManager.default.removeItem(atPath: cluster.directory.file("node\(victim + 1)"))
    try cluster.restart(victim)
    try cluster.waitUntilReading(victim)
    let mended = try check()
    #expect(mended.output.contains("node \(victim + 1) has not renewed its session"))
    #expect(mended.output.hasSuffix("all 3 replicas are equal\n"), "\(mended.output)")
    #expect(mended.exit == .code(0))
  }

  @Test func aNodeThatDoesNotRunTakesNoPart() throws {
    let silent = (owner + 1) % 3
    cluster.nodes[silent].process.send(signal: SIGSTOP)
    defer { cluster.nodes[silent].process.send(signal: SIGCONT) }
    let output = try check()
    #expect(output.exit == .code(0))
    #expect(
      output.output.hasSuffix(
        """
        node \(silent + 1) has not renewed its session, so it was not compared
        all 2 replicas are equal

        """), "\(output.output)")
    #expect(output.output.contains("\n2 replicas at entry "))
  }

  @Test func anotherKeyIsRefused() throws {
    let other = cluster.directory.file("other.key")
    try ClusterKey().write(to: other)
    let run = try HearthBinary.run(["cluster", "check", cluster.url, "--key", other])
    #expect(run.exit == .code(1) && run.output.contains("key"), "\(run.output)")
  }
}

/// The text of a comparison.
@Suite struct ReplicaComparisonTests {
  private static func digest(_ byte: UInt8, chain: UInt64 = 1, entries: Int = 12_345) -> ReplicaDigest {
    ReplicaDigest(
      position: LogPosition(sequence: 77, epoch: 2, chain: chain),
      stores: [
        ReplicaDigest.Store(name: .accounts, entries: 3, bytes: 2_048, digest: [UInt8](repeating: 1, count: 32)),
        ReplicaDigest.Store(
          name: StoreName(database: "(default)")!, entries: entries, bytes: 5 << 20,
          digest: [UInt8](repeating: byte, count: 32)),
      ])
  }

  private static func comparison(
    _ digests: [UInt32: ReplicaDigest], owner: UInt32? = 1, missing: [(node: UInt32, reason: String)] = [],
    absent: [UInt32] = []
  ) -> ReplicaComparison {
    ReplicaComparison(
      identity: ClusterIdentity(project: "shop", keyCheck: [1], acceptsLoss: true, id: Array(0..<16), secret: 5),
      owner: owner, digests: digests, missing: missing, absent: absent)
  }

  private static func text(_ comparison: ReplicaComparison) -> String {
    // Without the project.
    comparison.text(on: Terminal(descriptor: -1)).split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
      .joined(separator: "\n")
  }

  @Test func theReplicaOfTheMinorityDiffers() {
    let comparison = Self.comparison([1: Self.digest(7), 2: Self.digest(8, entries: 9), 3: Self.digest(7)])
    #expect(!comparison.isGood && comparison.differing == [2])
    #expect(
      Self.text(comparison) == """
        3 replicas at entry 77 of the log

        store                entries  data   digest            nodes
        accounts             3        2 KiB  0101010101010101  1, 2, 3
        documents/(default)  12,345   5 MiB  0707070707070707  1, 3
        documents/(default)  9        5 MiB  0808080808080808  2

        the replica of node 2 differs from the others.
        Stop the node, move its data directory away, and start it: it loads the data anew.

        """)
  }

  @Test func anOwnerThatDiffersHandsOverFirst() {
    let comparison = Self.comparison([1: Self.digest(8), 2: Self.digest(7), 3: Self.digest(7)])
    #expect(
      Self.text(comparison).hasSuffix(
        """
        the replica of node 1 differs from the others.
        Node 1 owns the cluster: first let another one do so, with `hearth cluster drain 1`.
        Stop the node, move its data directory away, and start it: it loads the data anew.

        """))
  }

  @Test func withoutAMajorityNobodyIsRight() {
    let comparison = Self.comparison([1: Self.digest(8), 2: Self.digest(7)])
    #expect(!comparison.isGood && Self.text(comparison).contains("the replicas differ, and none has a majority."))
    let json = String(decoding: comparison.json(), as: UTF8.self)
    #expect(!json.contains("isEqual"), "\(json)")
  }

  /// Replicas that have the same data may have got there by different logs.
  @Test func anotherLogDiffers() {
    let comparison = Self.comparison([1: Self.digest(7), 2: Self.digest(7), 3: Self.digest(7, chain: 9)])
    #expect(comparison.differing == [3] && !comparison.isGood)
    #expect(Self.text(comparison).contains("The data of node 3 is the same, but its log has another history.\n"))
  }

  @Test func aStoreThatAReplicaLacksIsShown() {
    var lacking = Self.digest(7)
    lacking.stores.removeLast()
    let comparison = Self.comparison([1: Self.digest(7), 2: lacking, 3: Self.digest(7)])
    #expect(comparison.differing == [2])
    #expect(Self.text(comparison).contains("documents/(default)  -        -      -                 2\n"))
  }

  @Test func nodesThatTakeNoPartAreNamed() {
    let alone = Self.comparison([1: Self.digest(7)], missing: [(2, "it does not answer")])
    #expect(!alone.isGood)
    #expect(
      Self.text(alone).hasSuffix(
        """
        node 2 was not compared: it does not answer
        only one replica, so there is nothing to compare

        """))
    #expect(Self.comparison([1: Self.digest(7)]).isGood)
    #expect(!Self.comparison([1: Self.digest(7)], absent: [2]).isGood)
    let others = Self.comparison([1: Self.digest(7), 3: Self.digest(7)], absent: [2])
    #expect(others.isGood && Self.text(others).hasSuffix("not compared\nall 2 replicas are equal\n"))
    let none = Self.comparison([:], missing: [(1, "the disk failed")])
    #expect(!none.isGood && Self.text(none).hasSuffix("no replica was compared\n"))
  }
}
