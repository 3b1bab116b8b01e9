import Foundation

/// The results of a load by `wrk` on a server.
struct Load {
  /// The number of responses.
  let requests: Double
  let requestsPerSecond: Double
  /// The CPU time of the server per request, in microseconds.
  let cpuMicrosecondsPerRequest: Double
  /// The bytes that the server passed to the kernel, including responses.
  let bytesWritten: Double

  /// Runs a load over kept connections to this machine for a limited time.
  ///
  /// - Parameters:
  ///   - script: a Lua script for `wrk`, if the load is more than a GET of the target.
  ///   - warmUpSeconds: seconds of the same load before the measurement.
  /// - Throws: ``BenchmarkError`` if `wrk` fails or a response was an error.
  static func run(
    on server: any PeerServer, _ target: String, connections: Int, script: String? = nil, seconds: Int = 5,
    warmUpSeconds: Int
  ) throws -> Load {
    var arguments = ["-t1", "-c\(connections)"]
    if let script {
      let path = "\(try Run.makeDirectory("wrk"))/script.lua"
      try script.write(toFile: path, atomically: false, encoding: .utf8)
      arguments += ["-s", path]
    }
    arguments.append("http://127.0.0.1:\(server.port)\(target)")
    if warmUpSeconds > 0 { _ = try wrk(arguments, seconds: warmUpSeconds) }
    let (cpu, written) = (server.process.cpuSeconds, server.process.bytesWritten)
    let (requests, rate) = try wrk(arguments, seconds: seconds)
    return Load(
      requests: requests, requestsPerSecond: rate,
      cpuMicrosecondsPerRequest: (server.process.cpuSeconds - cpu) / requests * 1e6,
      bytesWritten: Double(server.process.bytesWritten - written))
  }

  private static func wrk(_ arguments: [String], seconds: Int) throws -> (requests: Double, rate: Double) {
    let output = "\(Run.scratchDirectory)/wrk.txt"
    let process = try ChildProcess(["wrk", "-d\(seconds)s"] + arguments, output: output)
    defer { process.stop() }
    let status = process.wait(seconds: Double(seconds) + 20)
    let text = try String(contentsOfFile: output, encoding: .utf8)
    func number(before label: String) -> Double? {
      text.split(separator: "\n").first { $0.contains(label) }?.split(separator: " ").first.flatMap { Double($0) }
    }
    func number(after label: String) -> Double? {
      text.split(separator: "\n").first { $0.contains(label) }?.split(separator: " ").last.flatMap { Double($0) }
    }
    guard status == 0, let requests = number(before: " requests in "), let rate = number(after: "Requests/sec:"),
      requests > 0, !text.contains("Non-2xx"), !text.contains("Socket errors")
    else { throw BenchmarkError("unexpected output of wrk:\n\(text)") }
    return (requests, rate)
  }
}
