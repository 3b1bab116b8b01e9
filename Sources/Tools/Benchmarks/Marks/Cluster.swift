import Foundation

extension Benchmark {
  static let cluster = Benchmark(
    name: "cluster",
    summary: "commits and reads of three nodes on one PostgreSQL, compared with pgbench and one server",
    meaning: """
      Three nodes and their PostgreSQL share this machine with the clients. The first row of pgbench inserts rows with as
      many bytes as Hearth writes. The others perform the statement of an append, with a body of the log. An append is the
      commit of a group: one row with the effect of all commits that waited. The node that appends groups one after the
      other does nothing else: it takes no requests, and no node follows it. A read at a node that does not own the cluster
      asks the owner how far the log is, together with all reads that wait, and is answered from the node's own replica. A
      round trip is a request for /healthz. The CPU time is that of all nodes together.
      """
  ) {
    var table = ClusterTable()
    if let obstacle = PostgresPeer.obstacle {
      table.rows.notes.append("skipped: \(obstacle)")
      return table.rows
    }
    let alone = try OneServer()
    Run.progress("cluster: three nodes")
    let cluster = try ClusterPeer()
    defer { cluster.stop() }
    let appends = try table.addCreates(cluster, alone)
    try table.addGroups(cluster, appends)
    try table.addLoneCreates(cluster, alone)
    try table.addReads(cluster, alone)
    return table.rows
  }

  /// One server without a cluster, under the same loads.
  fileprivate struct OneServer {
    /// The connections of the reads: as many as one node gets, and as many as three get.
    static let connections = (few: 32, many: 96)

    let creation: (target: String, script: String)
    let sample: String
    let creates: Load
    let reads: (few: Load, many: Load)

    init() throws {
      let server = try HearthPeer(data: "\(try Run.makeDirectory("alone"))/data")
      defer { server.process.stop() }
      Run.progress("cluster: one server")
      let (target, body) = server.creation()
      let script = """
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        wrk.body = [[\(body)]]
        """
      creation = (target, script)
      creates = try Load.run(on: server, target, connections: 64, script: script, warmUpSeconds: 1)
      sample = try server.storeSample()
      let (few, many) = Self.connections
      reads = (
        try Load.run(on: server, sample, connections: few, warmUpSeconds: 1),
        try Load.run(on: server, sample, connections: many, warmUpSeconds: 1)
      )
    }
  }

