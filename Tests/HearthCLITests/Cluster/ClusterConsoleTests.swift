import Foundation
import Testing
import TestSupport

/// The console of a cluster: operators may use the address of any node.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterConsoleTests {
  private static let documents = ServedCluster.documents

  /// A cluster whose nodes have consoles, with one operator.
  private struct Consoles {
    let cluster: ServedCluster
    /// The port of each node's console.
    let ports: [UInt16]
    private let password: String

    init() throws {
      cluster = try ServedCluster(serving: ["--console-address", "127.0.0.1:0"])
      ports = try cluster.nodes.map { node in
        let place = "the console for operators is at http://127.0.0.1:"
        try node.process.waitForOutput(place, timeoutSeconds: 60) { $0.contains(place) }
        let output = node.process.output
        let port = output[try #require(output.range(of: place)).upperBound...].prefix { $0.isNumber }
        return try #require(UInt16(port))
      }
      // The command reaches the owner by the socket of another node.
      let owner = try cluster.owner()
      let other = cluster.directory.file("node\((owner + 1) % 3 + 1)")
      let options = ["--role", "owner", "--project", "shop", "--data", other, "--generate"]
      let added = try HearthBinary.run(["operators", "add", "ann"] + options)
      try #require(added.exit == .code(0), "\(added.output)")
      password = String(try #require(added.output.split(separator: "\n").first { !$0.hasPrefix("hearth: ") }))
    }

    func send(_ node: Int, _ method: String, _ target: String, _ body: String? = nil, token: String? = nil) throws
      -> HTTPResponse
    {
      var headers = [("Content-Type", "application/json"), ("Host", "127.0.0.1:\(ports[node])")]
      if let token { headers.append(("Authorization", "Bearer \(token)")) }
      return try ServedCluster.send(ports[node], method, target, body, headers: headers)
    }

    /// Signs the operator in at a node's console, and returns the token.
    func signIn(_ node: Int) throws -> String {
      let body = #"{"name": "ann", "password": "\#(password)"}"#
      let response = try send(node, "POST", "/hearth/v1/session", body)
      return try #require(JSONNode(parsing: response.body)["token"]?.stringValue, "\(response.text)")
    }
  }

  @Test func anOperatorUsesAnyNodeUntilTheOwnerChanges() async throws {
    try await onDedicatedThread {
      let consoles = try Consoles()
      let cluster = consoles.cluster
      let owner = try cluster.owner()
      let token = try consoles.signIn((owner + 1) % 3)
      for node in 0..<3 {
        #expect(try consoles.send(node, "GET", "/_/console/").status == 200)
        let document = "\(Self.documents)/notes/n\(node)"
        let body = #"{"fields": {"text": {"stringValue": "hello"}}}"#
        #expect(try consoles.send(node, "PATCH", document, body, token: token).status == 200)
        #expect(try consoles.send((node + 1) % 3, "GET", document, token: token).status == 200)
        #expect(try consoles.send(node, "GET", document).status == 401)
        // The address of the apps knows neither the session nor the page.
        let headers = [("Authorization", "Bearer \(token)")]
        #expect(try ServedCluster.send(cluster.ports[node], "GET", document, headers: headers).status == 401)
        #expect(
          try ServedCluster.send(cluster.ports[node], "GET", "/hearth/v1/cluster", headers: headers).status == 404)

        // PostgreSQL is asked once a second.
        let isListed = try OtherProcess.eventually(secondsMax: 30) {
          let response = try consoles.send(node, "GET", "/hearth/v1/cluster", token: token)
          let nodes = try #require(JSONNode(parsing: response.body)["nodes"]?.elements, "\(response.text)")
          return nodes.compactMap { $0["node"]?.integerValue } == [1, 2, 3]
            && nodes.allSatisfy { $0["state"]?.stringValue == "live" }
            && nodes.firstIndex { if case .bool(true)? = $0["isOwner"] { true } else { false } } == owner
        }
        #expect(isListed)
      }
      cluster.nodes[owner].process.send(signal: SIGKILL)
      let next = try cluster.owner(after: owner)
      let last = try #require([0, 1, 2].first { $0 != owner && $0 != next })
      #expect(try consoles.send(last, "GET", "/hearth/v1/session", token: token).status == 401)
      let second = try consoles.signIn(last)
      #expect(try consoles.send(next, "GET", "\(Self.documents)/notes/n0", token: second).status == 200)
    }
  }

  /// Each node decides about reads by its own replica, so while operators record, the owner executes all of them.
  @Test func aRecordingHasTheRequestsOfAllNodes() async throws {
    try await onDedicatedThread {
      let consoles = try Consoles()
      let cluster = consoles.cluster
      let owner = try cluster.owner()
      let followers = [0, 1, 2].filter { $0 != owner }
      for node in followers { try cluster.waitUntilReading(node) }
      let token = try consoles.signIn(owner)
      let path = "/hearth/v1/recording"
      #expect(try consoles.send(followers[0], "POST", path, "{}", token: token).status == 200)
      // The other nodes learn of it a moment later.
      let isRelayed = try OtherProcess.eventually(secondsMax: 30) {
        for node in 0..<3 {
          _ = try ServedCluster.send(cluster.ports[node], "GET", "\(Self.documents)/seen/by\(node)")
        }
        let log = try consoles.send(followers[0], "GET", "/hearth/v1/requests", token: token).text
        return (0..<3).allSatisfy { log.contains("seen/by\($0)") }
      }
      #expect(isRelayed)
      #expect(try consoles.send(followers[1], "DELETE", path, token: token).status == 200)
      // The ends of short recordings are not lost.
      for _ in 0..<20 {
        #expect(try consoles.send(owner, "POST", path, "{}", token: token).status == 200)
        #expect(try consoles.send(owner, "DELETE", path, token: token).status == 200)
      }
      for node in followers {
        let isReading = try OtherProcess.eventually(secondsMax: 60) {
          let before = try relayed(by: node, in: cluster)
          _ = try ServedCluster.send(cluster.ports[node], "GET", "\(Self.documents)/seen/again")
          return try relayed(by: node, in: cluster) == before
        }
        #expect(isReading, "node \(node + 1) passes reads to the owner")
      }
    }
  }

  /// The number of requests that a node passed to the owner.
  private func relayed(by node: Int, in cluster: ServedCluster) throws -> Double {
    try #require(cluster.metrics(of: node)["hearth_relay_requests_total"])
  }
}
