import Foundation
import Testing
import TestSupport

/// The accounts of a cluster whose owner is killed.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterAccountsTests {
  private static let rounds = ProcessInfo.processInfo.environment["CLUSTER_ROUNDS"].flatMap { Int($0) } ?? 2
  private static let identity = "/identitytoolkit.googleapis.com/v1"
  /// The user who stays signed in. Sign-ins are of another one, because a user has a limited number of sessions.
  private static let account = #"{"email": "ann@example.org", "password": "correct horse", "returnSecureToken": true}"#
  private static let other = #"{"email": "ben@example.org", "password": "correct horse", "returnSecureToken": true}"#

  /// A request that users make again and again.
  private enum Call: Int, CaseIterable { case refresh, lookup, signIn }

  /// Clients of the other nodes refresh tokens, look up the account and sign in. The owner dies while it executes such
  /// requests, which are sent again to the next one. A request that no owner takes in time is refused with 503.
  @Test func usersStaySignedInWhileOwnersAreKilled() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let target = "\(Self.identity)/accounts:signUp?key=shop"
      let made = try JSONNode(parsing: ServedCluster.send(cluster.ports[0], "POST", target, Self.account).body)
      let second = try ServedCluster.send(cluster.ports[0], "POST", target, Self.other)
      try #require(second.status == 200, "\(second.text)")
      let refresh = try #require(made["refreshToken"]?.stringValue, "\(made.text)")
      let token = try #require(made["idToken"]?.stringValue)
      var repeated = 0.0
      for _ in 0..<Self.rounds {
        let owner = try cluster.owner()
        let others = cluster.ports.indices.filter { $0 != owner }
        let before = try others.map { try Self.repeated(cluster, $0) }
        let ports = others.map { cluster.ports[$0] }
        let (answered, isStopped) = (Observed(Array(repeating: 0, count: Call.allCases.count)), Observed(false))
        let wait = startThreads(6) { client -> [String] in
          var problems: [String] = []
          let call = Call(rawValue: client % Call.allCases.count) ?? .lookup
          while !isStopped.value, problems.count < 10 {
            do {
              let response = try Self.send(ports[client % ports.count], call, refresh: refresh, token: token)
              if response.status == 200 {
                answered.update { $0[call.rawValue] += 1 }
              } else if response.status != 503 {
                problems.append("\(call): \(response.status) \(response.text)")
              }
            } catch { problems.append("\(call): \(error)") }
          }
          return problems
        }
        defer { isStopped.update { $0 = true } }
        func more(_ count: Int) throws {
          let before = answered.value
          let isEnough = answered.wait(secondsMax: 120) { now in zip(now, before).allSatisfy { $0 >= $1 + count } }
          try #require(isEnough, "the cluster does not answer: \(answered.value)")
        }
        try more(5)
        cluster.nodes[owner].process.send(signal: SIGKILL)
        _ = try cluster.owner(after: owner)
        try more(5)
        isStopped.update { $0 = true }
        let problems = wait().flatMap { $0 }
        #expect(problems.isEmpty, "\(problems.prefix(10).joined(separator: "\n"))")
        for (index, former) in zip(others, before) { repeated += try Self.repeated(cluster, index) - former }
        try cluster.restart(owner)
      }
      #expect(repeated > 0)
    }
  }

  private static func repeated(_ cluster: ServedCluster, _ node: Int) throws -> Double {
    try #require(cluster.metrics(of: node)["hearth_relay_repeated_total"])
  }

  private static func send(_ port: UInt16, _ call: Call, refresh: String, token: String) throws -> HTTPResponse {
    let form = [("Content-Type", "application/x-www-form-urlencoded")]
    return switch call {
    case .refresh:
      try ServedCluster.send(
        port, "POST", "/securetoken.googleapis.com/v1/token?key=shop",
        "grant_type=refresh_token&refresh_token=\(refresh)", headers: form)
    case .lookup:
      try ServedCluster.send(port, "POST", "\(identity)/accounts:lookup?key=shop", #"{"idToken": "\#(token)"}"#)
    case .signIn:
      try ServedCluster.send(port, "POST", "\(identity)/accounts:signInWithPassword?key=shop", other)
    }
  }
}
