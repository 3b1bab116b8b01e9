import Files
import Foundation
import Glibc

/// The parts that the benchmarks of files share.
private enum StoredFilesBenchmark {
  static let largeBytes = 100 << 20
  static let rounds = 15
  static let bucket = "/v0/b/bench.appspot.com/o"

  /// Returns content that is unique to this number.
  static func content(_ bytes: Int, number: Int) -> [UInt8] {
    var content = [UInt8](repeating: 0, count: bytes)
    var random = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
    for index in stride(from: 0, to: bytes - 8, by: 8) {
      random ^= random << 13
      random ^= random >> 7
      random ^= random << 17
      content.withUnsafeMutableBytes { $0.storeBytes(of: random, toByteOffset: index, as: UInt64.self) }
    }
    return content
  }

  /// Returns the seconds to compute all checksums of the content.
  static func secondsOfSums(_ content: [UInt8]) throws -> Double {
    let watch = Stopwatch()
    let hasher = ContentHasher()
    for start in stride(from: 0, to: content.count, by: 64 << 10) {
      content[start..<min(content.count, start + (64 << 10))].withUnsafeBytes { hasher.update($0) }
    }
    _ = try hasher.finish()
    return watch.seconds
  }

  static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

  static func megabytes(perSecond seconds: Double) -> String {
    Format.count(Double(largeBytes) / 1e6 / seconds)
  }
}

