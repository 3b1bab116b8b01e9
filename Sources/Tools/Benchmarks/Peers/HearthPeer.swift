import Glibc

/// Hearth itself: the release build beside this program, in emulator mode, where all is admitted.
final class HearthPeer: DocumentServer {
  static let name = "Hearth"
  static var obstacle: String? {
    access(binary, X_OK) == 0 ? nil : "there is no `hearth` beside this program; run `make build` first"
  }

  let port: Int
  let process: ChildProcess
  let secondsToFirstAnswer: Double
  private let data: String?

  private static let binary = "\(Run.productsDirectory)/hearth"
  private static let documents = "/v1/projects/bench/databases/(default)/documents"

  /// Starts it, with further arguments; without a data directory in memory.
  init(data: String? = nil, _ arguments: [String] = []) throws {
    let storage = data.map { ["--data", $0] } ?? ["--in-memory"]
    let port = try LoadClient.freePort()
    let launch = try Launch(
      port: port, readyPath: "/",
      [Self.binary, "serve", "--emulator", "--project", "bench", "--port", "\(port)"] + storage + arguments)
    self.data = data
    (self.port, process, secondsToFirstAnswer) = (port, launch.process, launch.seconds)
  }

  func storeSample() throws -> String {
    let target = "\(Self.documents)/tasks/sample"
    let reply = try LoadClient.send("PATCH", port: port, target, body: Sample.firestoreJSON)
    guard reply.status == 200 else { throw BenchmarkError("hearth refused the sample: \(reply.body)") }
    return target
  }

  /// Stores `count` documents, and returns the lines of Lua that ask for them at random.
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

  /// How many write transactions the database file has seen; each is one group of commits and one sync.
  ///
  /// LMDB numbers its transactions in the two meta pages at the start of the file, 144 bytes into each.
  func writeTransactions() throws -> Int {
    guard let data else { throw BenchmarkError("a server in memory keeps no file") }
    let file = open("\(data)/databases/bench/(default)/data.mdb", O_RDONLY)
    guard file >= 0 else { throw BenchmarkError("the database file is not where it should be") }
    defer { close(file) }
    var numbers: [UInt64] = [0, 0]
    for page in 0..<2 { _ = pread(file, &numbers[page], 8, page * 4096 + 144) }
    return Int(max(numbers[0], numbers[1]))
  }
}
