import Foundation
import Glibc
import Synchronization

extension Benchmark {
  static let commitLog = Benchmark(
    name: "commit-log",
    summary: "creates in a database of 300,000 documents, with and without a commit log, compared with PocketBase",
    meaning: """
      All databases have 300,000 documents with random ids before the creates. Both rows of Hearth begin with the same
      files, and both are synced: Hearth responds after the commit is on the disk. PocketBase responds before. The
      bytes are those that the server passes to the kernel, including its responses of about 700 bytes and the writes
      from the log to the data file. A bare append writes as many bytes as a commit to a file and calls `fdatasync`; both
      take turns in the benchmark's process. The reads are 1,000 a second, each over a connection of its own; the latency
      counts from the scheduled time, and a late read does not delay the next one. In the row with \(evenRate) creates a
      second, both servers do the same work. The time after a kill is that from the start of a server until it has read a
      document, after a server was killed while it stored documents.
      """
  ) {
    var table = ResultTable("work", "commit log", "without", "ratio", "PocketBase", "commit log against it", "mark")
    let directory = try Run.makeDirectory("commit-log")
    Run.progress("commit-log: commits one after the other")
    let lone = try LoneCommits.run(in: directory)
    Run.progress("commit-log: storing 300,000 documents")
    let full = "\(directory)/full"
    let filler = try HearthPeer(data: full)
    try FilledDatabase.fill(port: filler.port)
    filler.process.stop()
    let logged = try LogMeasurement(of: full, "\(directory)/log", usesLog: true)
    let plain = try LogMeasurement(of: full, "\(directory)/plain", usesLog: false)
    let peer = try PocketBasePeer.obstacle == nil ? FilledDatabase.pocketBase() : nil
    if let obstacle = PocketBasePeer.obstacle { table.notes.append("PocketBase skipped: \(obstacle)") }

    table.add(
      "creates/s, 64 clients, ids of the clients", Format.count(logged.spread.requestsPerSecond),
      Format.count(plain.spread.requestsPerSecond),
      Format.ratio(logged.spread.requestsPerSecond, to: plain.spread.requestsPerSecond),
      peer.map { Format.count($0.requestsPerSecond) } ?? "",
      peer.map { Format.ratio(logged.spread.requestsPerSecond, to: $0.requestsPerSecond) } ?? "",
      "≥ 2.5 ×, ≥ 4 × PocketBase")
    table.add(
      "bytes written per create", Format.count(logged.spread.bytesWritten / logged.spread.requests),
      Format.count(plain.spread.bytesWritten / plain.spread.requests), "", "", "", "≤ 8,192")
    table.add(
      "CPU µs per create", Format.tenths(logged.spread.cpuMicrosecondsPerRequest),
      Format.tenths(plain.spread.cpuMicrosecondsPerRequest), "", "", "", "")
    table.add(
      "creates/s, 64 clients, ids of the server", Format.count(logged.own.requestsPerSecond),
      Format.count(plain.own.requestsPerSecond),
      Format.ratio(logged.own.requestsPerSecond, to: plain.own.requestsPerSecond), "", "", "≥ 1.3 ×")
    table.add(
      "µs per create, one after the other", Format.tenths(1e6 / logged.alone.requestsPerSecond),
      Format.tenths(1e6 / plain.alone.requestsPerSecond),
      Format.ratio(plain.alone.requestsPerSecond, to: logged.alone.requestsPerSecond), "", "", "")
    table.add(
      "µs per commit in one process, one after the other", Format.tenths(lone.commit), "",
      Format.ratio(lone.commit, to: lone.append), "", "", "≤ 1.6 × a bare append")
    table.add(
      "p99 of reads while idle, ms", Format.tenths(logged.idle.p99), Format.tenths(plain.idle.p99), "", "", "", "")
    table.add(
      "p99 of reads during creates, ms", Format.tenths(logged.busy.p99), Format.tenths(plain.busy.p99),
      Format.ratio(logged.busy.p99, to: plain.busy.p99), "", "", "≤ 1.5 ×")
    table.add(
      "p99 of reads during \(evenRate) creates/s, ms", Format.tenths(logged.even.p99), Format.tenths(plain.even.p99),
      Format.ratio(logged.even.p99, to: plain.even.p99), "", "", "≤ 1.5 ×")
    let (beside, apart) = (logged.flush.p99, logged.flush.otherP99)
    table.add(
      "p99 of reads in flushes, \(flushRate) creates/s, ms",
      "\(Format.hundredths(beside)) (others \(Format.hundredths(apart)))", "",
      "\(Format.ratio(beside, to: apart)) others", "", "", "≤ 1.5 × others")
    table.add(
      "start and read after a kill, ms", Format.tenths(logged.restartSeconds * 1000),
      Format.tenths(plain.restartSeconds * 1000), "", "", "", "< 1,000")
    table.add(
      "idle memory 10 s later, MiB", Format.tenths(logged.idleMebibytes), Format.tenths(plain.idleMebibytes), "", "",
      "",
      "")
    return table
  }

