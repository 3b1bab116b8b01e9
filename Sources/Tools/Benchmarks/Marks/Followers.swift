import Foundation
import Glibc

extension Benchmark {
  static let followers = Benchmark(
    name: "followers",
    summary: "listeners at all nodes of a cluster, and a node that joins",
    meaning: """
      The clients, three nodes and PostgreSQL share this machine. The lag is the time from before a commit is sent to the
      owner until a listener at a node has read it, at half the rate that 64 clients of the owner reach. "All have it" is
      the time from before a write is sent until the last listener has read it. A node that joins loads the newest
      snapshot, and is ready when it reads documents itself.
      """
  ) {
    var table = ResultTable("work", "median", "p99 or slowest", "ratio", "mark")
    if let obstacle = PostgresPeer.obstacle {
      table.notes.append("skipped: \(obstacle)")
      return table
    }
    let cluster = try ClusterPeer()
    do {
      defer { cluster.stop() }
      try lag(cluster, &table)
      try fanOut(cluster, &table)
    }
    try join(&table)
    return table
  }

  // MARK: - Lag

  private static func lag(_ cluster: ClusterPeer, _ table: inout ResultTable) throws {
    let (target, body) = (HearthPeer.documents + "/tasks", Sample.firestoreJSON)
    let script = """
      wrk.method = "POST"
      wrk.headers["Content-Type"] = "application/json"
      wrk.body = [[\(body)]]
      """
    Run.progress("followers: the highest rate of commits")
    let most = try ClusterLoad.run([cluster.nodes[0]], target, connections: 64, script: script)
    let rate = most.requests / most.seconds / 2
    Run.progress("followers: lag at \(Format.count(rate)) commits a second")
    let owner = cluster.nodes[0].port
    try FirestoreFilling.store(documents, into: "many", port: owner)
    let clients = try FeedClients(counting: marker)
    for node in cluster.nodes { try clients.open(1, port: node.port) { _ in listen("many/m0") } }
    try clients.read(withinSeconds: 60) { clients.counts.allSatisfy { $0 > 0 } }
    let start = Stopwatch()
    let meters = cluster.nodes.map { _ in LagMeter(every: 1, since: start) }
    clients.onBytes = { meters[$0].read(0, $1) }
    let writers = try (0..<64).map { _ in try CommitConnection(port: owner) }
    let watch = Stopwatch()
    var sent = 0
    while watch.seconds < seconds {
      let due = Int(watch.seconds * rate)
      while sent < due {
        // The listeners follow one document of many.
        try writers[sent % writers.count].send("many/m\(sent % documents)", meters[0].now)
        sent += 1
      }
      for writer in writers { try writer.drain() }
      try clients.read(forMilliseconds: 1)
    }
    clients.onBytes = nil
    let lags = meters.map(\.percentiles)
    for (index, lag) in lags.enumerated() {
      table.add(
        "lag of a listener at \(index == 0 ? "the owner" : "node \(index + 1)"), \(Format.count(rate)) commits a second",
        "\(Format.tenths(lag.median)) ms", "\(Format.tenths(lag.tail)) ms", "",
        index == 0 ? "" : "< 5 ms and < 50 ms more")
    }
    let answered = writers.reduce(0) { $0 + $1.answered }
    if answered < sent - Int(rate / 10) {
      table.notes.append("\(answered) of \(sent) commits were acknowledged within \(Int(seconds)) seconds")
    }
  }

  private static let documents = 50
  private static let seconds = 10.0
  private static let marker = "\"documentChange\""

  private static func listen(_ path: String) -> String {
    "GET \(HearthPeer.documents)/\(path):listen HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
  }

  // MARK: - Many listeners

