import Testing
import TestSupport

/// A cluster under load while a test breaks parts of it: clients commit and read at all nodes without a pause.
///
/// At the end, nothing that was acknowledged is lost, nothing that was refused is done, each increment happened once, and no
/// read went back. All replicas are equal.
final class FaultRun {
  let cluster: ServedCluster
  private let load: ClusterLoad
  private let reads: ClusterReads
  private let waitForLoad: () -> [ClusterLoad.Log]
  private let waitForReads: () -> [String]

  /// Starts the clients, and waits until they commit.
  init(_ cluster: ServedCluster) throws {
    self.cluster = cluster
    load = ClusterLoad(cluster.ports)
    reads = ClusterReads(cluster.ports)
    (waitForLoad, waitForReads) = (load.start(), reads.start())
    try commit(100)
  }

  deinit {
    load.stop()
    reads.stop()
  }

  /// The links of the cluster.
  var links: ClusterLinks {
    get throws { try #require(cluster.links) }
  }

  /// Waits until so many more commits are acknowledged.
  func commit(_ count: Int) throws {
    let enough = load.acknowledged.value + count
    let isEnough = load.acknowledged.wait(secondsMax: 60) { $0 >= enough }
    try #require(isEnough, "the cluster does not commit: \(cluster.nodes.map(\.process.output))")
  }

  /// Returns the longest time in which no client got an acknowledgment, up to the next commits after a fault, in milliseconds.
  func pause(after fault: () throws -> Void) throws -> Int {
    try load.longestGap {
      try fault()
      try commit(50)
    }
  }

  /// Waits until a node has heard nothing from PostgreSQL for a time.
  func waitForSilence(of node: Int, seconds: Double = 5) throws {
    let isSilent = try OtherProcess.eventually(secondsMax: 60) {
      try cluster.metrics(of: node)["hearth_cluster_silence_seconds"] ?? 0 >= seconds
    }
    try #require(isSilent, "node \(node + 1) hears PostgreSQL")
  }

  /// Waits until a node has renewed its session so many times, once a second.
  func waitForRenewals(_ count: Int, of node: Int) throws {
    func renewal() throws -> Int {
      let text = try cluster.postgres.sql("SELECT renewal FROM hearth_node WHERE node = \(node + 1)", in: "hearth")
      return try #require(Int(text))
    }
    let enough = try renewal() + count
    let isEnough = try OtherProcess.eventually(secondsMax: 60) { try renewal() >= enough }
    try #require(isEnough, "node \(node + 1) does not renew its session")
  }

  /// The number of owners so far.
  var epoch: Int {
    get throws { try #require(Int(try cluster.postgres.sql("SELECT epoch FROM hearth_cluster", in: "hearth"))) }
  }

  /// Waits until a node creates a document and reads it again.
  func waitUntilServing(_ node: Int, _ comment: String) throws {
    var last = ""
    let isServing = try OtherProcess.eventually(secondsMax: 60) {
      guard let made = try? ServedCluster.send(cluster.ports[node], "POST", Self.documents, "{}") else { return false }
      last = made.text
      guard made.status == 200 else { return false }
      let name = try #require(try JSONNode(parsing: made.body)["name"]?.stringValue)
      let found = try ServedCluster.send(cluster.ports[node], "GET", "/v1/\(name)")
      last = found.text
      return found.status == 200
    }
    try #require(isServing, "\(comment): node \(node + 1) does not serve: \(last)\n\(output(of: node))")
  }

  private func output(of node: Int) -> Substring { cluster.nodes[node].process.output.suffix(4000) }

  private static let documents = "\(ServedCluster.documents)/served"

  /// Waits until a node tells balancers to send it no clients.
  func waitUntilUnready(_ node: Int) throws {
    let isUnready = OtherProcess.eventually(secondsMax: 30) {
      (try? ServedCluster.send(cluster.ports[node], "GET", "/readyz"))?.status == 503
    }
    try #require(isUnready, "node \(node + 1) is ready")
  }

  /// The status of a read at a node, or `nil` without a response.
  func statusOfRead(at node: Int) -> Int? {
    (try? ServedCluster.send(cluster.ports[node], "GET", "\(ServedCluster.documents)/shared/0"))?.status
  }

  /// Waits until all nodes serve, ends the clients, and checks what they know. Prints the longest waits. Returns the number of
  /// commits to which nodes responded with an error.
  ///
  /// - Parameter gapMax: the longest time without a commit, in milliseconds, with a margin for loaded machines.
  @discardableResult func finish(_ name: String, gapMax: Int = 30_000) throws -> Int {
    for node in cluster.ports.indices { try waitUntilServing(node, name) }
    try commit(100)
    load.stop()
    reads.stop()
    let (logs, problems) = (waitForLoad(), waitForReads())
    #expect(problems.isEmpty, "\(name): \(problems.joined(separator: "\n"))")
    for port in cluster.ports {
      let problems = try load.problems(logs, at: port)
      #expect(problems.isEmpty, "\(name): \(problems.prefix(20).joined(separator: "\n"))")
    }
    let (refused, unknown) = (logs.map(\.refused.count).reduce(0, +), logs.map(\.unknown.count).reduce(0, +))
    let failures = logs.reduce(0) { $0 + $1.failures }
    print(
      "\(name): \(load.acknowledged.value) commits acknowledged, \(refused) refused, \(unknown) unknown "
        + "(\(failures - refused) of them by a response); the longest wait of a client "
        + "\(logs.map(\.longestPause).max() ?? 0) ms, the longest time without a commit \(load.longestGap) ms; "
        + "reads by node \(reads.reads.value)")
    #expect(load.longestGap < gapMax)
    // The links and the networks of nodes pass no other clients. With a clock of its own, a node does not wait as long as others.
    guard cluster.network == nil, cluster.links == nil, cluster.environments.isEmpty else { return failures }
    let check = try HearthBinary.run(["cluster", "check", cluster.url, "--key", cluster.directory.file("cluster.key")])
    #expect(check.exit == .code(0), "\(name): the replicas differ: \(check.output)")
    return failures
  }
}
