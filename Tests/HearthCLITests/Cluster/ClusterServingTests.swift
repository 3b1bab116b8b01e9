import Foundation
import Glibc
import Testing
import TestSupport

/// Three processes of `hearth serve --cluster`, which clients use without a balancer.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterServingTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let rounds = environment["CLUSTER_ROUNDS"].flatMap { Int($0) } ?? 2
  private static let documents = ServedCluster.documents

  // MARK: - Any node answers anything

  @Test func eachNodeServesDocumentsAccountsAndFiles() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let ports = cluster.ports
      // Documents.
      for (index, port) in ports.enumerated() {
        let made = try ServedCluster.send(
          port, "POST", "\(Self.documents)/items?documentId=i\(index)", #"{"fields": {"n": {"integerValue": "1"}}}"#)
        #expect(made.status == 200, "\(made.text)")
      }
      for port in ports {
        let found = try JSONNode(parsing: ServedCluster.send(port, "GET", "\(Self.documents)/items").body)
        #expect(found["documents"]?.elements.count == 3, "\(found.text)")
        let feed = try ServedCluster.send(port, "GET", "\(Self.documents)/items:listen?once=true")
        #expect(feed.text.split(separator: "\n").count { $0.contains("documentChange") } == 3, "\(feed.text)")
        #expect(try ServedCluster.send(port, "GET", "/healthz").text == "ok\n")
      }
      // An account, made at one node and used at another.
      let signUp = "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=shop"
      let account = #"{"email": "ann@example.org", "password": "correct horse", "returnSecureToken": true}"#
      let made = try JSONNode(parsing: ServedCluster.send(ports[1], "POST", signUp, account).body)
      let token = try #require(made["idToken"]?.stringValue, "\(made.text)")
      let lookup = "/identitytoolkit.googleapis.com/v1/accounts:lookup?key=shop"
      let found = try ServedCluster.send(ports[2], "POST", lookup, #"{"idToken": "\#(token)"}"#)
      #expect(found.text.contains("ann@example.org"), "\(found.text)")
      // The log has it encrypted.
      let clear = "SELECT count(*) FROM hearth_log WHERE position('ann@example.org'::bytea IN body) > 0"
      #expect(try cluster.postgres.sql(clear, in: "hearth") == "0")
      #expect(try cluster.postgres.sql("SELECT count(*) > 3 FROM hearth_log", in: "hearth") == "t")
      // A file, whose content the next owner must have.
      let upload = "/v0/b/shop.appspot.com/o?uploadType=media&name=notes/a.txt"
      let content = String(repeating: "file ", count: 20_000)
      let put = try ServedCluster.send(ports[2], "POST", upload, content, headers: [("Content-Type", "text/plain")])
      #expect(put.status == 200, "\(put.text)")
      let owner = try cluster.owner()
      cluster.nodes[owner].process.send(signal: SIGKILL)
      let next = try cluster.owner(after: owner)
      for index in ports.indices where index != owner {
        let read = try ServedCluster.send(ports[index], "GET", "/v0/b/shop.appspot.com/o/notes%2Fa.txt?alt=media")
        #expect(read.status == 200 && read.text == content, "node \(index + 1): \(read.status)")
        let again = try ServedCluster.send(ports[index], "POST", lookup, #"{"idToken": "\#(token)"}"#)
        #expect(again.text.contains("ann@example.org"), "\(again.text)")
      }
      #expect(next != owner)
    }
  }

  // MARK: - Owners that end

  /// The way in which the owner ends.
  enum End: String, CaseIterable, Sendable {
    /// `kill -9`, then a start on the same directory.
    case killed
    /// SIGSTOP for longer than a takeover takes: the owner wakes as a zombie.
    case paused
    /// SIGTERM: a handover.
    case stopped
  }

  @Test(arguments: End.allCases) func acknowledgedCommitsSurvive(end: End) async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let load = ClusterLoad(cluster.ports)
      let wait = load.start()
      for _ in 0..<Self.rounds {
        let enough = load.acknowledged.value + 100
        #expect(load.acknowledged.wait(secondsMax: 60) { $0 >= enough }, "the cluster does not commit")
        let owner = try cluster.owner()
        let process = cluster.nodes[owner].process
        switch end {
        case .killed: process.send(signal: SIGKILL)
        case .paused: kill(process.processID, SIGSTOP)
        case .stopped: kill(process.processID, SIGTERM)
        }
        _ = try cluster.owner(after: owner)
        switch end {
        case .killed: try cluster.restart(owner)
        case .paused:
          kill(process.processID, SIGCONT)
          // The former owner follows the next one.
          try cluster.waitUntilReading(owner)
        case .stopped:
          #expect(process.waitForExit(timeoutSeconds: 30) == .code(0), "\(process.output)")
          try cluster.restart(owner)
        }
      }
      let enough = load.acknowledged.value + 100
      #expect(load.acknowledged.wait(secondsMax: 60) { $0 >= enough }, "the cluster does not commit")
      load.stop()
      let logs = wait()
      for port in cluster.ports {
        let problems = try load.problems(logs, at: port)
        #expect(problems.isEmpty, "\(end): \(problems.prefix(20).joined(separator: "\n"))")
      }
      let pause = logs.map(\.longestPause).max() ?? 0
      let refused = logs.reduce(0) { $0 + $1.refused.count }
      print(
        "\(end): \(load.acknowledged.value) acknowledged commits, \(refused) refused, "
          + "longest wait of a client \(pause) ms")
      // The requests under way end before a handover, and those that wait find the next owner. Both have a limited time.
      if end == .stopped { #expect(refused <= Self.rounds) }
      // With a margin for loaded machines; see docs/performance.md.
      #expect(pause < 20_000)
    }
  }

  // MARK: - Reads

  /// Each node that is not the owner reads from its own replica, also while owners are killed.
  @Test func readsOfAllNodesAreThoseOfOneDatabase() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let owner = try cluster.owner()
      for index in cluster.ports.indices where index != owner {
        let first = try ServedCluster.send(cluster.ports[index], "GET", "\(Self.documents)/shared/0")
        #expect(first.status == 404, "\(first.text)")
        try cluster.waitUntilReading(index)
      }
      let clients = ClusterReads(cluster.ports)
      let wait = clients.start()
      func more(_ count: Int) {
        let before = clients.reads.value
        let areEnough = clients.reads.wait(secondsMax: 120) { reads in
          zip(reads, before).allSatisfy { $0 >= $1 + count }
        }
        #expect(areEnough, "reads by node: \(clients.reads.value)")
      }
      more(200)
      cluster.nodes[owner].process.send(signal: SIGKILL)
      _ = try cluster.owner(after: owner)
      try cluster.restart(owner)
      try cluster.waitUntilReading(owner)
      more(200)
      clients.stop()
      let problems = wait()
      #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
      print("reads by node: \(clients.reads.value)")
      // The relays passed the increments, a quarter of the requests, and only few reads.
      for index in cluster.ports.indices {
        let relayed = try #require(cluster.metrics(of: index)["hearth_relay_requests_total"])
        #expect(relayed < Double(clients.reads.value[index]), "node \(index + 1)")
      }
    }
  }

  // MARK: - Operation

  @Test func deployedRulesAreInForceAtEachNode() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2)
      let target = "\(Self.documents)/items"
      #expect(try ServedCluster.send(cluster.ports[1], "POST", target, "{}").status == 200)
      let rules = try cluster.directory.write(
        "closed.rules",
        "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents/items/{i} { allow read: if true; } }"
      )
      let deployed = try HearthBinary.run(["cluster", "deploy", cluster.url, "--rules", rules])
      #expect(deployed.exit == .code(0), "\(deployed.output)")
      let isClosed = try OtherProcess.eventually(secondsMax: 20) {
        try cluster.ports.allSatisfy { try ServedCluster.send($0, "POST", target, "{}").status == 403 }
      }
      #expect(isClosed)
      #expect(try ServedCluster.send(cluster.ports[0], "GET", target).status == 200)
      // A drained node gives the cluster away, and serves through the other one.
      let owner = try cluster.owner()
      let drained = try HearthBinary.run(["cluster", "drain", cluster.url, "\(owner + 1)"])
      #expect(drained.exit == .code(0), "\(drained.output)")
      #expect(try cluster.owner() == 1 - owner)
      #expect(try ServedCluster.send(cluster.ports[owner], "GET", target).status == 200)
    }
  }

  /// An operator removes a node whose machine is gone. One that runs is refused, and registers again if it is removed all the same.
  @Test func aNodeThatDoesNotComeBackIsRemoved() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let owner = try cluster.owner()
      let (gone, other) = ((owner + 1) % 3, (owner + 2) % 3)
      func remove(_ index: Int) throws -> (exit: ProcessExit?, output: String) {
        try HearthBinary.run(["cluster", "remove", cluster.url, "\(index + 1)"])
      }
      func numbers() throws -> [Int] {
        try #require(try cluster.status()["nodes"]?.elements).compactMap { $0["node"]?.integerValue }
      }
      #expect(try remove(other).output.contains("node \(other + 1) renews its session: stop it first"))
      #expect(try HearthBinary.run(["cluster", "remove", cluster.url, "9"]).output.contains("has no node 9"))
      cluster.kill(gone)
      let removed = try remove(gone)
      #expect(removed.exit == .code(0) && removed.output == "node \(gone + 1) is removed\n", "\(removed.output)")
      #expect(try numbers() == [owner, other].map { $0 + 1 }.sorted())
      // Its directory joins with its number.
      try cluster.restart(gone)
      try cluster.waitUntilReading(gone)
      #expect(try numbers() == [1, 2, 3])
      // The owner was removed in the tables while it runs.
      try cluster.postgres.sql("DELETE FROM hearth_member WHERE node = \(owner + 1)", in: "hearth")
      #expect(try OtherProcess.eventually { try numbers() == [1, 2, 3] })
      #expect(try ServedCluster.send(cluster.ports[gone], "POST", "\(Self.documents)/items", "{}").status == 200)
    }
  }

  @Test func metricsTellThePartOfEachNode() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2)
      let owner = try cluster.owner()
      for _ in 0..<3 {
        #expect(try ServedCluster.send(cluster.ports[1 - owner], "POST", "\(Self.documents)/items", "{}").status == 200)
      }
      let first = try cluster.metrics(of: owner)
      #expect(first[#"hearth_cluster_node_info{node="\#(owner + 1)"}"#] == 1)
      #expect(first[#"hearth_cluster_role{role="owner"}"#] == 1 && first[#"hearth_cluster_role{role="follower"}"#] == 0)
      #expect(first["hearth_cluster_takeovers_total"] == 1 && first["hearth_relay_requests_total"] == 0)
      let (lease, silence) = (first["hearth_cluster_lease_seconds"], first["hearth_cluster_silence_seconds"])
      #expect((lease ?? 0) > 0 && (lease ?? 0) <= 2.5 && silence != nil)
      let applied = try #require(first["hearth_cluster_applied_sequence"])
      #expect(applied >= 4)
      // The follower applies the log a little later.
      let follows = try OtherProcess.eventually(secondsMax: 20) {
        try cluster.metrics(of: 1 - owner)["hearth_cluster_applied_sequence"] == applied
      }
      #expect(follows)
      let second = try cluster.metrics(of: 1 - owner)
      #expect(second[#"hearth_cluster_role{role="follower"}"#] == 1 && second["hearth_cluster_takeovers_total"] == 0)
      #expect(second["hearth_cluster_epoch"] == first["hearth_cluster_epoch"])
      #expect(second["hearth_relay_requests_total"] == 3 && second["hearth_relay_failed_total"] == 0)
      #expect((second["hearth_relay_connections_open"] ?? 0) > 0 && second["hearth_cluster_lease_seconds"] == 0)
      cluster.nodes[owner].process.send(signal: SIGKILL)
      #expect(try ServedCluster.send(cluster.ports[1 - owner], "POST", "\(Self.documents)/items", "{}").status == 200)
      let next = try cluster.metrics(of: 1 - owner)
      #expect(next[#"hearth_cluster_role{role="owner"}"#] == 1 && next["hearth_cluster_takeovers_total"] == 1)
      #expect((next["hearth_cluster_epoch"] ?? 0) > (first["hearth_cluster_epoch"] ?? 0))
    }
  }

  @Test func aReplicaCanLeaveAndIsRefusedAfterwards() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2)
      for number in 0..<20 {
        let made = try ServedCluster.send(
          cluster.ports[number % 2], "POST", "\(Self.documents)/items?documentId=i\(number)", "{}")
        #expect(made.status == 200)
      }
      for node in cluster.nodes {
        kill(node.process.processID, SIGTERM)
        #expect(node.process.waitForExit(timeoutSeconds: 30) == .code(0), "\(node.process.output)")
      }
      // The node that was the owner has everything.
      let data = cluster.directory.file("node1")
      let rules = try cluster.directory.write("alone.rules", ServedCluster.openRules)
      let alone = try HearthProcess(arguments: ["--project", "shop", "--data", data, "--rules", rules])
      let found = try JSONNode(
        parsing: ServedCluster.send(alone.port, "GET", "\(Self.documents)/items?pageSize=100").body)
      #expect(found["documents"]?.elements.count == 20, "\(found.text)")
      #expect(try ServedCluster.send(alone.port, "POST", "\(Self.documents)/items", "{}").status == 200)
      alone.process.stop()
      let refused = try HearthBinary.run([
        "serve", "--port", "0", "--cluster", cluster.url, "--cluster-key", cluster.directory.file("cluster.key"),
        "--data", data,
      ])
      #expect(refused.exit != .code(0) && refused.output.contains("is not a replica of this cluster's log"))
      #expect(refused.output.contains("empty data directory"), "\(refused.output)")
    }
  }

  /// An operator copies the directory of an owner that was killed, and starts both. They are two nodes.
  @Test func aCopyOfADirectoryIsANodeOfItsOwn() async throws {
    try await onDedicatedThread {
      let run = try FaultRun(ServedCluster(nodes: 2))
      let cluster = run.cluster
      let owner = try cluster.owner()
      cluster.kill(owner)
      let copy = try ServerProcess(
        executable: "/usr/bin/env",
        arguments: ["cp", "-a", "--sparse=always", cluster.data(of: owner), cluster.data(of: 2)])
      try #require(copy.waitForExit(timeoutSeconds: 60) == .code(0), "\(copy.output)")
      _ = try cluster.add()
      try cluster.restart(owner)
      try run.commit(100)
      try run.finish("a copy of a directory")
      let nodes = try #require(try cluster.status()["nodes"]?.elements)
      #expect(nodes.compactMap { $0["node"]?.integerValue }.sorted() == [1, 2, 3], "\(nodes.map(\.text))")
      for node in cluster.ports.indices where try node != cluster.owner() { try cluster.waitUntilReading(node) }
    }
  }

  @Test func mistakesAreNamed() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      let key = cluster.directory.file("cluster.key")
      func refusal(_ words: [String]) throws -> String {
        let result = try HearthBinary.run(["serve", "--port", "0"] + words)
        #expect(result.exit != .code(0), "\(result.output)")
        return result.output
      }
      let data = ["--data", cluster.directory.file("other")]
      let common = ["--cluster", cluster.url, "--cluster-key", key]
      #expect(try refusal(common + ["--in-memory"]).contains("name one with --data"))
      #expect(try refusal(common + data + ["--project", "other"]).contains("serves the project shop, not other"))
      #expect(try refusal(common + data + ["--rules", "x.rules"]).contains("hearth cluster deploy"))
      #expect(try refusal(common + data + ["--host", "0.0.0.0"]).contains("--peer-address 10.0.0.1:8090"))
      #expect(try refusal(common + data + ["--peer-listen", "0.0.0.0:8090"]).contains("needs --peer-address"))
      #expect(try refusal(data + ["--project", "shop", "--cluster-key", key]).contains("needs --cluster"))
      #expect(try refusal(["--cluster", cluster.url, "--cluster-key", "/nowhere"] + data).contains("does not exist"))
      let other = try cluster.directory.write(
        "other.key", "hearth cluster key 1\n" + String(repeating: "ab", count: 32) + "\n")
      chmod(other, 0o600)
      #expect(try refusal(["--cluster", cluster.url, "--cluster-key", other] + data).contains("key"))
      let empty = try cluster.postgres.makeDatabase("empty")
      #expect(try refusal(["--cluster", empty, "--cluster-key", key] + data).contains("hearth cluster init"))
      #expect(
        try refusal(["--cluster", "postgres:///x?host=/nowhere", "--cluster-key", key] + data)
          .contains("no connection to PostgreSQL: "))
    }
  }
}
