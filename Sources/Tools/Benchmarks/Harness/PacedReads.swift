import Glibc

/// Reads at a constant rate. The latency of each counts from its scheduled time, in milliseconds.
struct PacedReads {
  let p50: Double
  let p99: Double

  /// Reads a document for a time, each time over a new connection.
  /// - Throws: ``BenchmarkError`` if a read fails.
  static func run(port: Int, _ target: String, perSecond: Int = 1000, seconds: Int) throws -> PacedReads {
    var times: [Double] = []
    let watch = Stopwatch()
    for number in 0..<(perSecond * seconds) {
      let due = Double(number) / Double(perSecond)
      let early = due - watch.seconds
      if early > 0 { usleep(UInt32(early * 1e6)) }
      guard try LoadClient.send(port: port, target).status == 200 else { throw BenchmarkError("a read failed") }
      times.append((watch.seconds - due) * 1000)
    }
    times.sort()
    return PacedReads(p50: times[times.count / 2], p99: times[times.count * 99 / 100])
  }
}
