import Foundation
import Glibc
import Synchronization
import Testing

/// A cluster of `hearth serve` processes on a PostgreSQL server of its own, for tests that end its nodes.
package final class ServedCluster: Sendable {
  /// A node, and the port of its clients.
  package struct Node: Sendable {
    package var process: ServerProcess
    package var port: UInt16
    /// The port of its metrics.
    package var metricsPort: UInt16
  }

  package static let project = "shop"
  package static let documents = "/v1/projects/shop/databases/(default)/documents"
  package static let openRules = """
    rules_version = '2';
    service cloud.firestore { match /databases/{d}/documents/{path=**} { allow read, write: if true; } }
    """

  package static let openStorageRules =
    "rules_version = '2'; service firebase.storage { match /b/{b}/o/{p=**} { allow read, write: if true; } }"

  package let directory: TemporaryDirectory
  package let postgres: any PostgresService
  package let url: String
  /// The links between the nodes, and from them to PostgreSQL, if a test can break them.
  package let links: ClusterLinks?
  /// The network of the nodes and PostgreSQL, if it is not that of this machine.
  package let network: TestNetwork?
  /// Passes the bytes of the nodes to PostgreSQL, in that network.
  private let postgresLink: LinkProxy?
  private let state: Mutex<[Node]>
  private let options: [String]
  /// The variables of the first nodes.
  package let environments: [[String]]

  /// The binary with which nodes start, or `nil` for the one of the tests.
  private let executable: Mutex<String?>

  /// Makes a cluster of a project and starts its nodes, with further options. Their clients may read and write everything.
  ///
  /// - Parameters:
  ///   - source: a directory with whose data the cluster begins.
  ///   - environments: variables such as `NAME=value` of the first nodes.
  ///   - postgres: the server, which by default is made for the cluster.
  ///   - standby: a server to which nodes change if the first one does not accept writes.
  ///   - linksSeed: if not `nil`, tests can break ``links``, with this seed of random faults. No node can be added then, and
  ///     `postgres` must be `nil`.
  ///   - executable: the binary that makes the cluster and its first nodes, if it is not the one of the tests. A node in
  ///     a ``network`` has that of the tests.
  ///   - hasNetwork: whether the nodes and PostgreSQL have a ``network`` of their own. Clients reach them as always.
  package init(
    nodes: Int = 3, project: String = ServedCluster.project, from source: String? = nil, serving options: [String] = [],
    environments: [[String]] = [], on postgres: (any PostgresService)? = nil, standby: PostgresServer? = nil,
    linksSeed: UInt64? = nil, executable: String? = nil, hasNetwork: Bool = false
  ) throws {
    self.executable = Mutex(executable)
    self.options = options
    self.environments = environments
    directory = try TemporaryDirectory()
    if let postgres {
      precondition(linksSeed == nil, "links need a server of the cluster's own")
      (self.postgres, links) = (postgres, nil)
    } else {
      let server = try PostgresServer()
      self.postgres = server
      links = try linksSeed.map { try ClusterLinks(nodes: nodes, to: server, seed: $0) }
    }
    network = hasNetwork ? try TestNetwork(nodes: nodes) : nil
    postgresLink = try network.map { [postgres = self.postgres] network in
      let socket = LinkProxy.Target.path(try #require(postgres as? PostgresServer).socket)
      return try network.run(at: .postgres) { try LinkProxy(to: socket, host: TestNetwork.host(of: .postgres)) }
    }
    let database = try self.postgres.makeDatabase("hearth")
    url = standby.map { "\(database),\($0.directory)" } ?? database
    state = Mutex([])
    let rules = try directory.write("open.rules", Self.openRules)
    let storage = try directory.write("open-storage.rules", Self.openStorageRules)
    let made = try HearthBinary.run(
      [
        "cluster", "init", url, "--key", directory.file("cluster.key"), "--accept-loss", "--rules", rules,
        "--storage-rules", storage,
      ] + (source.map { ["--from", $0] } ?? ["--project", project]), executable: executable)
    try #require(made.exit == .code(0), "\(made.output)")
    for number in 0..<nodes {
      let node = try start(number, port: 0)
      state.withLock { $0.append(node) }
    }
  }

  /// Starts one more node, with options of its own.
  package func add(serving options: [String] = []) throws -> Node {
    let node = try start(nodes.count, port: 0, options)
    state.withLock { $0.append(node) }
    return node
  }

  private func start(_ number: Int, port: UInt16, _ options: [String]? = nil) throws -> Node {
    let server = postgresLink.map { "postgres://hearth@\(TestNetwork.address(of: .postgres)):\($0.port)/hearth" }
    let arguments =
      [
        "serve", "--port", "\(port)", "--cluster", server ?? links?.url(of: number) ?? url, "--cluster-key",
        directory.file("cluster.key"), "--data", data(of: number), "--metrics-address",
        "127.0.0.1:0",
      ] + (links?.options(of: number) ?? []) + (options ?? self.options)
    let process =
      if let network {
        try start(arguments, port: port, in: network, at: .node(number))
      } else {
        try HearthBinary.start(
          arguments, environment: environments.indices.contains(number) ? environments[number] : [],
          executable: executable.withLock { $0 })
      }
    try links?.join(process, number)
    let address = try process.waitForLine(prefix: "hearth: listening on http://127.0.0.1:", timeoutSeconds: 60)
    // The log is written on a thread of its own, so that this line may come later than the first one.
    let place = "metrics at http://127.0.0.1:"
    let metrics = try process.waitForLine("'\(place)'", timeoutSeconds: 60) { $0.contains(place) }
    let port = metrics[try #require(metrics.range(of: place)).upperBound...].prefix { $0.isNumber }
    return Node(
      process: process, port: try #require(UInt16(address.prefix { $0.isNumber })),
      metricsPort: try #require(UInt16(port)))
  }

  /// Starts a node in a network. It gets its clients from a socket that was made outside, which stays reachable there.
  private func start(
    _ arguments: [String], port: UInt16, in network: TestNetwork, at place: TestNetwork.Place
  ) throws -> ServerProcess {
    let binary = try #require(HearthBinary.path)
    let (listener, _) = try LoopbackAddress.bind(port: port)
    defer { close(listener) }
    guard listen(listener, 128) == 0 else { throw LoopbackError("cannot listen: errno \(errno)") }
    let peer = ["--peer-address", "\(TestNetwork.address(of: place)):8090"]
    return try ServerProcess(
      executable: "/bin/bash",
      arguments: ["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "bash"] + network.words(at: place) + [binary]
        + arguments + peer, socket: listener)
  }

  /// Chooses the binary with which nodes start from now on: `nil` for the one of the tests.
  package func use(_ executable: String?) { self.executable.withLock { $0 = executable } }

  /// The nodes, in the order of their numbers, which begin with 1.
  package var nodes: [Node] { state.withLock { $0 } }

  /// The ports of the nodes.
  package var ports: [UInt16] { nodes.map(\.port) }

  /// The status of the cluster, as `hearth cluster status --json` prints it.
  package func status() throws -> JSONNode {
    let output = try HearthBinary.run(["cluster", "status", url, "--json"]).output
    return try JSONNode(parsing: Array(output.utf8))
  }

  /// Waits until a node other than `former` owns the cluster. Returns its index.
  package func owner(after former: Int? = nil) throws -> Int {
    var found: Int?
    let isThere = try OtherProcess.eventually(secondsMax: 30) {
      let status = try status()
      guard let number = status["owner"]?.integerValue, let index = index(ofNumber: number) else { return false }
      found = index
      return index != former
    }
    try #require(isThere, "no node owns the cluster")
    return try #require(found)
  }

  /// The index of the node with a number in the cluster. A node with a new directory has a new number.
  private func index(ofNumber number: Int) -> Int? {
    if nodes.indices.contains(number - 1), has(number, nodes[number - 1]) { return number - 1 }
    return nodes.firstIndex { has(number, $0) }
  }

  private func has(_ number: Int, _ node: Node) -> Bool {
    node.process.output.contains("node \(number) of the cluster")
  }

  /// Waits until a node reads documents from its own replica.
  package func waitUntilReading(_ index: Int) throws {
    try nodes[index].process.waitForOutput("reads documents itself", timeoutSeconds: 60) {
      $0.contains("reads documents itself")
    }
  }

  /// Kills a node, as `kill -9` does, and waits for its end.
  package func kill(_ index: Int) {
    nodes[index].process.send(signal: SIGKILL)
    _ = nodes[index].process.waitForExit(timeoutSeconds: 30)
  }

  /// The path of the data directory of a node.
  package func data(of index: Int) -> String { directory.file("node\(index + 1)") }

  /// Starts a node that has ended, on its port and with its data directory.
  package func restart(_ index: Int) throws {
    let node = try start(index, port: nodes[index].port)
    state.withLock { $0[index] = node }
  }

  /// The samples of a node's metrics about the cluster, by name and labels.
  package func metrics(of index: Int) throws -> [String: Double] {
    let text = try TestHTTPClient(port: nodes[index].metricsPort, timeoutSeconds: 20).send("GET", "/metrics").text
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("hearth_cluster_") || $0.hasPrefix("hearth_relay_") }
    return Dictionary(
      uniqueKeysWithValues: lines.compactMap { line in
        let words = line.split(separator: " ")
        return words.count == 2 ? Double(words[1]).map { (String(words[0]), $0) } : nil
      })
  }

  /// Sends a request to a node. Waits up to 20 seconds for each piece of the response.
  package static func send(
    _ port: UInt16, _ method: String, _ target: String, _ body: String? = nil,
    headers: [(String, String)] = [("Content-Type", "application/json")]
  ) throws -> HTTPResponse {
    try TestHTTPClient(port: port, timeoutSeconds: 20).send(
      method, target, headers: headers, body: body.map { Array($0.utf8) })
  }
}
