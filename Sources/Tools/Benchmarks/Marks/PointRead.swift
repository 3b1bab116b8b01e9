extension Benchmark {
  static let pointRead = Benchmark(
    name: "point-read",
    summary: "GET of one document over HTTP, 32 kept connections, compared with PocketBase, nginx and the emulator",
    meaning: """
      `wrk -t1 -c32` reads one document of five fields repeatedly. The third row of Hearth reads one of 10,000 documents
      at random. nginx serves a file with exactly the bytes of Hearth's indented response, which is the maximum for this
      machine with this load generator. `wrk` uses one of the cores, so compare CPU time per request too.
      """
  ) {
    var table = ResultTable(
      "server", "requests/s", "CPU µs/request", "Hearth against it", "mark")
    let hearth = try HearthPeer()
    defer { hearth.process.stop() }
    let target = try hearth.storeSample()
    let random = try hearth.storeMany(10_000)
    let files = [
      "pretty": try LoadClient.send(port: hearth.port, target).body,
      "compact": try LoadClient.send(port: hearth.port, target + "?prettyPrint=false").body,
    ]

    func load(_ server: any PeerServer, _ target: String, script: String? = nil, warmUp: Int = 2) throws -> Load {
      Run.progress("point-read: \(type(of: server).name) \(target)")
      return try Load.run(on: server, target, connections: 32, script: script, warmUpSeconds: warmUp)
    }
    let indented = try load(hearth, target)
    let compact = try load(hearth, target + "?prettyPrint=false")
    let spread = try load(hearth, target, script: random)
    func add(_ name: String, _ load: Load, _ compared: Load?, _ mark: String) {
      table.add(
        name, Format.count(load.requestsPerSecond), Format.tenths(load.cpuMicrosecondsPerRequest),
        compared.map { Format.ratio($0.requestsPerSecond, to: load.requestsPerSecond) } ?? "", mark)
    }
    add("Hearth, indented (\(files["pretty"]?.utf8.count ?? 0) bytes)", indented, nil, "")
    add("Hearth, compact (\(files["compact"]?.utf8.count ?? 0) bytes)", compact, nil, "")
    add("Hearth, 10,000 documents at random", spread, nil, "")

    if let obstacle = NginxPeer.obstacle {
      table.notes.append("nginx skipped: \(obstacle)")
    } else {
      let nginx = try NginxPeer(files: files)
      defer { nginx.process.stop() }
      add("nginx, the indented bytes", try load(nginx, "/pretty"), indented, "≥ 0.50 ×")
      add("nginx, the compact bytes", try load(nginx, "/compact"), compact, "≥ 0.50 ×")
    }
    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      let pocketBase = try PocketBasePeer()
      defer { pocketBase.process.stop() }
      add("PocketBase", try load(pocketBase, try pocketBase.storeSample()), indented, "≥ 8 ×")
    }
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      let emulator = try EmulatorPeer()
      defer { emulator.process.stop() }
      // A Java program is slow until its hot code is compiled.
      add("official emulator", try load(emulator, try emulator.storeSample(), warmUp: 10), indented, "≥ 40 ×")
    }
    return table
  }
}
