import Foundation

extension Benchmark {
  static let hostedFiles = Benchmark(
    name: "hosted-files",
    summary: "GET of files of 4 KiB and 100 KiB of a web app, 32 kept connections, compared with nginx",
    meaning: """
      `wrk -t1 -c32` reads one file repeatedly. nginx serves the same file with sendfile and a cache of open files. Both
      send validators and a media type. The rounds of the servers alternate, and the table shows the medians.
      """
  ) {
    let directory = try Run.makeDirectory("hosted-files")
    var sizes: [(name: String, bytes: Int)] = [("small.js", 4 << 10), ("large.js", 100 << 10)]
    for (name, bytes) in sizes {
      try String(repeating: "x", count: bytes).write(toFile: "\(directory)/\(name)", atomically: false, encoding: .utf8)
    }
    try "ok".write(toFile: "\(directory)/index.html", atomically: false, encoding: .utf8)
    let hearth = try HearthPeer(["--hosting", directory])
    defer { hearth.process.stop() }
    var table = ResultTable("file and server", "requests/s", "CPU µs/request", "Hearth against it", "mark")
    guard NginxPeer.obstacle == nil else {
      table.notes.append("nginx skipped: \(NginxPeer.obstacle ?? "")")
      return table
    }
    let links = Dictionary(uniqueKeysWithValues: sizes.map { ($0.name, "\(directory)/\($0.name)") })
    let nginx = try NginxPeer(files: ["ready": "ok"], links: links)
    defer { nginx.process.stop() }
    sizes.sort { $0.bytes < $1.bytes }
    for (name, bytes) in sizes {
      var loads: [[Load]] = [[], []]
      for round in 0..<5 {
        for (index, server) in [hearth as any PeerServer, nginx].enumerated() {
          Run.progress("hosted-files: \(type(of: server).name) /\(name), round \(round)")
          loads[index].append(
            try Load.run(
              on: server, "/\(name)", connections: 32, seconds: 3, warmUpSeconds: round == 0 ? 2 : 0))
        }
      }
      let medians = loads.map { $0.sorted { $0.requestsPerSecond < $1.requestsPerSecond }[$0.count / 2] }
      for (index, server) in ["Hearth", "nginx"].enumerated() {
        table.add(
          "\(bytes >> 10) KiB, \(server)", Format.count(medians[index].requestsPerSecond),
          Format.tenths(medians[index].cpuMicrosecondsPerRequest),
          index == 0 ? "" : Format.ratio(medians[0].requestsPerSecond, to: medians[1].requestsPerSecond),
          index == 0 ? "" : "≥ 0.80 ×")
      }
    }
    return table
  }
}
