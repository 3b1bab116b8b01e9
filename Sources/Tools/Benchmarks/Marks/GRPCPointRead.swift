extension Benchmark {
  static let grpcPointRead = Benchmark(
    name: "grpc-point-read",
    summary: "GetDocument of one document over gRPC, compared with REST and the emulator",
    meaning: """
      `h2load -t1` reads the document of `point-read` repeatedly: with 100 concurrent calls on one connection, as a
      server SDK does, and on 32 connections with one call each, as `point-read` does over REST. The load generator uses
      one of the cores, so compare CPU time per request too.
      """
  ) {
    var table = ResultTable("server", "requests/s", "CPU µs/request", "against 100 streams")
    let name = "projects/bench/databases/(default)/documents/tasks/sample"
    let hearth = try HearthPeer()
    defer { hearth.process.stop() }
    let target = try hearth.storeSample()

    func load(_ server: any PeerServer, connections: Int, streams: Int, warmUp: Int = 2) throws -> Load {
      Run.progress("grpc-point-read: \(type(of: server).name), \(connections) connections, \(streams) streams")
      return try Load.getDocument(
        on: server, name: name, connections: connections, streams: streams, warmUpSeconds: warmUp)
    }
    let streams = try load(hearth, connections: 1, streams: 100)
    func add(_ label: String, _ load: Load) {
      table.add(
        label, Format.count(load.requestsPerSecond), Format.tenths(load.cpuMicrosecondsPerRequest),
        Format.ratio(load.requestsPerSecond, to: streams.requestsPerSecond))
    }
    add("Hearth, gRPC, 1 connection, 100 streams", streams)
    add("Hearth, gRPC, 32 connections", try load(hearth, connections: 32, streams: 1))
    add(
      "Hearth, REST, 32 connections, compact",
      try Load.run(on: hearth, target + "?prettyPrint=false", connections: 32, warmUpSeconds: 2))
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      let emulator = try EmulatorPeer()
      defer { emulator.process.stop() }
      _ = try emulator.storeSample()
      // A Java program is slow until its hot code is compiled.
      add(
        "official emulator, gRPC, 1 connection, 100 streams",
        try load(emulator, connections: 1, streams: 100, warmUp: 10))
    }
    return table
  }
}
