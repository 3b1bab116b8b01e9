import Foundation
import Testing
import TestSupport

/// Rules that are deployed again and again, while clients use all nodes.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterRulesTests {
  /// After a response that only the rules of a version permit, no node judges a request by those of an earlier one.
  ///
  /// The rules of version n permit everything in the collection `c<n>`, and nothing else.
  @Test func noNodeGoesBackToEarlierRules() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      try Self.deploy(1, cluster)
      // The rules with which the cluster began permit everything.
      let areInForce = try OtherProcess.eventually {
        try cluster.ports.allSatisfy {
          try ServedCluster.send($0, "GET", "\(ServedCluster.documents)/other/missing").status == 403
        }
      }
      try #require(areInForce)
      let clients = Clients(ports: cluster.ports)
      let wait = startThreads(6) { clients.run($0) }
      defer { clients.stop() }
      for version in 1...Self.versions {
        let isKnown = clients.known.wait(secondsMax: 60) { $0 >= version }
        try #require(isKnown, "no node uses version \(version): \(cluster.nodes.map(\.process.output))")
        // The next owner begins with the newest rules, also if the former one did not put them in force.
        let owner = try cluster.owner()
        if version.isMultiple(of: 4) { cluster.kill(owner) }
        if version < Self.versions { try Self.deploy(version + 1, cluster) }
        if version.isMultiple(of: 4) { try cluster.restart(owner) }
      }
      let enough = clients.denied.value.map { $0 + 20 }
      #expect(clients.denied.wait(secondsMax: 60) { zip($0, enough).allSatisfy { $0 >= $1 } })
      clients.stop()
      let problems = wait().flatMap { $0 }
      #expect(problems.isEmpty, "\(problems.prefix(10).joined(separator: "\n"))")
      print(
        "rules: \(Self.versions) deployments, denied by node \(clients.denied.value), "
          + "permitted \(clients.permitted.value)")
    }
  }

  private static let versions = 12

  /// Functions that no rule calls. They only make nodes need time to put rules in force.
  private static let functions = (0..<800).map { "function f\($0)(a) { return a in [\($0), 1, 2] || a == '\($0)'; }" }

  private static func deploy(_ version: Int, _ cluster: ServedCluster) throws {
    let rules = try cluster.directory.write(
      "next.rules",
      """
      rules_version = '2';
      service cloud.firestore { match /databases/{d}/documents/c\(version)/{i} { allow read, write: if true; } }
      \(functions.joined(separator: "\n"))
      """)
    let deployed = try HearthBinary.run(["cluster", "deploy", cluster.url, "--rules", rules])
    try #require(deployed.exit == .code(0), "\(deployed.output)")
  }

  /// Clients that commit and read at random nodes.
  private struct Clients: Sendable {
    let ports: [UInt16]
    /// The greatest version whose rules permitted something.
    let known = Observed(0)
    /// The numbers of requests that were denied as expected, by node, and of those that were permitted.
    let denied: Observed<[Int]>
    let permitted = Observed(0)
    private let isStopped = Observed(false)

    init(ports: [UInt16]) {
      self.ports = ports
      denied = Observed(ports.map { _ in 0 })
    }

    func stop() { isStopped.value = true }

    /// Returns what was wrong.
    func run(_ client: Int) -> [String] {
      var random = SplitMix(seed: UInt64(client))
      var problems: [String] = []
      var number = 0
      while !isStopped.value, number < 200_000, problems.count < 10 {
        number += 1
        let before = known.value
        let version = max(1, before + random.pick(-1...1))
        let isRead = random.chance(oneIn: 2)
        let node = random.pick(ports.indices)
        send(version, isRead ? nil : "\(client)-\(number)", to: node, &problems)
        // This client was the first to see the rules in force at that node: the others must not be behind.
        guard version > before, known.value == version else { continue }
        for other in ports.indices where other != node { send(version - 1, nil, to: other, &problems) }
      }
      return problems
    }

    /// Reads, or creates the document with an ID, in the collection of a version.
    private func send(_ version: Int, _ id: String?, to node: Int, _ problems: inout [String]) {
      let before = known.value
      let target = "\(ServedCluster.documents)/c\(version)"
      let response =
        if let id {
          try? ServedCluster.send(ports[node], "POST", "\(target)?documentId=\(id)", "{}")
        } else {
          try? ServedCluster.send(ports[node], "GET", "\(target)/missing")
        }
      switch response?.status {
      case 403: if version < before { denied.update { $0[node] += 1 } }
      case 200, 404:
        if version < before {
          problems.append("node \(node + 1) permits c\(version) after c\(before) was permitted (read: \(id == nil))")
        }
        known.update { $0 = max($0, version) }
        permitted.update { $0 += 1 }
      // The node or its owner was killed.
      case 500, 503, nil: break
      default: problems.append("\(response?.status ?? 0) \(response?.text ?? "")")
      }
    }
  }
}
