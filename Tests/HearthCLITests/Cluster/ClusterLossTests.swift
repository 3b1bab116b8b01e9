import Foundation
import Glibc
import Testing
import TestSupport

/// A PostgreSQL whose standby is asynchronous, and takes over without the newest commits.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterLossTests {
  private static let documents = ServedCluster.documents

  private func create(_ id: String, _ port: UInt16) throws {
    let made = try ServedCluster.send(port, "POST", "\(Self.documents)/items?documentId=\(id)", "{}")
    #expect(made.status == 200, "\(id): \(made.text)")
  }

  /// The names of the documents that a feed shows, and the token after it.
  private func feed(_ port: UInt16, from token: String? = nil) throws -> (text: String, token: String) {
    let parameter = token.flatMap { $0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) }
    let response = try ServedCluster.send(
      port, "GET", "\(Self.documents)/items:listen?once=true" + (parameter.map { "&resumeToken=\($0)" } ?? ""))
    let last = try #require(response.text.matches(of: /"resumeToken":\s*"([^"]+)"/).last, "\(response.text)")
    return (response.text, String(last.1))
  }

  /// Otherwise the next configuration would have the number of the one that was lost, and no node would notice it.
  @Test func aLostConfigurationIsStoredAgain() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2)
      let target = "\(Self.documents)/items"
      func deploy(_ condition: String) throws {
        let rules = try cluster.directory.write(
          "\(condition).rules",
          "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents/items/{i} "
            + "{ allow read, write: if \(condition); } }")
        let deployed = try HearthBinary.run(["cluster", "deploy", cluster.url, "--rules", rules])
        #expect(deployed.exit == .code(0), "\(deployed.output)")
      }
      func expect(_ status: Int, _ comment: String) throws {
        let isInForce = try OtherProcess.eventually(secondsMax: 30) {
          try cluster.ports.allSatisfy { try ServedCluster.send($0, "POST", target, "{}").status == status }
        }
        try #require(isInForce, "\(comment): \(cluster.nodes.map(\.process.output))")
      }
      try deploy("false")
      try expect(403, "deployed")
      try cluster.postgres.sql("DELETE FROM hearth_config WHERE version = 2", in: "hearth")
      let isStored = try OtherProcess.eventually(secondsMax: 30) {
        try cluster.postgres.sql("SELECT max(version) FROM hearth_config", in: "hearth") == "2"
      }
      try #require(isStored, "\(cluster.nodes.map(\.process.output))")
      try deploy("true")
      try expect(200, "deployed later")
    }
  }

  /// Lets a standby get nothing from now on.
  private static func cutOff(_ standby: PostgresServer, from primary: PostgresServer) throws {
    try standby.sql("ALTER SYSTEM SET primary_conninfo = ''", in: "postgres")
    try standby.sql("SELECT pg_reload_conf()", in: "postgres")
    let isCutOff = try OtherProcess.eventually {
      try primary.sql("SELECT count(*) FROM pg_stat_replication", in: "postgres") == "0"
    }
    try #require(isCutOff)
  }

  /// PostgreSQL loses commits that were acknowledged. Their owner has them, and appends them again: clients notice nothing.
  @Test func anOwnerThatLivesLosesNothing() async throws {
    try await onDedicatedThread {
      let primary = try PostgresServer()
      let standby = try PostgresServer(standbyOf: primary)
      let cluster = try ServedCluster(nodes: 2, on: primary, standby: standby)
      let owner = try cluster.owner()
      try cluster.waitUntilReading(1 - owner)
      try create("kept", cluster.ports[0])
      try Self.cutOff(standby, from: primary)
      for number in 0..<5 { try create("at-risk-\(number)", cluster.ports[number % 2]) }
      let before = try cluster.ports.map { try feed($0) }
      kill(primary.processID, SIGKILL)
      try standby.sql("SELECT pg_promote()", in: "postgres")
      // The first commit waits for the new primary and for the repair.
      let isServing = OtherProcess.eventually(secondsMax: 60) {
        (try? ServedCluster.send(cluster.ports[1 - owner], "PATCH", "\(Self.documents)/items/later", "{}"))?.status
          == 200
      }
      try #require(isServing, "\(cluster.nodes.map(\.process.output))")
      let isHealed = OtherProcess.eventually(secondsMax: 30) {
        cluster.nodes[owner].process.output.contains("has appended them again")
      }
      try #require(isHealed, "\(cluster.nodes.map(\.process.output))")
      for (port, token) in zip(cluster.ports, before.map(\.token)) {
        let next = try feed(port, from: token)
        #expect(!next.text.contains("RESET") && next.text.contains("items/later"), "\(next.text)")
        let all = try feed(port)
        for number in 0..<5 { #expect(all.text.contains("items/at-risk-\(number)"), "\(all.text)") }
      }
      #expect(try cluster.owner() == owner)
      let status = try HearthBinary.run(["cluster", "status", cluster.url]).output
      #expect(!status.contains("lost acknowledged commits"), "\(status)")
      let check = try HearthBinary.run(
        ["cluster", "check", cluster.url, "--key", cluster.directory.file("cluster.key")])
      #expect(check.exit == .code(0), "\(check.output)")
    }
  }

  /// A commit that was acknowledged is lost, and its owner died with it. The other node says so, has it aside, and clients that
  /// have seen it forget it.
  @Test func lostCommitsAreReportedAndForgotten() async throws {
    try await onDedicatedThread {
      let primary = try PostgresServer()
      let standby = try PostgresServer(standbyOf: primary)
      let cluster = try ServedCluster(nodes: 2, on: primary, standby: standby)
      let owner = try cluster.owner()
      try cluster.waitUntilReading(1 - owner)
      try create("kept", cluster.ports[0])
      let kept = try feed(cluster.ports[0])
      try Self.cutOff(standby, from: primary)
      try create("lost", cluster.ports[1])
      let lost = try cluster.ports.map { try feed($0) }
      #expect(lost.allSatisfy { $0.text.contains("items/lost") })
      kill(primary.processID, SIGKILL)
      cluster.nodes[owner].process.send(signal: SIGKILL)
      _ = cluster.nodes[owner].process.waitForExit(timeoutSeconds: 30)
      try standby.sql("SELECT pg_promote()", in: "postgres")
      let isOwned = OtherProcess.eventually(secondsMax: 60) {
        let port = cluster.ports[1 - owner]
        return (try? ServedCluster.send(port, "GET", "\(Self.documents)/items/lost"))?.status == 404
      }
      try #require(isOwned, "\(cluster.nodes.map(\.process.output))")
      try cluster.restart(owner)
      // The cluster serves what is left.
      let isServing = OtherProcess.eventually(secondsMax: 60) {
        cluster.ports.allSatisfy { port in
          let read = try? ServedCluster.send(port, "GET", "\(Self.documents)/items/lost")
          return read?.status == 404
        }
      }
      try #require(isServing, "\(cluster.nodes.map(\.process.output))")
      try create("later", cluster.ports[0])
      let isAnswered = try OtherProcess.eventually(secondsMax: 60) {
        try cluster.status()["loss"]?["isAnswered"]?.text == "true"
      }
      try #require(isAnswered)
      for port in cluster.ports {
        for former in lost + [kept] {
          let again = try feed(port, from: former.token)
          #expect(again.text.contains("RESET") && again.text.contains("items/later"), "\(again.text)")
          #expect(again.text.contains("items/kept") && !again.text.contains("items/lost"), "\(again.text)")
        }
        let next = try feed(port, from: feed(port).token)
        #expect(!next.text.contains("RESET") && !next.text.contains("items/"), "\(next.text)")
      }
      let status = try HearthBinary.run(["cluster", "status", cluster.url]).output
      #expect(
        status.contains(
          #/PostgreSQL lost acknowledged commits; node [12] noticed it at 2\S+Z\. They are in the folder/#),
        "\(status)")
      #expect(
        cluster.nodes.contains { $0.process.output.contains("Listeners and feeds begin anew") },
        "\(cluster.nodes.map(\.process.output))")
      // The lost commit can be read.
      let folders = try (1...2).flatMap { number in
        try FileManager.default.contentsOfDirectory(atPath: cluster.directory.file("node\(number)"))
          .filter { $0.hasPrefix("replica.diverged-") }.map { cluster.directory.file("node\(number)/\($0)") }
      }
      #expect(!folders.isEmpty)
      for folder in folders {
        let exported = try HearthBinary.run(["export", "--data", folder, "--project", "shop"])
        #expect(exported.exit == .code(0), "\(exported.output)")
        #expect(exported.output.contains("lost") && exported.output.contains("kept"), "\(exported.output)")
      }
    }
  }
}
