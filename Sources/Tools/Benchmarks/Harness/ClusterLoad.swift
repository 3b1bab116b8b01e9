import Foundation

/// A load by `wrk` on several nodes at once.
enum ClusterLoad {
  struct Outcome {
    var requests = 0.0
    var seconds = 0.0
    /// The median and the 99th percentile of the times, in milliseconds: the greatest of the nodes.
    var times = (0.0, 0.0)

    /// Responses in a second.
    var rate: Double { requests / seconds }
  }

  /// Sends requests for some seconds, over connections that the nodes share evenly.
  /// - Throws: ``BenchmarkError`` if `wrk` fails or a response was an error.
  @discardableResult static func run(
    _ nodes: [ClusterPeer.Node], _ target: String, connections: Int, script: String? = nil, seconds: Int = 5
  ) throws -> Outcome {
    let directory = try Run.makeDirectory("wrk")
    var common = ["wrk", "-t1", "--latency", "-d\(seconds)s"]
    if let script {
      try script.write(toFile: "\(directory)/script.lua", atomically: false, encoding: .utf8)
      common += ["-s", "\(directory)/script.lua"]
    }
    let watch = Stopwatch()
    let loads = try nodes.enumerated().map { index, node in
      let share = connections / nodes.count + (index < connections % nodes.count ? 1 : 0)
      return try ChildProcess(
        common + ["-c\(share)", "http://127.0.0.1:\(node.port)\(target)"], output: "\(directory)/\(index).txt")
    }
    for load in loads {
      guard load.wait(seconds: Double(seconds) + 30) == 0 else { throw BenchmarkError("wrk failed") }
    }
    var outcome = Outcome()
    outcome.seconds = watch.seconds
    for index in loads.indices {
      let text = try String(contentsOfFile: "\(directory)/\(index).txt", encoding: .utf8)
      guard !text.contains("Non-2xx"), !text.contains("Socket errors"),
        let count = line(text, " requests in ")?.first.flatMap({ Double($0) }),
        let median = line(text, " 50%")?.last.flatMap(milliseconds),
        let tail = line(text, " 99%")?.last.flatMap(milliseconds)
      else { throw BenchmarkError("unexpected output of wrk:\n\(text)") }
      outcome.requests += count
      outcome.times = (max(outcome.times.0, median), max(outcome.times.1, tail))
    }
    return outcome
  }

  private static func line(_ text: String, _ label: String) -> [Substring]? {
    text.split(separator: "\n").first { $0.contains(label) }?.split(separator: " ")
  }

  private static func milliseconds(_ text: Substring) -> Double? {
    if text.hasSuffix("us") { return Double(text.dropLast(2)).map { $0 / 1000 } }
    if text.hasSuffix("ms") { return Double(text.dropLast(2)) }
    return text.hasSuffix("s") ? Double(text.dropLast()).map { $0 * 1000 } : nil
  }
}
