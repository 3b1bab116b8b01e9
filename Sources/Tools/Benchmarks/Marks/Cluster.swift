import Foundation
import Glibc

extension Benchmark {
  static let cluster = Benchmark(
    name: "cluster",
    summary: "commits and reads of three nodes on one PostgreSQL, compared with pgbench and one server",
    meaning: """
      Three nodes and their PostgreSQL share this machine with the clients. The rows of pgbench insert rows with as many
      bytes as Hearth writes. An append is the commit of a group: one row with the effect of all commits that waited. A
      read at a node that does not own the cluster asks the owner how far the log is, together with all reads that wait,
      and is answered from the node's own replica. The CPU time is that of all nodes together.
      """
  ) {
    var table = ResultTable("work", "a second", "CPU µs each", "p50 ms", "p99 ms", "ratio", "mark")
    if let obstacle = PostgresPeer.obstacle {
      table.notes.append("skipped: \(obstacle)")
      return table
    }
    let alone = try HearthPeer(data: "\(try Run.makeDirectory("alone"))/data")
    defer { alone.process.stop() }
    Run.progress("cluster: creates of one server")
    let (target, body) = alone.creation()
    let script = """
      wrk.method = "POST"
      wrk.headers["Content-Type"] = "application/json"
      wrk.body = [[\(body)]]
      """
    let single = try Load.run(on: alone, target, connections: 64, script: script, warmUpSeconds: 1)
    let sample = try alone.storeSample()
    let read = try Load.run(on: alone, sample, connections: 32, warmUpSeconds: 1)
    alone.process.stop()

    Run.progress("cluster: three nodes")
    let cluster = try ClusterPeer()
    defer { cluster.stop() }
    let (before, cpu) = (try cluster.log(), cluster.cpuSeconds)
    let creates = try ClusterLoad.run(cluster.nodes, target, connections: 64, script: script)
    let (after, spent) = (try cluster.log(), cluster.cpuSeconds)
    let appends = (after.entries - before.entries) / creates.seconds
    let appendBytes = Int((after.bytes - before.bytes) / max(1, after.entries - before.entries))
    let createBytes = Int((after.bytes - before.bytes) / max(1, creates.requests))

    Run.progress("cluster: pgbench")
    try cluster.postgres.run([
      "CREATE TABLE single (id bigserial PRIMARY KEY, body bytea NOT NULL)",
      """
      CREATE TABLE appended
        (seq bigserial PRIMARY KEY, epoch bigint NOT NULL, chain bigint NOT NULL, body bytea NOT NULL)
      """,
      "INSERT INTO appended (epoch, chain, body) VALUES (1, 1, '')",
    ])
    func insertAppended(_ bytes: Int) -> String {
      """
      INSERT INTO appended (epoch, chain, body) SELECT 1, 1, convert_to(repeat('x', \(bytes)), 'UTF8')
      WHERE EXISTS (SELECT 1 FROM appended WHERE seq = 1 AND epoch = 1 AND chain = 1 FOR UPDATE);
      """
    }
    let rows = try cluster.pgbench(
      "INSERT INTO single (body) VALUES (convert_to(repeat('x', \(createBytes)), 'UTF8'));", clients: 64)
    let conditional = try cluster.pgbench(insertAppended(appendBytes), clients: 1)

    func add(
      _ work: String, _ rate: Double, cpu: Double? = nil, _ times: (Double, Double)? = nil, ratio: Double? = nil,
      _ mark: String = ""
    ) {
      table.add(
        work, Format.count(rate), cpu.map { Format.tenths($0) } ?? "", times.map { Format.hundredths($0.0) } ?? "",
        times.map { Format.hundredths($0.1) } ?? "", ratio.map { Format.ratio($0, to: 1) } ?? "", mark)
    }
    add("pgbench: inserts of one row of \(createBytes) bytes, 64 clients", rows)
    add("one server: creates, 64 clients", single.requestsPerSecond, cpu: single.cpuMicrosecondsPerRequest)
    let createRate = creates.requests / creates.seconds
    add(
      "three nodes: creates, 64 clients over all nodes", createRate,
      cpu: (spent.nodes - cpu.nodes) / creates.requests * 1e6, creates.times, ratio: createRate / rows,
      "≥ 1 × pgbench")
    add("the same, against one server", createRate, ratio: createRate / single.requestsPerSecond, "≥ 0.7 ×")
    add("pgbench: conditional inserts of \(appendBytes) bytes, 1 client", conditional)
    add("three nodes: appends of these creates", appends, ratio: appends / conditional, "≥ 0.8 ×")

    guard let owner = cluster.nodes.first, let follower = cluster.nodes.last else { return table }
    Run.progress("cluster: commits one after the other")
    // In turns, because the disk of a shared machine is not always as fast.
    var lone: [(create: ClusterLoad.Outcome, insert: Double)] = []
    for _ in 0..<3 {
      lone.append(
        (
          try ClusterLoad.run([owner], target, connections: 1, script: script, seconds: 3),
          try cluster.pgbench(insertAppended(createBytes), clients: 1, seconds: 3)
        ))
    }
    lone.sort { $0.create.requests / $0.insert < $1.create.requests / $1.insert }
    let (create, insert) = lone[1]
    add("pgbench: conditional inserts of \(createBytes) bytes, 1 client", insert)
    let rate = create.requests / create.seconds
    add("creates at the owner, one after the other", rate, create.times, ratio: rate / insert, "≥ 0.8 ×")

    guard try LoadClient.send("PATCH", port: owner.port, sample, body: Sample.firestoreJSON).status == 200 else {
      throw BenchmarkError("the cluster refused the sample")
    }
    add("one server: point reads, 32 connections", read.requestsPerSecond, cpu: read.cpuMicrosecondsPerRequest)
    for (name, node) in [("the owner", owner), ("another node", follower)] {
      Run.progress("cluster: reads at \(name)")
      let lone = try ClusterLoad.run([node], sample, connections: 1)
      add("point reads at \(name), 1 connection", lone.requests / lone.seconds, lone.times)
      let cpu = cluster.cpuSeconds.nodes
      let many = try ClusterLoad.run([node], sample, connections: 32)
      let each = (cluster.cpuSeconds.nodes - cpu) / many.requests * 1e6
      add(
        "point reads at \(name), 32 connections", many.requests / many.seconds, cpu: each, many.times,
        ratio: each / read.cpuMicrosecondsPerRequest, "≤ 1.3 × the CPU of one server")
    }
    return table
  }
}

/// A load by `wrk` on several nodes at once.
enum ClusterLoad {
  struct Outcome {
    var requests = 0.0
    var seconds = 0.0
    /// The median and the 99th percentile of the times, in milliseconds: the greatest of the nodes.
    var times = (0.0, 0.0)
  }

  /// - Throws: ``BenchmarkError`` if `wrk` fails or a response was an error.
  static func run(
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
