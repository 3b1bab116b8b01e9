import Foundation
import Glibc

/// A program on this machine that serves HTTP, started for a benchmark.
protocol PeerServer: AnyObject {
  /// The name in tables.
  static var name: String { get }
  /// The reason why the program cannot run here, or `nil` if it can.
  static var obstacle: String? { get }

  var port: Int { get }
  var process: ChildProcess { get }
  /// The time from the start of the program to its first response.
  var secondsToFirstAnswer: Double { get }
}

/// A server that stores documents, so that all of them can be measured with the same work.
protocol DocumentServer: PeerServer {
  /// Stores the document of ``Sample``. Returns the target for reading it.
  func storeSample() throws -> String
  /// Returns the target and body of a POST that creates a copy of ``Sample`` under an ID that the server chooses.
  func creation() throws -> (target: String, body: String)
}

/// A started program and its start time.
struct Launch {
  let process: ChildProcess
  let port: Int
  let seconds: Double

  /// Starts a program, whose output goes to a file if `output` is its path, and requests `path` until the response has status
  /// 200.
  /// - Throws: ``BenchmarkError`` if the program ends or does not respond within the time.
  init(
    port: Int, readyPath: String, withinSeconds limit: Double = 60, _ arguments: [String], output: String = "/dev/null"
  ) throws {
    let watch = Stopwatch()
    let process = try ChildProcess(arguments, output: output)
    while true {
      if let reply = try LoadClient.attempt(port: port, readyPath), reply.status == 200 { break }
      guard process.isRunning, watch.seconds < limit else {
        process.stop()
        throw BenchmarkError("\(arguments[0]) did not respond on port \(port)")
      }
      usleep(200)
    }
    self.process = process
    self.port = port
    seconds = watch.seconds
  }
}

/// The document that every peer stores: five scalar fields, about 300 bytes in each peer's own JSON.
enum Sample {
  static let firestoreJSON = """
    {"fields": {"title": {"stringValue": "Buy oat milk and bread"}, "done": {"booleanValue": false}, \
    "count": {"integerValue": "42"}, "score": {"doubleValue": 3.75}, \
    "createdAt": {"timestampValue": "2025-03-27T14:30:00.123456Z"}}}
    """
  static let plainJSON = """
    {"title": "Buy oat milk and bread", "done": false, "count": 42, "score": 3.75, \
    "createdAt": "2025-03-27 14:30:00.123Z"}
    """
}

/// Returns the path of a program, searched for in `PATH` and the folders of daemons, or `nil` if it is not
/// installed.
func findProgram(_ name: String) -> String? {
  let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
  return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"])
    .map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}
