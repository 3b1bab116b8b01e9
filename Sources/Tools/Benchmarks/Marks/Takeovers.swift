import Dispatch
import Foundation
import Glibc

extension Benchmark {
  static let takeovers = Benchmark(
    name: "takeovers",
    summary: "the pauses of commits when the owner of a cluster is killed, paused or stopped",
    meaning: """
      A client commits one document after the other through a node that stays. Meanwhile the owner is ended, \(rounds)
      times in each way. A pause is the longest time between two acknowledged commits. An owner that falls silent was
      paused with SIGSTOP: its connections stay open, and its process does nothing. A killed owner that starts again at
      once ends its former session, so that nobody waits for its lease.
      """
  ) {
    var table = ResultTable("the owner", "median ms", "longest ms", "mark")
    if let obstacle = PostgresPeer.obstacle {
      table.notes.append("skipped: \(obstacle)")
      return table
    }
    let cluster = try ClusterPeer()
    defer { cluster.stop() }
    for (name, mark, end) in [
      ("is killed", "longest < 5 s", { $0.kill(at: $1) }),
      ("falls silent", "longest < 5 s", { $0.silence(at: $1) }),
      ("is stopped, and hands over", "< 200 ms", { $0.end(at: $1) }),
      (
        "is killed, and starts again at once", "< 1 s",
        { cluster, owner in
          cluster.kill(at: owner)
          try cluster.restart(owner, waits: false)
        }
      ),
    ] as [(String, String, (ClusterPeer, Int) throws -> Void)] {
      var pauses: [Double] = []
      for round in 1...rounds {
        Run.progress("takeovers: the owner \(name), \(round) of \(rounds)")
        let owner = try cluster.owner()
        let pause = SteadyClient.pause(at: cluster.nodes[(owner + 1) % cluster.nodes.count].port)
        try end(cluster, owner)
        pauses.append(try pause())
        cluster.resume(at: owner)
        try cluster.restart(owner, waits: true)
      }
      pauses.sort()
      table.add(name, Format.count(pauses[pauses.count / 2]), Format.count(pauses[pauses.count - 1]), mark)
    }
    return table
  }

  private static let rounds = 10
}

/// A client that commits one document after the other over one connection to a node.
private struct SteadyClient {
  private let connection: CommitConnection

  private init(_ port: Int) throws { connection = try CommitConnection(port: port) }

  /// Starts a client at a port, and waits until it commits. The returned function waits until commits succeed again after a
  /// pause, and returns the longest time of a commit, in milliseconds.
  static func pause(at port: Int) -> () throws -> Double {
    let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let outcome = Lock<Result<Double, any Error>>(.success(0))
    DispatchQueue.global().async {
      let found = Result {
        let client = try SteadyClient(port)
        for _ in 0..<100 { _ = try client.commitOnce() }
        begun.signal()
        return try client.commit(untilPauseAndSeconds: 1.5)
      }
      outcome.withLock { $0 = found }
      begun.signal()
      ended.signal()
    }
    begun.wait()
    return {
      ended.wait()
      return try outcome.withLock { $0 }.get()
    }
  }

  /// Commits until the owner has changed, which a pause of at least 20 ms shows, and for some seconds then. Gives up after half
  /// a minute. Returns the longest time of a commit, in milliseconds.
  private func commit(untilPauseAndSeconds seconds: Double) throws -> Double {
    let watch = Stopwatch()
    var (longest, since) = (0.0, watch.seconds)
    while watch.seconds - since < seconds {
      let time = try commitOnce()
      if time > max(longest, 20) { since = watch.seconds }
      longest = max(longest, time)
      guard watch.seconds < 30 else { throw BenchmarkError("no node took over") }
    }
    return longest
  }

  private func commitOnce() throws -> Double {
    let watch = Stopwatch()
    try connection.write("tasks/steady", 1)
    return watch.seconds * 1000
  }
}