  /// Creates a second that a server without a log can store too.
  fileprivate static let evenRate = 400
  /// Creates a second beside which flushes and reads are measured.
  fileprivate static let flushRate = 1000
}

/// The figures of one server on a copy of the same data directory.
private struct LogMeasurement {
  let spread: Load
  let own: Load
  let alone: Load
  let idle: PacedReads
  let busy: PacedReads
  /// Reads beside ``Benchmark/evenRate`` creates a second.
  let even: PacedReads
  /// Reads beside ``Benchmark/flushRate`` creates a second: in flushes, and at other times.
  let flush: (p99: Double, otherP99: Double)
  let restartSeconds: Double
  let idleMebibytes: Double

  init(of full: String, _ data: String, usesLog: Bool) throws {
    guard try ChildProcess(["cp", "-r", full, data]).wait(seconds: 60) == 0 else {
      throw BenchmarkError("cannot copy the data directory")
    }
    // The copy must not be written to the disk during the measurement.
    sync()
    let arguments = ["--commit-log", usesLog ? "on" : "off"]
    let name = usesLog ? "commit log" : "without"
    let server = try HearthPeer(data: data, arguments)
    defer { server.process.kill() }
    let sample = try server.storeSample()
    func load(_ work: String, connections: Int, ids: Bool, seconds: Int = 8) throws -> Load {
      Run.progress("commit-log: \(name), \(work)")
      let (target, body) = server.creation()
      return try Load.run(
        on: server, target, connections: connections, script: FilledDatabase.script(body, makesIDs: ids),
        seconds: seconds, warmUpSeconds: 2)
    }
    spread = try load("64 clients, ids of the clients", connections: 64, ids: true)
    own = try load("64 clients, ids of the server", connections: 64, ids: false)
    alone = try load("one client", connections: 1, ids: true, seconds: 4)
    // The tables are flushed after some seconds.
    sleep(8)
    idle = try PacedReads.run(port: server.port, sample, seconds: 4)
    let script = "\(try Run.makeDirectory("wrk"))/beside.lua"
    let (target, body) = server.creation()
    try FilledDatabase.script(body, makesIDs: true).write(toFile: script, atomically: false, encoding: .utf8)
    let writers = try ChildProcess([
      "wrk", "-d10s", "-t1", "-c16", "-s", script, "http://127.0.0.1:\(server.port)\(target)",
    ])
    sleep(1)
    busy = try PacedReads.run(port: server.port, sample, seconds: 8)
    _ = writers.wait(seconds: 20)
    Run.progress("commit-log: \(name), reads beside \(Benchmark.evenRate) creates a second")
    even = try Self.readsBesideCreates(Benchmark.evenRate, port: server.port, sample, target, body, seconds: 8)
    if usesLog {
      Run.progress("commit-log: \(name), reads beside flushes")
      let watch = Stopwatch()
      // A create takes about 3,000 bytes of the log and of responses, and a flush writes several times as much.
      let flushes = FlushWatch(of: server.process, above: 4500 * Double(Benchmark.flushRate), watch)
      let reads = try Self.readsBesideCreates(
        Benchmark.flushRate, port: server.port, sample, target, body, seconds: 40, since: watch)
      let known = flushes.stop()
      func isInFlush(_ read: PacedReads.Read) -> Bool { known.contains { $0.contains(read.due) } }
      flush = (reads.p99(where: isInFlush), reads.p99 { !isInFlush($0) })
    } else {
      flush = (0, 0)
    }
    Run.progress("commit-log: \(name), kill and start")
    server.process.kill()
    let next = try HearthPeer(data: data, arguments)
    defer { next.process.stop() }
    let watch = Stopwatch()
    guard try LoadClient.send(port: next.port, sample).status == 200 else {
      throw BenchmarkError("the document is not there after the server was killed")
    }
    restartSeconds = next.secondsToFirstAnswer + watch.seconds
    sleep(10)
    idleMebibytes = Double(next.process.anonymousBytes) / 1_048_576
  }
}

