import Foundation
import Glibc

/// Three nodes of a cluster and their PostgreSQL, whose commits are on the disk.
final class ClusterPeer {
  /// One node.
  final class Node: PeerServer {
    static let name = "node"
    static let obstacle: String? = nil
    let port: Int
    let process: ChildProcess
    let secondsToFirstAnswer: Double

    fileprivate init(_ launch: Launch) {
      (port, process, secondsToFirstAnswer) = (launch.port, launch.process, launch.seconds)
    }
  }

  let postgres: PostgresPeer
  /// The nodes. The first one owns the cluster.
  private(set) var nodes: [Node] = []
  private let directory: String

  private var url: String { url(of: "postgres") }

  /// The URL of a database of PostgreSQL.
  func url(of database: String) -> String { "postgres://postgres@127.0.0.1:\(postgres.port)/\(database)" }

  /// Starts a cluster, with the content of the data directory `source` if it is not `nil`. Waits until each node serves.
  /// - Throws: ``BenchmarkError`` if it does not start.
  init(from source: String? = nil) throws {
    directory = try Run.makeDirectory("cluster")
    postgres = try PostgresPeer(isDurable: true)
    let rules = "\(directory)/firestore.rules"
    try """
    rules_version = '2';
    service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow read, write: if true; } } }
    """.write(toFile: rules, atomically: false, encoding: .utf8)
    let made = try ChildProcess(
      [
        HearthPeer.binary, "cluster", "init", url, "--rules", rules, "--key", key, "--accept-loss",
      ] + (source.map { ["--from", $0] } ?? ["--project", "bench"]), output: "\(directory)/init.log")
    guard made.wait(seconds: 300) == 0 else {
      let text = try? String(contentsOfFile: "\(directory)/init.log", encoding: .utf8)
      throw BenchmarkError("hearth cluster init failed: \(text ?? "")")
    }
    for number in 1...3 { nodes.append(try start(number, port: try LoadClient.freePort())) }
    try waitUntilServing()
  }

  /// Starts one more node, and waits until it serves.
  /// - Throws: ``BenchmarkError`` if it does not.
  func add() throws {
    nodes.append(try start(nodes.count + 1, port: try LoadClient.freePort()))
    try waitUntilServing(pauseSeconds: 0)
  }

  /// Waits until each node responds, and reads documents itself unless it is the owner.
  private func waitUntilServing(pauseSeconds: UInt32 = 2) throws {
    let watch = Stopwatch()
    for (index, node) in nodes.enumerated() {
      while try !isServing(index, node) {
        guard watch.seconds < 300 else { throw BenchmarkError("the cluster does not serve") }
        usleep(20_000)
      }
    }
    sleep(pauseSeconds)
  }

  private func isServing(_ index: Int, _ node: Node) throws -> Bool {
    guard try LoadClient.attempt(port: node.port, "\(HearthPeer.documents)/tasks/none")?.status == 404 else {
      return false
    }
    let log = (try? String(contentsOfFile: logPath(index + 1), encoding: .utf8)) ?? ""
    return try log.contains("reads documents itself") || ownerIfAny() == index
  }

  private func logPath(_ number: Int) -> String { "\(directory)/node\(number).log" }

  deinit { stop() }

  /// Stops the nodes and PostgreSQL.
  func stop() {
    for node in nodes { node.process.stop() }
    postgres.process.stop()
  }

  private var key: String { "\(directory)/cluster.key" }

  private func start(_ number: Int, port: Int) throws -> Node {
    let launch = try Launch(
      port: port, readyPath: "/readyz",
      [
        HearthPeer.binary, "serve", "--cluster", url, "--cluster-key", key, "--data", "\(directory)/node\(number)",
        "--port", "\(port)",
      ], output: logPath(number))
    return Node(launch)
  }

  /// The index of the node that owns the cluster.
  /// - Throws: ``BenchmarkError`` if no node does.
  func owner() throws -> Int {
    guard let index = try ownerIfAny() else { throw BenchmarkError("no node owns the cluster") }
    return index
  }

