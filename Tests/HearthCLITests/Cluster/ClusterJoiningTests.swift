import Foundation
import Glibc
import Testing
import TestSupport

/// Real nodes that begin with the data of a single server, write snapshots, shorten the log, and join.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterJoiningTests {
  private static let documents = ServedCluster.documents
  private static let signUp = "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=shop"
  private static let signIn = "/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword?key=shop"
  private static let account = #"{"email": "ann@example.org", "password": "correct horse", "returnSecureToken": true}"#
  private static let content = String(repeating: "file ", count: 20_000)

  /// A data directory of a single server with documents, an account and a file.
  private func servedDirectory(_ directory: TemporaryDirectory, killed: Bool) throws -> String {
    let data = directory.file("single")
    let rules = try directory.write("open.rules", ServedCluster.openRules)
    let storage = try directory.write("open-storage.rules", ServedCluster.openStorageRules)
    let single = try HearthProcess(arguments: [
      "--project", "shop", "--data", data, "--rules", rules, "--storage-rules", storage,
    ])
    for number in 0..<50 {
      let made = try ServedCluster.send(
        single.port, "POST", "\(Self.documents)/items?documentId=i\(number)",
        #"{"fields": {"n": {"integerValue": "1"}}}"#)
      #expect(made.status == 200, "\(made.text)")
    }
    #expect(try ServedCluster.send(single.port, "POST", Self.signUp, Self.account).status == 200)
    let upload = "/v0/b/shop.appspot.com/o?uploadType=media&name=notes/a.txt"
    let put = try ServedCluster.send(
      single.port, "POST", upload, Self.content, headers: [("Content-Type", "text/plain")])
    #expect(put.status == 200, "\(put.text)")
    // The directory is in use.
    let refused = try HearthBinary.run([
      "cluster", "init", "postgres:///nowhere?host=/nowhere", "--from", data, "--key", directory.file("unused.key"),
    ])
    #expect(refused.exit != .code(0))
    if killed {
      single.process.send(signal: SIGKILL)
      _ = single.process.waitForExit(timeoutSeconds: 30)
    } else {
      single.process.stop()
    }
    return data
  }

  private func expectEverything(_ port: UInt16, items: Int, _ comment: String) throws {
    let found = try JSONNode(parsing: ServedCluster.send(port, "GET", "\(Self.documents)/items?pageSize=300").body)
    #expect(found["documents"]?.elements.count == items, "\(comment): \(found.text.prefix(300))")
    let signedIn = try ServedCluster.send(port, "POST", Self.signIn, Self.account)
    #expect(signedIn.status == 200, "\(comment): \(signedIn.text)")
    let read = try ServedCluster.send(port, "GET", "/v0/b/shop.appspot.com/o/notes%2Fa.txt?alt=media")
    #expect(read.status == 200 && read.text == Self.content, "\(comment): \(read.status)")
  }

  @Test(arguments: [false, true]) func theDataOfASingleServerBecomeThoseOfACluster(killed: Bool) async throws {
    try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let data = try servedDirectory(directory, killed: killed)
      let cluster = try ServedCluster(
        nodes: 3, from: data, serving: ["--snapshot-log", "20K", "--kept-log", "1s"])
      for port in cluster.ports { try expectEverything(port, items: 50, "after the upload") }
      // No secret is readable in PostgreSQL.
      let clear = "SELECT count(*) FROM hearth_snapshot_part WHERE position('ann@example.org'::bytea IN body) > 0"
      #expect(try cluster.postgres.sql(clear, in: "hearth") == "0")
      // Commits until the log is shortened.
      var items = 50
      let isTruncated = try OtherProcess.eventually(secondsMax: 120) {
        for _ in 0..<20 {
          let made = try ServedCluster.send(
            cluster.ports[items % 3], "POST", "\(Self.documents)/items?documentId=i\(items)",
            #"{"fields": {"text": {"stringValue": "\#(String(repeating: "x", count: 500))"}}}"#)
          #expect(made.status == 200, "\(made.text)")
          items += 1
        }
        return try cluster.status()["log"]?["first"]?.integerValue ?? 0 > 2
      }
      try #require(isTruncated, "\(cluster.nodes.map(\.process.output))")
      // A machine that was never in the cluster.
      let joined = try cluster.add(serving: ["--snapshot-log", "1G"])
      let isJoined = OtherProcess.eventually(secondsMax: 60) {
        joined.process.output.contains("continues the log after entry")
      }
      try #require(isJoined, "\(joined.process.output)")
      for node in cluster.nodes.dropLast() { node.process.send(signal: SIGKILL) }
      let isServing = OtherProcess.eventually(secondsMax: 60) {
        let made = try? ServedCluster.send(
          joined.port, "POST", "\(Self.documents)/items?documentId=last", #"{"fields": {}}"#)
        return made?.status == 200 || made?.status == 409
      }
      try #require(isServing, "\(joined.process.output)")
      let found = try ServedCluster.send(joined.port, "GET", "\(Self.documents)/items?pageSize=300")
      #expect(try JSONNode(parsing: found.body)["documents"]?.elements.count == min(300, items + 1))
      // A killed node comes back, although the log it needs may be gone.
      try cluster.restart(0)
      try expectEverything(cluster.ports[0], items: min(300, items + 1), "after a restart")
      // The way back: the directory of a stopped node is that of a single server.
      kill(joined.process.processID, SIGTERM)
      #expect(joined.process.waitForExit(timeoutSeconds: 30) == .code(0), "\(joined.process.output)")
      let rules = try directory.write("open.rules", ServedCluster.openRules)
      let alone = try HearthProcess(arguments: [
        "--project", "shop", "--data", cluster.directory.file("node4"), "--rules", rules,
      ])
      let left = try ServedCluster.send(alone.port, "GET", "\(Self.documents)/items/last")
      #expect(left.status == 200, "\(left.text)")
      #expect(try ServedCluster.send(alone.port, "POST", Self.signIn, Self.account).status == 200)
      alone.process.stop()
    }
  }

  @Test func mistakesWithDirectoriesAreNamed() async throws {
    try await onDedicatedThread {
      let (directory, postgres) = (try TemporaryDirectory(), try PostgresServer())
      let url = try postgres.makeDatabase("hearth")
      let key = directory.file("cluster.key")
      func refusal(_ words: [String]) throws -> String {
        let result = try HearthBinary.run(["cluster", "init", url, "--key", key, "--accept-loss"] + words)
        #expect(result.exit != .code(0), "\(result.output)")
        #expect(access(key, F_OK) != 0)
        return result.output
      }
      #expect(try refusal(["--from", directory.file("nowhere")]).contains("FORMAT"))
      #expect(try refusal(["--project", "shop", "--shared-files", "/srv/x"]).contains("needs --from"))
      let data = directory.file("single")
      let rules = try directory.write("open.rules", ServedCluster.openRules)
      let single = try HearthProcess(arguments: ["--project", "shop", "--data", data, "--rules", rules])
      #expect(try ServedCluster.send(single.port, "POST", "\(Self.documents)/items", "{}").status == 200)
      #expect(try refusal(["--from", data]).contains("is in use by"))
      single.process.stop()
      #expect(try refusal(["--from", data, "--project", "other"]).contains("has no project other, but shop"))
      #expect(try postgres.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'hearth_meta'", in: "hearth") == "0")
    }
  }
}
