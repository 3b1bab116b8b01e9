import Glibc

/// Hearth itself: the release build next to this program, in emulator mode, with all requests allowed.
final class HearthPeer: DocumentServer {
  static let name = "Hearth"
  static var obstacle: String? {
    access(binary, X_OK) == 0 ? nil : "there is no `hearth` binary next to this program; run `make build` first"
  }

  let port: Int
  let process: ChildProcess
  let secondsToFirstAnswer: Double

  static let binary = "\(Run.productsDirectory)/hearth"
  static let documents = "/v1/projects/bench/databases/(default)/documents"

  /// Starts the server with further arguments. Without a data directory it runs in memory.
  /// - Throws: ``BenchmarkError`` if the server does not start.
  init(data: String? = nil, _ arguments: [String] = []) throws {
    let storage = data.map { ["--data", $0] } ?? ["--in-memory"]
    let port = try LoadClient.freePort()
    let launch = try Launch(
      port: port, readyPath: "/",
      [Self.binary, "serve", "--emulator", "--project", "bench", "--port", "\(port)", "--one-port"] + storage
        + arguments)
    (self.port, process, secondsToFirstAnswer) = (port, launch.process, launch.seconds)
  }

  func storeSample() throws -> String {
    let target = "\(Self.documents)/tasks/sample"
    let reply = try LoadClient.send("PATCH", port: port, target, body: Sample.firestoreJSON)
    guard reply.status == 200 else { throw BenchmarkError("hearth refused the sample: \(reply.body)") }
    return target
  }

  /// Stores `count` documents. Returns a Lua script for `wrk` that reads them at random.
  func storeMany(_ count: Int, into collection: String = "many") throws -> String {
    try FirestoreFilling.store(count, into: collection, port: port)
    return """
      local texts = {}
      function init(args)
        for i = 0, \(count - 1) do texts[i] = wrk.format("GET", "\(Self.documents)/\(collection)/m" .. i) end
      end
      function request() return texts[math.random(0, \(count - 1))] end
      """
  }

  func creation() -> (target: String, body: String) {
    ("\(Self.documents)/tasks", Sample.firestoreJSON)
  }
}
