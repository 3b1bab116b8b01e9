extension Benchmark {
  static let startAndMemory = Benchmark(
    name: "start",
    summary: "time from program start to the first response, and idle memory",
    meaning: """
      The time runs from `posix_spawn` to the end of the first response, with a request every 0.2 ms. The table shows
      the median and the slowest of the starts. Idle memory is RssAnon, the memory without files behind it, after one
      request. In memory, Hearth stores documents in a file on a RAM file system, which RssAnon does not include. That
      file is empty here.
      """
  ) {
    var table = ResultTable("server", "starts", "median ms", "slowest ms", "idle MiB", "mark")
    func measure<S: PeerServer>(_ name: String, times: Int, mark: String, _ start: () throws -> S) throws {
      Run.progress("start: \(name), \(times) times")
      var milliseconds: [Double] = []
      var bytes: [Int] = []
      for _ in 0..<times {
        let server = try start()
        milliseconds.append(server.secondsToFirstAnswer * 1000)
        bytes.append(server.process.anonymousBytes)
        server.process.stop()
      }
      milliseconds.sort()
      bytes.sort()
      table.add(
        name, "\(times)", Format.tenths(milliseconds[times / 2]), Format.tenths(milliseconds[times - 1]),
        Format.tenths(Double(bytes[times / 2]) / 1_048_576), mark)
    }
    try measure("Hearth, in memory", times: 20, mark: "< 50 ms, < 20 MiB") { try HearthPeer() }
    let directory = try Run.makeDirectory("start")
    var made = 0
    try measure("Hearth, new data directory", times: 20, mark: "< 50 ms, < 20 MiB") {
      made += 1
      return try HearthPeer(data: "\(directory)/\(made)")
    }
    if let obstacle = NginxPeer.obstacle {
      table.notes.append("nginx skipped: \(obstacle)")
    } else {
      try measure("nginx", times: 20, mark: "") { try NginxPeer(files: ["ready": "ok"]) }
    }
    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      try measure("PocketBase", times: 5, mark: "") { try PocketBasePeer() }
    }
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      try measure("official emulator", times: 3, mark: "") { try EmulatorPeer() }
    }
    return table
  }
}
