import Glibc
import Synchronization
import Testing

/// The links of a ``ServedCluster``, which a test can break: from each node to PostgreSQL, and from each to each other one.
package final class ClusterLinks: Sendable {
  private let toPostgres: [LinkProxy]
  private let toNodes: [LinkProxy]
  private let processes: Processes
  /// The answers of PostgreSQL, and those of nodes, that ``LinkProxy/Fault/loseAnswers(oneIn:)`` lost.
  package let (lostByPostgres, lostByNodes) = (Observed(0), Observed(0))

  /// The processes of the nodes, by which the proxies know their clients.
  private final class Processes: Sendable {
    private let ids: Mutex<[pid_t]>

    init(_ count: Int) { ids = Mutex(Array(repeating: 0, count: count)) }

    func set(_ id: pid_t, of node: Int) { ids.withLock { $0[node] = id } }

    func index(of port: UInt16, to other: UInt16) -> Int? {
      ConnectionOwner.index(of: port, to: other, among: ids.withLock { $0 })
    }
  }

  /// Makes links that pass everything.
  init(nodes count: Int, to postgres: PostgresServer, seed: UInt64) throws {
    let processes = Processes(count)
    self.processes = processes
    let (byPostgres, byNodes) = (self.lostByPostgres, self.lostByNodes)
    toPostgres = try (0..<count).map { node in
      try LinkProxy(
        to: .path(postgres.socket), seed: seed &* 100 &+ UInt64(node),
        onLoss: { byPostgres.update { $0 += 1 } })
    }
    toNodes = try (0..<count).map { node in
      try LinkProxy(
        seed: seed &* 100 &+ UInt64(50 + node), onLoss: { byNodes.update { $0 += 1 } },
        identify: { processes.index(of: $0, to: $1) })
    }
  }

  /// The URL of PostgreSQL for a node.
  func url(of node: Int) -> String { "postgres://hearth@127.0.0.1:\(toPostgres[node].port)/hearth" }

  /// The options by which a node announces its proxy to the others.
  func options(of node: Int) -> [String] {
    ["--peer-address", "127.0.0.1:\(toNodes[node].port)", "--peer-listen", "127.0.0.1:0"]
  }

  /// Lets other nodes reach one that starts.
  func join(_ process: ServerProcess, _ node: Int) throws {
    processes.set(process.processID, of: node)
    let pattern = /listening for nodes at 127\.0\.0\.1:(\d+)/
    try process.waitForOutput("the address for nodes", timeoutSeconds: 60) { $0.contains(pattern) }
    let found = try #require(try pattern.firstMatch(in: process.output))
    toNodes[node].setTarget(.port(try #require(UInt16(found.1))))
  }

  /// Breaks or heals the link from a node to PostgreSQL.
  package func set(_ fault: LinkProxy.Fault, toPostgresFrom node: Int) { toPostgres[node].set(fault) }

  /// Breaks or heals the connections that a node opened to another one.
  package func set(_ fault: LinkProxy.Fault, from node: Int, to other: Int) {
    toNodes[other].set(fault, from: node)
  }

  /// Breaks or heals all links of a node.
  package func set(_ fault: LinkProxy.Fault, around node: Int) {
    set(fault, toPostgresFrom: node)
    for other in toNodes.indices where other != node {
      set(fault, from: node, to: other)
      set(fault, from: other, to: node)
    }
  }

  /// Breaks or heals all links.
  package func setAll(_ fault: LinkProxy.Fault) {
    for proxy in toPostgres + toNodes { proxy.set(fault) }
  }
}
