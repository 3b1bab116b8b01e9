import Foundation
import Testing
import TestSupport

/// The accounts of a cluster whose owner is killed.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterAccountsTests {
  private static let rounds = ProcessInfo.processInfo.environment["CLUSTER_ROUNDS"].flatMap { Int($0) } ?? 2
  private static let identity = "/identitytoolkit.googleapis.com/v1"
  private static let account = #"{"email": "ann@example.org", "password": "correct horse", "returnSecureToken": true}"#

  /// Clients of the other nodes refresh tokens, look up the account and sign in. The owner dies while it executes such
  /// requests, which are sent again to the next one: each succeeds.
  @Test func usersStaySignedInWhileOwnersAreKilled() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster()
      let target = "\(Self.identity)/accounts:signUp?key=shop"
      let made = try JSONNode(parsing: ServedCluster.send(cluster.ports[0], "POST", target, Self.account).body)
      let refresh = try #require(made["refreshToken"]?.stringValue, "\(made.text)")
      let token = try #require(made["idToken"]?.stringValue)
      for _ in 0..<Self.rounds {
        let owner = try cluster.owner()
        let ports = cluster.ports.indices.filter { $0 != owner }.map { cluster.ports[$0] }
        let (answered, isStopped) = (Observed(0), Observed(false))
        let wait = startThreads(4) { client -> [String] in
          let port = ports[client % ports.count]
          var problems: [String] = []
          repeat {
            let sent = Result {
              client < 2
                ? try Self.send(port, "token", "grant_type=refresh_token&refresh_token=\(refresh)", isForm: true)
                : try Self.send(port, "accounts:lookup", #"{"idToken": "\#(token)"}"#)
            }
            switch sent {
            case .success(let response) where response.status == 200: answered.update { $0 += 1 }
            case .success(let response): problems.append("\(response.status): \(response.text)")
            case .failure(let error): problems.append("\(error)")
            }
          } while !isStopped.value
          return problems
        }
        func more(_ count: Int) throws {
          let enough = answered.value + count
          try #require(answered.wait(secondsMax: 60) { $0 >= enough }, "the cluster does not answer")
        }
        try more(50)
        cluster.nodes[owner].process.send(signal: SIGKILL)
        let signedIn = try Self.send(ports[0], "accounts:signInWithPassword", Self.account)
        #expect(signedIn.status == 200, "\(signedIn.text)")
        _ = try cluster.owner(after: owner)
        try more(50)
        isStopped.update { $0 = true }
        let problems = wait().flatMap { $0 }
        #expect(problems.isEmpty, "\(problems.prefix(10).joined(separator: "\n"))")
        try cluster.restart(owner)
      }
    }
  }

  private static func send(_ port: UInt16, _ call: String, _ body: String, isForm: Bool = false) throws -> HTTPResponse
  {
    let root = call == "token" ? "/securetoken.googleapis.com/v1" : identity
    return try ServedCluster.send(
      port, "POST", "\(root)/\(call)?key=shop", body,
      headers: [("Content-Type", isForm ? "application/x-www-form-urlencoded" : "application/json")])
  }
}
