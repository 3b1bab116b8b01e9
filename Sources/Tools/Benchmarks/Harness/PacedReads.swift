import Foundation
import Glibc
import Synchronization

/// Requests at a constant rate. The latency of each counts from its scheduled time.
struct PacedReads {
  /// One request.
  struct Read: Sendable {
    /// The scheduled time, in seconds.
    let due: Double
    let milliseconds: Double
    /// Whether the machine stood still in or shortly before this time, as far as that is known; see ``StallWatch``.
    var isStalled = false
  }

  /// All requests, the fastest first.
  let reads: [Read]

  /// The latency of half of the requests, in milliseconds.
  var p50: Double { Self.milliseconds(of: 0.5, in: reads) }
  /// The latency of all but one percent of the requests, in milliseconds.
  var p99: Double { Self.milliseconds(of: 0.99, in: reads) }

  /// The 99th percentile of the requests that `isWanted` selects, in milliseconds, without those that a standstill of the
  /// machine delayed; 0 without any.
  func p99(where isWanted: (Read) -> Bool) -> Double {
    Self.milliseconds(of: 0.99, in: reads.filter { !$0.isStalled && isWanted($0) })
  }

  private static func milliseconds(of share: Double, in reads: [Read]) -> Double {
    reads.isEmpty ? 0 : reads[min(reads.count - 1, Int(Double(reads.count) * share))].milliseconds
  }

  /// The threads that send requests. A request that takes less than this many intervals does not delay another one, so
  /// the latencies are those of the server, not those of a line of requests in the client.
  private static let threads = 64
  /// Requests that were due shortly before a standstill, in seconds, may wait for threads that others wake after it.
  private static let stallMargin = 0.004

  /// Reads a document for a time, each time over a new connection.
  /// - Throws: ``BenchmarkError`` if a read fails.
  static func run(port: Int, _ target: String, perSecond: Int = 1000, seconds: Int) throws -> PacedReads {
    try run(perSecond: perSecond, seconds: seconds) { try LoadClient.send(port: port, target).status == 200 }
  }

  /// Calls `send` for a time. It returns whether the response was the expected one. Times count since `watch` was made.
  /// - Throws: ``BenchmarkError`` if a request fails.
  static func run(
    perSecond: Int, seconds: Int, since watch: Stopwatch = Stopwatch(), send: @escaping @Sendable () throws -> Bool
  ) throws -> PacedReads {
    let outcome = Outcome()
    let running = DispatchGroup()
    let stalls = StallWatch(watch)
    let begin = watch.seconds
    for first in 0..<threads {
      running.enter()
      let thread = Thread {
        defer { running.leave() }
        outcome.add(
          reads(of: stride(from: first, to: perSecond * seconds, by: threads), perSecond, watch, begin, send))
      }
      thread.start()
    }
    running.wait()
    let known = stalls.stop()
    guard var reads = outcome.reads, !reads.isEmpty else { throw BenchmarkError("a paced request failed") }
    for index in reads.indices {
      let due = reads[index].due
      let time = due - stallMargin...due + reads[index].milliseconds / 1000
      reads[index].isStalled = known.contains { $0.overlaps(time) }
    }
    return PacedReads(reads: reads)
  }

  /// Sends the requests of some numbers, each at its time. Returns `nil` if one fails.
  private static func reads(
    of numbers: StrideTo<Int>, _ perSecond: Int, _ watch: Stopwatch, _ begin: Double, _ send: () throws -> Bool
  ) -> [Read]? {
    var reads: [Read] = []
    for number in numbers {
      let due = begin + Double(number) / Double(perSecond)
      let early = due - watch.seconds
      if early > 0 { usleep(UInt32(early * 1e6)) }
      guard (try? send()) == true else { return nil }
      reads.append(Read(due: due, milliseconds: (watch.seconds - due) * 1000))
    }
    return reads
  }

  /// The requests of all threads, or none if one failed.
  private final class Outcome: Sendable {
    private let all = Mutex<[Read]?>([])

    /// The requests, the fastest first; `nil` if one failed.
    var reads: [Read]? { all.withLock { $0?.sorted { $0.milliseconds < $1.milliseconds } } }

    func add(_ reads: [Read]?) {
      all.withLock { all in
        guard let reads else { return all = nil }
        all?.append(contentsOf: reads)
      }
    }
  }
}
