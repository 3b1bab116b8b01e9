import Foundation
import Synchronization

extension Benchmark {
  static let signInBurst = Benchmark(
    name: "sign-in-burst",
    summary: "1,000 reads of a document a second, alone and while 16 clients sign in with passwords",
    meaning: """
      Production mode: the server evaluates rules, and hashes passwords with Argon2id (19 MiB, two passes) on one
      thread. Each read uses a connection of its own. Reads are sent on a fixed schedule, and a latency counts from the
      scheduled time. The mark applies to the difference between the two p99.
      """
  ) {
    if let obstacle = HearthPeer.obstacle { throw BenchmarkError(obstacle) }
    let rules = "\(try Run.makeDirectory("sign-in"))/open.rules"
    try """
    rules_version = '2';
    service cloud.firestore { match /{path=**} { allow read, write: if path != null; } }
    """.write(toFile: rules, atomically: true, encoding: .utf8)
    let port = try LoadClient.freePort()
    let launch = try Launch(
      port: port, readyPath: "/",
      [
        "\(Run.productsDirectory)/hearth", "serve", "--in-memory", "--project", "bench", "--rules", rules, "--quiet",
        "--port", "\(port)",
      ])
    defer { launch.process.stop() }
    let target = "/v1/projects/bench/databases/(default)/documents/tasks/sample"
    guard try LoadClient.send("PATCH", port: port, target, body: Sample.firestoreJSON).status == 200,
      try LoadClient.send("POST", port: port, SignIns.target("signUp"), body: SignIns.body).status == 200
    else { throw BenchmarkError("the server refused to create the document or the account") }
    _ = try PacedReads.run(port: port, target, seconds: 2)
    let alone = try PacedReads.run(port: port, target, seconds: 8)
    let signIns = SignIns(port: port, clients: 16)
    let beside = try PacedReads.run(port: port, target, seconds: 8)
    let count = signIns.stop()
    var table = ResultTable("reads", "p50 ms", "p99 ms", "sign-ins/s", "mark")
    table.add("alone", Format.tenths(alone.p50), Format.tenths(alone.p99), "", "")
    table.add(
      "during sign-ins", Format.tenths(beside.p50), Format.tenths(beside.p99), Format.tenths(Double(count) / 8),
      "p99 +10 ms at most")
    return table
  }
}

/// Clients that sign in repeatedly until they are stopped.
private final class SignIns: Sendable {
  static let body = #"{"email": "ann@example.com", "password": "correct horse", "returnSecureToken": true}"#
  static func target(_ call: String) -> String { "/v1/accounts:\(call)?key=any" }

  private let isStopped = Atomic(false)
  private let count = Atomic<Int>(0)
  private let group = DispatchGroup()

  init(port: Int, clients: Int) {
    for _ in 0..<clients {
      let thread = Thread {
        while !self.isStopped.load(ordering: .relaxed) {
          let reply = try? LoadClient.send("POST", port: port, Self.target("signInWithPassword"), body: Self.body)
          if reply?.status == 200 { self.count.add(1, ordering: .relaxed) }
        }
        self.group.leave()
      }
      group.enter()
      thread.start()
    }
  }

  /// Stops the clients. Returns the number of successful sign-ins.
  func stop() -> Int {
    isStopped.store(true, ordering: .relaxed)
    group.wait()
    return count.load(ordering: .relaxed)
  }
}
