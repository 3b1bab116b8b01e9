import Foundation
import Glibc
import PostgresEngine
import SharedLog
import Synchronization
import Testing
import TestSupport

/// The verbs of `hearth cluster`, with a PostgreSQL that each test starts.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterVerbsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static func rules(_ condition: String, service: String = "cloud.firestore") -> String {
    let root = service == "cloud.firestore" ? "/databases/{d}/documents/notes/{n}" : "/b/{bucket}/o/{name=**}"
    return "rules_version = '2';\nservice \(service) { match \(root) { allow read: if \(condition); } }\n"
  }

  /// Runs a verb of `hearth cluster`. Returns its exit code, and its output with the names of this test replaced.
  private func run(
    _ words: [String], environment: [String] = [], hiding server: PostgresServer? = nil
  ) throws -> (code: ProcessExit?, output: String) {
    let process = try HearthBinary.start(["cluster"] + words, environment: environment)
    let exit = process.waitForExit(timeoutSeconds: 120)
    if exit == nil { process.stop() }
    var output = process.output.replacingOccurrences(of: directory.path, with: "DIR")
    if let server { output = output.replacingOccurrences(of: server.directory, with: "SOCKET") }
    return (exit, output)
  }

  // MARK: init

  @Test func initMakesAClusterOnce() throws {
    let server = try PostgresServer()
    let url = try server.makeDatabase("hearth")
    let (key, rules) = (directory.file("cluster.key"), try directory.write("firestore.rules", Self.rules("true")))
    let indexes = try directory.write("indexes.json", #"{"indexes": [], "fieldOverrides": []}"#)
    let common = ["init", url, "--project", "shop", "--key", key]
    let refused = try run(common, hiding: server)
    #expect(refused.code == .code(1))
    #expect(
      refused.output == """
        hearth cluster init: error: PostgreSQL can lose commits that it acknowledged
          fsync: off: a crash of the machine of PostgreSQL can damage everything
            Set fsync = on in postgresql.conf, and reload or restart PostgreSQL.
          synchronous_standby_names: empty: if the machine of PostgreSQL dies, acknowledged commits are lost with it
            Add a standby that replicates synchronously, such as with Patroni (synchronous_mode).
        To accept that, add --accept-loss.

        """)
    // Nothing was made: rules with errors come first, and then the key file is still free.
    let wrong = try directory.write("wrong.rules", "service")
    let damaged = try run(common + ["--accept-loss", "--rules", wrong])
    #expect(damaged.code == .code(65) && damaged.output.contains("wrong.rules does not compile"))
    let storage = try directory.write("storage.rules", Self.rules("true", service: "firebase.storage"))
    #expect(try run(common + ["--accept-loss", "--rules", storage]).output.contains("deploy it with --storage-rules"))
    #expect(try run(common + ["--accept-loss", "--storage-rules", rules]).output.contains("deploy it with --rules"))
    #expect(access(key, F_OK) != 0)
    #expect(try server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'hearth%'", in: "hearth") == "0")

    let made = try run(
      common + ["--accept-loss", "--rules", rules, "--storage-rules", storage, "--indexes", indexes], hiding: server)
    #expect(made.code == .code(0))
    #expect(
      made.output == """
        made the cluster of project shop in postgres://hearth@/hearth?host=SOCKET
          rules, 115 B
          indexes of database (default), 37 B
          storage rules, 105 B
          accepted: PostgreSQL can lose commits that it acknowledged

        Next, on each machine:
          1. Copy DIR/cluster.key there. Only the user that runs Hearth may read it.
          2. hearth serve --cluster 'postgres://hearth@/hearth?host=SOCKET' --cluster-key DIR/cluster.key --data ./hearth-data

        """)
    let identity = try ClusterSchema.check(at: url)
    let stored = try ClusterKey.read(key).key
    #expect(identity.project == "shop" && identity.acceptsLoss)
    try identity.check(keyCheck: stored.check())
    #expect(throws: PostgresFailure.otherKey) { try identity.check(keyCheck: try ClusterKey().check()) }
    // No table has the key.
    let dump = try server.sql("SELECT k || '=' || v FROM hearth_meta", in: "hearth")
    #expect(!dump.contains(stored.fileText.split(separator: "\n")[1]))
    let configuration = try #require(try ClusterCatalog(url).configuration(newerThan: 0)?.1)
    #expect(configuration.text(.rules) == Array(Self.rules("true").utf8))

    #expect(try run(common + ["--accept-loss"]).output.contains("DIR/cluster.key exists already"))
    let again = try run(["init", url, "--project", "other", "--key", directory.file("other.key"), "--accept-loss"])
    #expect(again.code == .code(1) && again.output.contains("has the cluster of project shop already"))
    #expect(access(directory.file("other.key"), F_OK) != 0, "the key of a cluster that was not made must be removed")
  }

  @Test func ofTwoInitsAtOnceOneMakesTheCluster() throws {
    let server = try PostgresServer()
    let url = try server.makeDatabase("hearth")
    let results = Mutex<[Int: ProcessExit]>([:])
    DispatchQueue.concurrentPerform(iterations: 4) { number in
      let key = directory.file("key\(number)")
      let result = try? run(["init", url, "--project", "shop\(number)", "--key", key, "--accept-loss"])
      results.withLock { $0[number] = result?.code }
    }
    let winners = results.withLock { $0.filter { $0.value == .code(0) }.map(\.key) }
    try #require(winners.count == 1, "\(results.withLock { $0 })")
    #expect(results.withLock { $0.values.count { $0 == .code(1) } } == 3)
    #expect(try directory.fileNames == ["key\(winners[0])"])
    let identity = try ClusterSchema.check(at: url)
    #expect(identity.project == "shop\(winners[0])")
    #expect(identity.keyCheck == (try ClusterKey.read(directory.file("key\(winners[0])")).key.check()))
  }

  @Test func mistakesAreNamedWithoutPasswords() throws {
    let server = try PostgresServer()
    _ = try server.makeDatabase("hearth")
    try server.sql("CREATE ROLE app LOGIN PASSWORD 'right-secret'", in: "hearth")
    try server.requirePasswords()
    let place = "/hearth?host=\(server.directory)"
    func output(_ verb: [String], environment: [String] = []) throws -> String {
      let result = try run(verb, environment: environment)
      #expect(result.code != .code(0))
      #expect(!result.output.contains("secret"), "the output has the password: \(result.output)")
      return result.output
    }
    let options = ["--project", "shop", "--key", directory.file("cluster.key"), "--accept-loss"]
    #expect(
      try output(["init", "postgres://app:wrong-secret@\(place)"] + options).contains(
        "password authentication failed for user \"app\"; set PGPASSWORD, or add a line to ~/.pgpass"))
    #expect(
      try output(["init", "postgres://app@\(place)"] + options, environment: ["PGPASSWORD=wrong-secret"]).contains(
        "password"))
    #expect(
      try output(["init", "postgres://app:right-secret@\(place)"] + options).contains(
        "rights: the role app may not make tables in schema public"))
    #expect(try output(["status", "mysql://app:right-secret@/x"]).contains("postgres://USER@HOST/DATABASE"))
    #expect(try output(["status", "postgres://app:right@secret@/x"]).contains("postgres://USER@HOST/DATABASE"))
    #expect(try output(["status", "postgres://app:right-secret@\(place)"]).contains("has no tables of a cluster"))
    #expect(try output(["status"]).contains("POSTGRES-URL, or set HEARTH_CLUSTER"))
    #expect(
      try output(["status"], environment: ["HEARTH_CLUSTER=postgres://app:right-secret@/hearth?host=/nowhere"])
        .contains(
          "no connection to PostgreSQL"))
    try server.sql("GRANT CREATE ON SCHEMA public TO app", in: "hearth")
    let made = try run(["init", "postgres://app:right-secret@\(place)"] + options)
    #expect(made.code == .code(0) && !made.output.contains("right-secret"))
    #expect(made.output.contains("The URL above has no password. Set PGPASSWORD"))
    // A right that is missing on any table.
    for table in ClusterSchema.tableNames {
      try server.sql("REVOKE INSERT ON \(table) FROM app", in: "hearth")
      let found = try EngineCheck.findings(at: "postgres://app:right-secret@\(place)")
      #expect(found.contains { $0.level == .error && $0.topic == "rights" }, "\(table)")
      try server.sql("GRANT INSERT ON \(table) TO app", in: "hearth")
    }
    // Tables of other forms.
    try server.sql("UPDATE hearth_meta SET v = '7' WHERE k = 'format'", in: "hearth")
    let url = server.url("hearth")
    #expect(try output(["status", url]).contains("have format 7, and this version of Hearth knows format 2"))
    let foreign = try server.makeDatabase("foreign_tables")
    try server.sql("CREATE TABLE hearth_log (text text)", in: "foreign_tables")
    let other = ["--project", "shop", "--key", directory.file("other.key"), "--accept-loss"]
    #expect(try output(["init", foreign] + other).contains("has tables named hearth_… of another form"))
    #expect(access(directory.file("other.key"), F_OK) != 0)
    server.stop()
    #expect(try output(["status", url]).contains("no connection to PostgreSQL"))
  }

  @Test func aSynchronousStandbyMakesAClusterSafe() throws {
    let primary = try PostgresServer(settings: ["fsync=on"])
    let standby = try PostgresServer(standbyOf: primary)
    _ = try primary.makeDatabase("hearth")
    try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", in: "hearth")
    try primary.sql("SELECT pg_reload_conf()", in: "hearth")
    let isReplicating = try OtherProcess.eventually {
      try primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", in: "hearth") == "1"
    }
    #expect(isReplicating)
    let isCopied = OtherProcess.eventually { (try? standby.sql("SELECT 1", in: "hearth")) == "1" }
    #expect(isCopied)
    let options = ["--project", "shop", "--key", directory.file("cluster.key")]
    let wrong = try run(["init", standby.url("hearth")] + options)
    #expect(wrong.code == .code(1) && wrong.output.contains("no host of the URL accepts writes"))
    // Of several hosts, the one that accepts writes is found, wherever it is in the list.
    let both = "postgres://hearth@/hearth?host=\(standby.directory),\(primary.directory)"
    let role = try run(
      ["init", both] + options + ["--accept-loss"], environment: ["PGOPTIONS=-c synchronous_commit=off"])
    #expect(role.code == .code(0) && role.output.contains("accepted: PostgreSQL can lose"))
    try primary.sql(
      "DROP TABLE hearth_meta, hearth_member, hearth_node, hearth_cluster, hearth_log, hearth_config, hearth_snapshot, "
        + "hearth_snapshot_part, hearth_snapshot_claim", in: "hearth")
    unlink(directory.file("cluster.key"))
    try primary.sql("ALTER DATABASE hearth SET synchronous_commit = local", in: "hearth")
    let local = try run(["init", both] + options)
    #expect(local.code == .code(1) && local.output.contains("ALTER DATABASE … RESET synchronous_commit"))
    try primary.sql("ALTER DATABASE hearth RESET synchronous_commit", in: "hearth")
    let made = try run(["init", both] + options)
    #expect(made.code == .code(0), "\(made.output)")
    #expect(try ClusterSchema.check(at: both).acceptsLoss == false)
    let status = try run(["status", both])
    #expect(status.output.contains("0 problems, 0 warnings"), "\(status.output)")
  }

  // MARK: deploy

  @Test func deploysKeepOtherPartsAlsoAtOnce() throws {
    let server = try PostgresServer()
    let url = try server.makeDatabase("hearth")
    let rules = try directory.write("firestore.rules", Self.rules("true"))
    let none = try run(["init", url, "--project", "shop", "--key", directory.file("key"), "--accept-loss"])
    #expect(none.output.contains("no rules: every request of an app is denied, until you deploy some"))
    #expect(try run(["deploy", url]).code == .code(64))
    #expect(try run(["deploy", url, "--rules", rules]).output == "deployed version 2\n  rules, 115 B\n")
    #expect(try run(["deploy", url, "--rules", rules]).output == "version 2 has the same rules and indexes already\n")
    let wrong = try directory.write("indexes.json", "{")
    #expect(try run(["deploy", url, "--indexes", wrong]).code == .code(65))
    let twice = try run(["deploy", url, "--rules", rules, "--rules", rules])
    #expect(twice.code == .code(64) && twice.output.contains("second file for the same database"))
    DispatchQueue.concurrentPerform(iterations: 4) { number in
      _ = try? run(["deploy", url, "--rules", "other\(number)=\(rules)"])
    }
    let found = try #require(try ClusterCatalog(url).configuration(newerThan: 0))
    #expect(found.version == 6)
    #expect(found.1.parts.map(\.database) == ["", "other0", "other1", "other2", "other3"])
  }

  // MARK: status and drain

  @Test func statusAndDrainSpeakOfTheNodes() throws {
    let server = try PostgresServer()
    let url = try server.makeDatabase("hearth")
    try ClusterSchema.create(
      at: url, ClusterIdentity(project: "shop", keyCheck: [1], acceptsLoss: true, id: Array(0..<16), secret: 5))
    let catalog = try ClusterCatalog(url)
    #expect(try run(["status", url]).code == .code(1))
    for node in 1...4 {
      try directory.write("node\(node).lock", "")
      let folder = directory.file("node\(node)")
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      let registered = try NodeRegistration.register(
        directory: folder, lockFile: directory.file("node\(node).lock"), address: "10.0.0.\(node):8090",
        software: "1.0.0",
        in: catalog)
      #expect(registered.node == UInt32(node))
    }
    let first = try SimulatedNode(1, url)
    let second = try SimulatedNode(2, url)
    let silent = try SimulatedNode(3, url, isSilent: true)
    defer { for node in [first, second, silent] { node.stop() } }
    #expect(first.takeOver(from: nil, epoch: 0))
    let status = try run(["status", url])
    #expect(status.code == .code(0))
    let lines = status.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    #expect(
      lines.prefix(2) == [
        "project shop, cluster 000102030405060708090a0b0c0d0e0f", "node 1 owns the cluster, in epoch 1",
      ])
    let rows = lines.map { $0.split(separator: " ", omittingEmptySubsequences: true).map(String.init) }
    #expect(rows[3] == ["node", "address", "state", "renewed", "role", "version", "started"])
    #expect(rows[4].prefix(3) == ["1", "10.0.0.1:8090", "live"] && rows[4][6...7] == ["owner", "1.0.0"])
    #expect(rows[5].prefix(3) == ["2", "10.0.0.2:8090", "live"] && rows[5][6] == "follower")
    #expect(rows[6].prefix(4) == ["3", "10.0.0.3:8090", "silent", "over"])
    #expect(rows[7].prefix(5) == ["4", "10.0.0.4:8090", "starting", "-", "follower"])
    #expect(lines[9].hasPrefix("log            1 entry up to 1, confirmed up to 0; "))
    #expect(lines[10] == "snapshots      none")
    #expect(lines[11] == "configuration  version 1")
    let json = try JSONNode(
      parsing: Array(run(["status", "--json"], environment: ["HEARTH_CLUSTER=\(url)"]).output.utf8))
    #expect(json["owner"]?.integerValue == 1)
    #expect(json["nodes"]?.elements.compactMap { $0["state"]?.stringValue } == ["live", "live", "silent", "starting"])

    // No node takes over: the verb says so.
    let stuck = try run(["drain", url, "1"])
    #expect(stuck.code == .code(1) && stuck.output.contains("no other node took over within 10 seconds"))
    #expect(try run(["drain", url, "1", "--undo"]).output == "node 1 may own the cluster again\n")
    #expect(try catalog.state().member(1)?.isDraining == false)
    #expect(try run(["drain", url, "9"]).output.contains("has no node 9"))
    #expect(try run(["drain", url, "x"]).code == .code(64))
    let other = try run(["drain", url, "2"])
    #expect(other.code == .code(0))
    #expect(other.output == "node 2 does not own the cluster, and will not until --undo\n")
    // The node learns with its next renewal that the request was withdrawn.
    try #require(OtherProcess.eventually { !first.isDraining })
    // A node that sees the request hands over, here by letting its session end.
    let isDone = DispatchSemaphore(value: 0)
    Thread {
      defer { isDone.signal() }
      guard OtherProcess.eventually({ first.isDraining }) else { return }
      let mark = first.stop()
      _ = second.takeOver(from: mark, epoch: 1)
    }.start()
    let drained = try run(["drain", url, "1"])
    isDone.wait()
    #expect(drained.code == .code(0))
    #expect(drained.output == "node 2 owns the cluster now; node 1 will not until --undo\n")
    second.stop()
    let over = try run(["status", url])
    #expect(over.code == .code(1) && over.output.contains("no live node owns the cluster"))
    #expect(over.output.contains("follower, draining"))
  }
}

