import Foundation
import Glibc

/// A program that answers HTTP on this machine, started for a benchmark.
protocol PeerServer: AnyObject {
  /// As tables call it.
  static var name: String { get }
  /// Why it cannot run here, or `nil` where it can.
  static var obstacle: String? { get }

  var port: Int { get }
  var process: ChildProcess { get }
  /// From the start of the program to its first answer.
  var secondsToFirstAnswer: Double { get }
}

/// A server that keeps documents: the same work can be asked of all of them.
protocol DocumentServer: PeerServer {
  /// Stores the document of ``Sample`` and returns the target that reads it.
  func storeSample() throws -> String
  /// The target and body of a POST that creates a document of ``Sample`` under an id the server makes.
  func creation() throws -> (target: String, body: String)
}

/// A started program, and how long it took to answer.
struct Launch {
  let process: ChildProcess
  let port: Int
  let seconds: Double

  /// Starts a program and asks `path` until it is answered with 200.
  /// - Throws: ``BenchmarkError`` when the program ends or does not answer within the time.
  init(port: Int, readyPath: String, withinSeconds limit: Double = 60, _ arguments: [String]) throws {
    let watch = Stopwatch()
    let process = try ChildProcess(arguments)
    while true {
      if let reply = try LoadClient.attempt(port: port, readyPath), reply.status == 200 { break }
      guard process.isRunning, watch.seconds < limit else {
        process.stop()
        throw BenchmarkError("\(arguments[0]) did not answer on port \(port)")
      }
      usleep(200)
    }
    self.process = process
    self.port = port
    seconds = watch.seconds
  }
}

/// The document that every peer stores: five scalar fields, in each peer's own JSON about 300 bytes.
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

/// Where a program lies, looked for in the folders of `PATH` and where daemons are; `nil` where it is not installed.
func findProgram(_ name: String) -> String? {
  let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
  return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"])
    .map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}