extension LogMeasurement {
  /// Reads a document while clients create some documents a second. The reads begin one second after the creates.
  fileprivate static func readsBesideCreates(
    _ rate: Int, port: Int, _ sample: String, _ target: String, _ body: String, seconds: Int,
    since watch: Stopwatch = Stopwatch()
  ) throws -> PacedReads {
    let haveEnded = DispatchSemaphore(value: 0)
    let haveSucceeded = Atomic(false)
    let creates = Thread {
      let paced = try? PacedReads.run(perSecond: rate, seconds: seconds + 2) {
        try LoadClient.send("POST", port: port, "\(target)?documentId=\(UUID().uuidString)", body: body).status == 200
      }
      haveSucceeded.store(paced != nil, ordering: .relaxed)
      haveEnded.signal()
    }
    creates.start()
    sleep(1)
    let reads = try PacedReads.run(perSecond: 1000, seconds: seconds, since: watch) {
      try LoadClient.send(port: port, sample).status == 200
    }
    haveEnded.wait()
    guard haveSucceeded.load(ordering: .relaxed) else { throw BenchmarkError("a create beside reads failed") }
    return reads
  }
}

/// Databases of 300,000 documents with random ids.
enum FilledDatabase {
  static let documents = 300_000

  /// Stores the documents of ``Sample``.
  static func fill(port: Int) throws {
    var random = SampleGenerator(state: 7)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    let root = FirestoreFilling.documents.dropFirst("/v1/".count)
    for _ in 0..<documents / 500 {
      let writes = (0..<500).map { _ in
        let id = String((0..<20).map { _ in alphabet[Int(random.next() % 62)] })
        return "{\"update\": {\"name\": \"\(root)/tasks/\(id)\", \(Sample.firestoreJSON.dropFirst())}"
      }
      let reply = try LoadClient.send(
        "POST", port: port, "\(FirestoreFilling.documents):commit",
        body: "{\"writes\": [\(writes.joined(separator: ","))]}")
      guard reply.status == 200 else { throw BenchmarkError("a commit was refused: \(reply.body)") }
    }
  }

  /// Fills PocketBase and measures its creates.
  static func pocketBase() throws -> Load {
    let server = try PocketBasePeer()
    defer { server.process.stop() }
    let (target, body) = try server.creation()
    let text = """
      \(header)
      local rest = [[, \(body.dropFirst())]]
      function request()
        return wrk.format(nil, nil, nil, '{"id": "' .. id(15, 36) .. '"' .. rest)
      end
      """
    var stored = 0.0
    while stored < Double(documents) {
      Run.progress("commit-log: PocketBase has \(Format.count(stored)) documents")
      stored += try Load.run(
        on: server, target, connections: 64, script: text, seconds: 10, warmUpSeconds: 0
      ).requests
    }
    return try Load.run(on: server, target, connections: 64, script: text, seconds: 8, warmUpSeconds: 2)
  }

  /// A Lua script for `wrk` that creates documents, with ids like those of client libraries if `makesIDs`.
  static func script(_ body: String, makesIDs: Bool) -> String {
    let fixed = "\(header)\nwrk.body = [[\(body)]]\n"
    guard makesIDs else { return fixed }
    return fixed + """
      function request() return wrk.format("POST", wrk.path .. "?documentId=" .. id(20, 62)) end
      """
  }

  private static let header = """
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    math.randomseed(os.time())
    local characters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    local function id(count, kinds)
      local id = {}
      for i = 1, count do
        local n = math.random(kinds)
        id[i] = characters:sub(n, n)
      end
      return table.concat(id)
    end
    """
}