extension Benchmark {
  static let fileDownload = Benchmark(
    name: "file-download",
    summary: "download of a file of 100 MiB over one connection, compared with nginx sending the same file",
    meaning: """
      The file is in the page cache. nginx uses sendfile and serves the file that Hearth stored. The client has the
      kernel discard the bytes, so that the server is the bottleneck. The rounds of the servers alternate, and the table
      shows the medians.
      """
  ) {
    let directory = try Run.makeDirectory("file-download")
    let hearth = try HearthPeer(data: "\(directory)/data")
    defer { hearth.process.stop() }
    try FileConnection(port: hearth.port).upload(
      "\(StoredFilesBenchmark.bucket)?name=large",
      StoredFilesBenchmark.content(StoredFilesBenchmark.largeBytes, number: 1))
    let reply = try LoadClient.send(
      port: hearth.port, "\(StoredFilesBenchmark.bucket)/large", headers: ["Authorization": "Bearer owner"])
    let json = try JSONSerialization.jsonObject(with: Data(reply.body.utf8)) as? [String: Any]
    let token = json?["downloadTokens"] as? String ?? ""
    let contents = "\(directory)/data/files/content"
    let stored = try FileManager.default.subpathsOfDirectory(atPath: contents).first { $0.utf8.count > 60 }
    guard let stored else { throw BenchmarkError("cannot find the stored file") }

    var peers: [(name: String, server: any PeerServer, target: String, mark: String)] = [
      ("Hearth", hearth, "\(StoredFilesBenchmark.bucket)/large?alt=media&token=\(token)", "")
    ]
    var table = ResultTable("server", "MB/s", "CPU ms/download", "Hearth against it", "mark")
    if let obstacle = NginxPeer.obstacle {
      table.notes.append("nginx skipped: \(obstacle)")
    } else {
      let nginx = try NginxPeer(files: ["ready": "ok"], links: ["large": "\(contents)/\(stored)"])
      peers.append(("nginx", nginx, "/large", "≥ 0.80 ×"))
    }
    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      let pocketBase = try PocketBasePeer()
      peers.append(("PocketBase", pocketBase, try pocketBase.storeFile(at: "\(contents)/\(stored)"), ""))
    }
    defer { for peer in peers { peer.server.process.stop() } }
    var seconds = [[Double]](repeating: [], count: peers.count)
    var cpu = [Double](repeating: 0, count: peers.count)
    for round in 0...StoredFilesBenchmark.rounds {
      for (index, peer) in peers.enumerated() {
        Run.progress("file-download: \(peer.name), round \(round)")
        let connection = try FileConnection(port: peer.server.port)
        let before = peer.server.process.cpuSeconds
        let watch = Stopwatch()
        for _ in 0..<2 {
          guard try connection.download(peer.target) == StoredFilesBenchmark.largeBytes else {
            throw BenchmarkError("\(peer.name) sent a file of another size")
          }
        }
        // The first round warms up.
        guard round > 0 else { continue }
        seconds[index].append(watch.seconds / 2)
        cpu[index] += (peer.server.process.cpuSeconds - before) / 2
      }
    }
    let own = StoredFilesBenchmark.median(seconds[0])
    for (index, peer) in peers.enumerated() {
      let median = StoredFilesBenchmark.median(seconds[index])
      table.add(
        peer.name, StoredFilesBenchmark.megabytes(perSecond: median),
        Format.tenths(cpu[index] / Double(StoredFilesBenchmark.rounds) * 1000),
        index == 0 ? "" : Format.ratio(1 / own, to: 1 / median), peer.mark)
    }
    return table
  }

  static let fileUpload = Benchmark(
    name: "file-upload",
    summary: "upload of a file of 100 MiB over one connection, synced, compared with `dd conv=fdatasync`",
    meaning: """
      Hearth responds after the content, the name and the metadata are on disk. It also computes CRC-32C, MD5 and
      SHA-256, which `dd` does not. The third row is the speed of these checksums alone on one core. MD5 takes more than
      half of that time. Each round has different content. The rounds alternate, and the table shows the medians.
      """
  ) {
    let directory = try Run.makeDirectory("file-upload")
    let hearth = try HearthPeer(data: "\(directory)/data")
    defer { hearth.process.stop() }
    let connection = try FileConnection(port: hearth.port)
    var (uploads, copies, sums): ([Double], [Double], [Double]) = ([], [], [])
    var cpu = 0.0
    for round in 0...StoredFilesBenchmark.rounds {
      Run.progress("file-upload: round \(round)")
      let content = StoredFilesBenchmark.content(StoredFilesBenchmark.largeBytes, number: round)
      sync()
      var watch = Stopwatch()
      let dd = try ChildProcess(
        [
          "dd", "if=/dev/zero", "of=\(directory)/copy", "bs=1M", "count=\(StoredFilesBenchmark.largeBytes >> 20)",
          "conv=fdatasync",
        ])
      guard dd.wait(seconds: 60) == 0 else { throw BenchmarkError("dd could not write to \(directory)") }
      copies.append(watch.seconds)
      unlink("\(directory)/copy")
      sync()
      let before = hearth.process.cpuSeconds
      watch = Stopwatch()
      try connection.upload("\(StoredFilesBenchmark.bucket)?name=large", content)
      uploads.append(watch.seconds)
      if round > 0 { cpu += hearth.process.cpuSeconds - before }
      sums.append(try StoredFilesBenchmark.secondsOfSums(content))
    }
    var table = ResultTable("what", "MB/s", "CPU ms", "Hearth against it", "mark")
    let own = StoredFilesBenchmark.median(Array(uploads.dropFirst()))
    let copy = StoredFilesBenchmark.median(Array(copies.dropFirst()))
    let sum = StoredFilesBenchmark.median(Array(sums.dropFirst()))
    table.add(
      "Hearth", StoredFilesBenchmark.megabytes(perSecond: own),
      Format.tenths(cpu / Double(StoredFilesBenchmark.rounds) * 1000), "", "")
    table.add(
      "dd conv=fdatasync", StoredFilesBenchmark.megabytes(perSecond: copy), "", Format.ratio(1 / own, to: 1 / copy),
      "≥ 0.50 ×")
    table.add(
      "all sums on one core", StoredFilesBenchmark.megabytes(perSecond: sum), "", Format.ratio(1 / own, to: 1 / sum), ""
    )
    table.notes.append("The data lies on \(Machine.fileSystem(of: directory)).")
    return table
  }

  static let smallFiles = Benchmark(
    name: "small-files",
    summary: "uploads, synced, and random reads of files of 4 KiB with storage rules, 32 connections",
    meaning: """
      Each upload has its own name and content, and gets its response after the file is on disk. Waiting uploads share a
      commit. Reads are those of a user without a download token, so that the server evaluates the rules each time.
      `wrk` uses one of the cores.
      """
  ) {
    let directory = try Run.makeDirectory("small-files")
    let rules = "\(directory)/storage.rules"
    try """
    rules_version = '2';
    service firebase.storage { match /b/{bucket}/o { match /small/{name} {
      allow read: if name.size() > 1 && resource.size < 1024 * 1024 && resource.contentType.matches('text/.*');
      allow write: if request.auth.uid == 'nobody';
    } } }
    """.write(toFile: rules, atomically: true, encoding: .utf8)
    let hearth = try HearthPeer(data: "\(directory)/data", ["--storage-rules", rules])
    defer { hearth.process.stop() }
    Run.progress("small-files: uploads")
    func upload(_ names: String, seconds: Int) throws -> Load {
      try Load.run(
        on: hearth, StoredFilesBenchmark.bucket, connections: 32,
        script: """
          local number = 0
          local rest = string.rep("\(names)", 4088)
          local headers = { ["Authorization"] = "Bearer owner", ["Content-Type"] = "text/plain" }
          function request()
            local body = string.format("%08d", number) .. rest
            local target = wrk.path .. "?name=small%2F\(names)" .. number
            number = number + 1
            return wrk.format("POST", target, headers, body)
          end
          """, seconds: seconds, warmUpSeconds: 0)
    }
    // Separate names and content, because existing objects are not written again.
    _ = try upload("w", seconds: 1)
    let uploads = try upload("n", seconds: 5)
    // `wrk` may not have sent the last requests of its script, or may have cut them. Store the objects to read here.
    let count = 10_000
    let connection = try FileConnection(port: hearth.port)
    let sent = min(count, Int(uploads.requests) / 2)
    let missing = try (0..<sent).filter { number in
      try LoadClient.send(port: hearth.port, "\(StoredFilesBenchmark.bucket)/small%2Fn\(number)?alt=media").status
        != 200
    }
    for number in missing + Array(sent..<count) {
      try connection.upload(
        "\(StoredFilesBenchmark.bucket)?name=small%2Fn\(number)", StoredFilesBenchmark.content(4096, number: number),
        type: "text/plain")
    }
    let type = try LoadClient.send(port: hearth.port, "\(StoredFilesBenchmark.bucket)/small%2Fn1?alt=media")
    guard type.status == 200 else { throw BenchmarkError("the rules denied a read: \(type.body)") }
    Run.progress("small-files: reads")
    let reads = try Load.run(
      on: hearth, StoredFilesBenchmark.bucket, connections: 32,
      script: """
        local texts = {}
        function init(args)
          for i = 0, \(count - 1) do
            texts[i] = wrk.format("GET", wrk.path .. "/small%2Fn" .. i .. "?alt=media")
          end
        end
        function request() return texts[math.random(0, \(count - 1))] end
        """, warmUpSeconds: 2)
    var table = ResultTable("work", "files/s", "CPU µs/file", "mark")
    table.add(
      "read, rules evaluated", Format.count(reads.requestsPerSecond), Format.tenths(reads.cpuMicrosecondsPerRequest),
      "≥ 10,000")
    table.add(
      "upload, synced", Format.count(uploads.requestsPerSecond), Format.tenths(uploads.cpuMicrosecondsPerRequest), "")
    table.notes.append("The data lies on \(Machine.fileSystem(of: directory)).")
    return table
  }
}