/// The session of a node that a thread renews.
private final class SimulatedNode: Sendable {
  private let tables: PostgresTables
  private let session: NodeSession
  private let renewal = Atomic<UInt64>(1)
  private let isStopped = Atomic(false)
  private let stopping = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  init(_ number: UInt32, _ url: String, isSilent: Bool = false) throws {
    tables = try PostgresTables(url, secret: 5)
    guard case .session(let session) = tables.perform(.beginSession(node: number, after: 0, renewal: 1)) else {
      throw try #require(tables.lastFailure)
    }
    self.session = session
    isStopped.store(isSilent, ordering: .relaxed)
    Thread { [self] in
      defer { ended.signal() }
      while !isStopped.load(ordering: .relaxed) {
        let number = renewal.wrappingAdd(1, ordering: .relaxed).newValue
        _ = tables.perform(.renew(session, renewal: number, confirmed: 0))
        _ = stopping.wait(timeout: .now() + .milliseconds(100))
      }
    }.start()
  }

  var isDraining: Bool { tables.isDraining }

  /// Ends the renewals. Returns the last mark.
  @discardableResult
  func stop() -> OwnerMark {
    isStopped.store(true, ordering: .relaxed)
    stopping.signal()
    ended.wait()
    ended.signal()
    return OwnerMark(owner: session, renewal: renewal.load(ordering: .relaxed), isLive: true)
  }

  func takeOver(from mark: OwnerMark?, epoch: UInt64) -> Bool {
    guard case .takenOver = tables.perform(.takeOver(by: session, from: mark, epoch: epoch)) else { return false }
    return true
  }
}