  fileprivate struct ClusterTable {
    var rows = ResultTable("work", "a second", "CPU µs each", "p50 ms", "p99 ms", "ratio", "mark")

    private mutating func add(
      _ work: String, _ rate: Double, cpu: Double? = nil, _ times: (Double, Double)? = nil, ratio: Double? = nil,
      _ mark: String = ""
    ) {
      rows.add(
        work, Format.count(rate), cpu.map { Format.tenths($0) } ?? "", times.map { Format.hundredths($0.0) } ?? "",
        times.map { Format.hundredths($0.1) } ?? "", ratio.map { Format.ratio($0, to: 1) } ?? "", mark)
    }

    /// The appends of creates: how many in a second, the creates in each, and the size of its body in bytes.
    typealias Appends = (rate: Double, creates: Double, bytes: Int)

    /// Compares creates. Returns their appends.
    mutating func addCreates(_ cluster: ClusterPeer, _ alone: OneServer) throws -> Appends {
      Run.progress("cluster: creates")
      let (before, cpu) = (try cluster.log(), cluster.cpuSeconds)
      let creates = try ClusterLoad.run(
        cluster.nodes, alone.creation.target, connections: 64, script: alone.creation.script)
      let (after, spent) = (try cluster.log(), cluster.cpuSeconds)
      let entries = max(1, after.entries - before.entries)
      let createBytes = Int((after.bytes - before.bytes) / max(1, creates.requests))
      try cluster.postgres.run(["CREATE TABLE single (id bigserial PRIMARY KEY, body bytea NOT NULL)"])
      let insert = "INSERT INTO single (body) VALUES (convert_to(repeat('x', \(createBytes)), 'UTF8'));"
      let inserts = try cluster.pgbench(in: "postgres", insert, clients: 64)
      add("pgbench: inserts of one row of \(createBytes) bytes, 64 clients", inserts)
      add(
        "one server: creates, 64 clients", alone.creates.requestsPerSecond,
        cpu: alone.creates.cpuMicrosecondsPerRequest)
      add(
        "three nodes: creates, 64 clients over all nodes", creates.rate,
        cpu: (spent.nodes - cpu.nodes) / creates.requests * 1e6, creates.times, ratio: creates.rate / inserts,
        "≥ 1 × pgbench")
      add(
        "the same, against one server", creates.rate, ratio: creates.rate / alone.creates.requestsPerSecond, "≥ 0.7 ×")
      return (
        entries / creates.seconds, creates.requests / entries, Int((after.bytes - before.bytes) / entries)
      )
    }

    /// Compares appends, of creates and without all that comes before them.
    mutating func addGroups(_ cluster: ClusterPeer, _ appends: Appends) throws {
      Run.progress("cluster: groups, one after the other")
      let member = try MemberPeer(cluster.url(of: try cluster.postgres.makeDatabase("member")))
      _ = try member.commitGroups(of: appends.bytes, seconds: 1)
      try cluster.prepareInserts(in: "member")
      let (commits, inserts) = try inTurns(
        cluster, "member", { try member.commitGroups(of: appends.bytes, seconds: Double(Self.turnSeconds)) }, { $0 })
      try member.stop()
      add("pgbench: inserts of the entries of groups, 1 client", inserts)
      add(
        "three nodes: appends of these creates, \(Format.tenths(appends.creates)) in each", appends.rate,
        ratio: appends.rate / inserts, "≥ 0.8 ×")
      add("one node: appends of groups, one after the other", commits, ratio: commits / inserts, "≥ 0.8 ×")
    }

    mutating func addLoneCreates(_ cluster: ClusterPeer, _ alone: OneServer) throws {
      Run.progress("cluster: creates, one after the other")
      let owner = cluster.nodes[try cluster.owner()]
      func create(seconds: Int) throws -> ClusterLoad.Outcome {
        try ClusterLoad.run(
          [owner], alone.creation.target, connections: 1, script: alone.creation.script, seconds: seconds)
      }
      _ = try create(seconds: 1)
      try cluster.prepareInserts(in: "postgres")
      let (creates, inserts) = try inTurns(cluster, "postgres", { try create(seconds: Self.turnSeconds) }, \.rate)
      add("pgbench: inserts of the entries of single creates, 1 client", inserts)
      add(
        "creates at the owner, one after the other", creates.rate, creates.times, ratio: creates.rate / inserts,
        "≥ 0.8 ×")
    }

    mutating func addReads(_ cluster: ClusterPeer, _ alone: OneServer) throws {
      let index = try cluster.owner()
      let (owner, other) = (cluster.nodes[index], cluster.nodes[(index + 1) % cluster.nodes.count])
      let stored = try LoadClient.send("PATCH", port: owner.port, alone.sample, body: Sample.firestoreJSON)
      guard stored.status == 200 else { throw BenchmarkError("the cluster refused the sample") }
      let (few, many) = OneServer.connections
      func read(_ nodes: [ClusterPeer.Node], connections: Int) throws -> (outcome: ClusterLoad.Outcome, cpu: Double) {
        let cpu = cluster.cpuSeconds.nodes
        let outcome = try ClusterLoad.run(nodes, alone.sample, connections: connections)
        return (outcome, (cluster.cpuSeconds.nodes - cpu) / outcome.requests * 1e6)
      }
      for (connections, load) in [(few, alone.reads.few), (many, alone.reads.many)] {
        add(
          "one server: point reads, \(connections) connections", load.requestsPerSecond,
          cpu: load.cpuMicrosecondsPerRequest)
      }
      for (name, node) in [("the owner", owner), ("another node", other)] {
        Run.progress("cluster: reads at \(name)")
        let (reads, cpu) = try read([node], connections: few)
        add(
          "point reads at \(name), \(few) connections", reads.rate, cpu: cpu, reads.times,
          ratio: cpu / alone.reads.few.cpuMicrosecondsPerRequest, "≤ 1.3 × the CPU of one server")
      }
      Run.progress("cluster: reads at all nodes")
      let (reads, cpu) = try read(cluster.nodes, connections: many)
      add(
        "point reads over all nodes, \(many) connections", reads.rate, cpu: cpu, reads.times,
        ratio: cpu / alone.reads.many.cpuMicrosecondsPerRequest, "≤ 1.3 × the CPU of one server")
      Run.progress("cluster: reads, one after the other")
      let trip = try ClusterLoad.run([owner], "/healthz", connections: 1)
      let atOwner = try ClusterLoad.run([owner], alone.sample, connections: 1)
      let atOther = try ClusterLoad.run([other], alone.sample, connections: 1)
      add("round trips, 1 connection", trip.rate, trip.times)
      add("point reads at the owner, 1 connection", atOwner.rate, atOwner.times)
      add(
        "point reads at another node, 1 connection", atOther.rate, atOther.times,
        ratio: (atOther.times.0 - atOwner.times.0) / trip.times.0, "p50 ≤ 1.5 round trips more")
      add(
        "the same, p99", atOther.rate, ratio: (atOther.times.1 - atOwner.times.1) / trip.times.0,
        "p99 ≤ 4 round trips more")
    }

    private static let turnSeconds = 3

    /// Runs a load and pgbench in turns, because the disk of a shared machine is not always as fast. Returns the pair
    /// with the median ratio.
    private func inTurns<Outcome>(
      _ cluster: ClusterPeer, _ database: String, _ load: () throws -> Outcome, _ rate: (Outcome) -> Double
    ) throws -> (outcome: Outcome, inserts: Double) {
      var pairs: [(outcome: Outcome, inserts: Double)] = []
      for _ in 0..<3 { pairs.append((try load(), try cluster.inserts(in: database, seconds: Self.turnSeconds))) }
      pairs.sort { rate($0.outcome) / $0.inserts < rate($1.outcome) / $1.inserts }
      return pairs[1]
    }
  }
}