  private func ownerIfAny() throws -> Int? {
    let text = try postgres.time("SELECT owner FROM hearth_cluster").result
    return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)).map { $0 - 1 }
  }

  /// Ends a node without giving it a chance to do anything.
  func kill(at index: Int) { nodes[index].process.kill() }

  /// Pauses a node: its connections stay open, and it is silent.
  func silence(at index: Int) { nodes[index].process.pause() }

  /// Lets a silent node continue.
  func resume(at index: Int) { nodes[index].process.resume() }

  /// Ends a node, which first gives the cluster away if it owns it.
  func end(at index: Int) { nodes[index].process.stop() }

  /// Starts a node on its port, unless it runs. With `waits`, waits until all nodes serve.
  func restart(_ index: Int, waits: Bool) throws {
    if !nodes[index].process.isRunning { nodes[index] = try start(index + 1, port: nodes[index].port) }
    if waits { try waitUntilServing() }
  }

  /// The number of entries of the log, and the bytes of their bodies.
  func log() throws -> (entries: Double, bytes: Double) {
    let text = try postgres.time("SELECT max(seq), sum(length(body)) FROM hearth_log").result
    let numbers = text.split(separator: "|").compactMap { Double($0) }
    guard numbers.count == 2 else { throw BenchmarkError("unexpected output of psql: \(text)") }
    return (numbers[0], numbers[1])
  }

  /// The CPU time of all nodes and PostgreSQL, in seconds.
  var cpuSeconds: (nodes: Double, postgres: Double) {
    (nodes.reduce(0) { $0 + $1.process.cpuSeconds }, postgres.process.cpuSeconds)
  }

  /// Makes a table like that of the log in a database, and keeps the body of the newest entry of the log for ``inserts(in:seconds:)``.
  func prepareInserts(in database: String) throws {
    try postgres.run(
      [
        "CREATE TABLE appended (LIKE hearth_log INCLUDING ALL)", "INSERT INTO appended VALUES (0, 1, 1, 1, '')",
        """
        CREATE TABLE sample AS
        SELECT body FROM hearth_log WHERE kind = (SELECT min(kind) FROM hearth_log) ORDER BY seq DESC LIMIT 1
        """,
        // Otherwise, PostgreSQL would insert the body as it was compressed for the log.
        "ALTER TABLE sample ALTER body SET STORAGE EXTERNAL", "UPDATE sample SET body = body || ''",
        "ALTER DATABASE \(database) SET default_toast_compression = lz4",
      ], in: database)
  }

  /// Performs the statement of an append with pgbench, with one client. Returns the rows in a second.
  func inserts(in database: String, seconds: Int) throws -> Double {
    let newest = try postgres.time("SELECT max(seq) FROM appended", in: database).result
    return try pgbench(
      in: database,
      """
      \\set seq :seq + 1
      INSERT INTO appended (seq, epoch, kind, chain, body)
      SELECT :seq, 1, 1, 1, (SELECT body FROM sample) WHERE EXISTS (
        SELECT 1 FROM appended WHERE seq = :seq - 1 AND epoch = 1 AND chain = 1 FOR UPDATE);
      """, ["-D", "seq=\(newest)"], clients: 1, seconds: seconds)
  }

  /// Runs a script of pgbench. Returns the transactions in a second.
  func pgbench(
    in database: String, _ script: String, _ options: [String] = [], clients: Int, seconds: Int = 5
  ) throws -> Double {
    let (path, output) = ("\(directory)/script.sql", "\(directory)/pgbench.log")
    try script.write(toFile: path, atomically: false, encoding: .utf8)
    let process = try ChildProcess(
      [
        "\(PostgresPeer.programs)/pgbench", "-h", "127.0.0.1", "-p", "\(postgres.port)", "-U", "postgres", "-n", "-M",
        "prepared", "-c", "\(clients)", "-j", "1", "-T", "\(seconds)", "-f", path,
      ] + options + [database], output: output)
    let status = process.wait(seconds: Double(seconds) + 30)
    let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
    guard status == 0, let line = text.split(separator: "\n").first(where: { $0.hasPrefix("tps = ") }),
      let rate = Double(line.split(separator: " ")[2])
    else { throw BenchmarkError("pgbench failed: \(text)") }
    return rate
  }
}