  private static func fanOut(_ cluster: ClusterPeer, _ table: inout ResultTable) throws {
    let count = 9_999
    Run.progress("followers: listeners of one server")
    let alone = try HearthPeer()
    let single: [Double]
    do {
      defer { alone.process.stop() }
      single = try deliver(to: [alone.port], listeners: count)
    }
    Run.progress("followers: listeners of three nodes")
    let spread = try deliver(to: cluster.nodes.map(\.port), listeners: count)
    func add(_ work: String, _ times: [Double], ratio: String = "", _ mark: String = "") {
      table.add(
        work, "\(Format.tenths(times[times.count / 2] * 1000)) ms",
        "\(Format.tenths(times[times.count - 1] * 1000)) ms",
        ratio, mark)
    }
    let what = "1 write to \(Format.count(Double(count))) listeners"
    add("\(what) of one server: all have it", single)
    add(
      "\(what) of three nodes: all have it", spread,
      ratio: Format.ratio(spread[spread.count / 2], to: single[single.count / 2]),
      "≤ 0.5 × on more cores")
  }

  /// Returns the times until all listeners have a change, in order, in seconds.
  private static func deliver(to ports: [Int], listeners: Int) throws -> [Double] {
    let first = try LoadClient.send(
      "PATCH", port: ports[0], "\(HearthPeer.documents)/tasks/sample", body: Sample.firestoreJSON)
    guard first.status == 200 else { throw BenchmarkError("the sample was refused: \(first.body)") }
    let clients = try FeedClients(counting: marker)
    for port in ports { try clients.open(listeners / ports.count, port: port) { _ in listen("tasks/sample") } }
    try clients.read(withinSeconds: 120) { clients.counts.allSatisfy { $0 > 0 } }
    var times: [Double] = []
    for number in 0..<20 {
      clients.reset()
      let watch = Stopwatch()
      guard let write = try FirestoreWriting.beginChange(number, port: ports[0]) else {
        throw BenchmarkError("the change is not accepted")
      }
      try clients.read(withinSeconds: 60) { clients.total >= listeners && clients.counts.allSatisfy { $0 > 0 } }
      times.append(watch.seconds)
      guard LoadClient.finish(write)?.status == 200 else { throw BenchmarkError("a change was refused") }
    }
    return times.sorted()
  }

  // MARK: - Joining

  private static func join(_ table: inout ResultTable) throws {
    let directory = try Run.makeDirectory("join")
    let data = "\(directory)/data"
    Run.progress("followers: a data directory of one gigabyte")
    let (file, _) = try writeTree(to: "\(directory)/tree.json", documents: 1_500_000)
    let imported = try ChildProcess(
      [HearthPeer.binary, "import", file, "--data", data, "--project", "bench"], output: "\(directory)/import.log")
    guard imported.wait(seconds: 300) == 0 else {
      throw BenchmarkError((try? String(contentsOfFile: "\(directory)/import.log", encoding: .utf8)) ?? "no import")
    }
    unlink(file)
    let bytes = try size(of: data)
    Run.progress("followers: a cluster from \(bytes >> 20) MiB")
    var watch = Stopwatch()
    let cluster = try ClusterPeer(from: data)
    defer { cluster.stop() }
    let begun = watch.seconds
    watch = Stopwatch()
    let copied = try ChildProcess(["cp", "-r", "--sparse=never", data, "\(directory)/copy"])
    guard copied.wait(seconds: 120) == 0 else { throw BenchmarkError("the directory cannot be copied") }
    sync()
    let copying = watch.seconds
    Run.progress("followers: a node joins")
    watch = Stopwatch()
    try cluster.add()
    let joining = watch.seconds
    table.add(
      "a cluster of three nodes from a directory of \(bytes >> 20) MiB", "\(Format.tenths(begun)) s", "", "", "")
    table.add("copy of the directory, synced", "\(Format.tenths(copying)) s", "", "", "")
    table.add(
      "a node joins that cluster", "\(Format.tenths(joining)) s", "", Format.ratio(joining, to: copying),
      "≤ 3 × the copy")
  }

  /// The bytes of the files in a directory.
  private static func size(of directory: String) throws -> Int {
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
    return names.reduce(0) { total, name in
      var status = stat()
      guard stat("\(directory)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return total }
      return total + Int(status.st_blocks) * 512
    }
  }
}
