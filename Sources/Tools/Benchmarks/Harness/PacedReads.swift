import Foundation
import Glibc
import Synchronization

/// Requests at a constant rate. The latency of each counts from its scheduled time, in milliseconds.
struct PacedReads {
  let p50: Double
  let p99: Double

  /// The threads that send requests. A request that takes less than this many intervals does not delay another one, so
  /// the latencies are those of the server, not those of a line of requests in the client.
  private static let threads = 64

  /// Reads a document for a time, each time over a new connection.
  /// - Throws: ``BenchmarkError`` if a read fails.
  static func run(port: Int, _ target: String, perSecond: Int = 1000, seconds: Int) throws -> PacedReads {
    try run(perSecond: perSecond, seconds: seconds) { try LoadClient.send(port: port, target).status == 200 }
  }

  /// Calls `send` for a time. It returns whether the response was the expected one.
  /// - Throws: ``BenchmarkError`` if a request fails.
  static func run(
    perSecond: Int, seconds: Int, send: @escaping @Sendable () throws -> Bool
  ) throws -> PacedReads {
    let outcome = Outcome()
    let running = DispatchGroup()
    let watch = Stopwatch()
    for first in 0..<threads {
      running.enter()
      let thread = Thread {
        defer { running.leave() }
        outcome.add(latencies(of: stride(from: first, to: perSecond * seconds, by: threads), perSecond, watch, send))
      }
      thread.start()
    }
    running.wait()
    guard let times = outcome.times, !times.isEmpty else { throw BenchmarkError("a paced request failed") }
    return PacedReads(p50: times[times.count / 2], p99: times[times.count * 99 / 100])
  }

  /// Sends the requests of some numbers, each at its time. Returns `nil` if one fails.
  private static func latencies(
    of numbers: StrideTo<Int>, _ perSecond: Int, _ watch: Stopwatch, _ send: () throws -> Bool
  ) -> [Double]? {
    var times: [Double] = []
    for number in numbers {
      let due = Double(number) / Double(perSecond)
      let early = due - watch.seconds
      if early > 0 { usleep(UInt32(early * 1e6)) }
      guard (try? send()) == true else { return nil }
      times.append((watch.seconds - due) * 1000)
    }
    return times
  }

  /// The latencies of all threads, or none if a request failed.
  private final class Outcome: Sendable {
    private let latencies = Mutex<[Double]?>([])

    /// The latencies in ascending order; `nil` if a request failed.
    var times: [Double]? { latencies.withLock { $0?.sorted() } }

    func add(_ times: [Double]?) {
      latencies.withLock { latencies in
        guard let times else { return latencies = nil }
        latencies?.append(contentsOf: times)
      }
    }
  }
}
