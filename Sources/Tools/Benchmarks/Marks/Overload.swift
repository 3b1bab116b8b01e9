import Foundation
import Synchronization

extension Benchmark {
  static let overload = Benchmark(
    name: "overload",
    summary: "creates of clients that are ten times faster than the disk, with reads beside them",
    meaning: """
      The database has 300,000 documents with random ids before the creates. The kernel limits the disk to a tenth of the
      bytes that the server writes each second without a limit. Then 64 clients create documents with random ids for a
      minute, each as soon as it has the response to its last one. In the last row, \(largeClients) clients create
      documents of \(largeBytes >> 10) KiB, so that the commits that wait would take more memory than the server gives
      them. Refused creates end with RESOURCE_EXHAUSTED; the client then waits for a second. The reads are 1,000 a second, each over a connection of its own; the latency
      counts from the scheduled time, without reads during which the machine stood still. Memory is the largest
      RssAnon, read every 50 ms.
      """
  ) {
    var table = ResultTable(
      "time", "creates/s", "p50 ms", "p99 ms", "slowest ms", "refused", "failed", "p99 of reads, ms",
      "memory MiB")
    guard DiskLimit.obstacle == nil else {
      table.notes.append("skipped: \(DiskLimit.obstacle ?? "")")
      return table
    }
    let data = "\(try Run.makeDirectory("overload"))/data"
    Run.progress("overload: storing 300,000 documents")
    let server = try HearthPeer(data: data)
    defer { server.process.stop() }
    try FilledDatabase.fill(port: server.port)
    let sample = try server.storeSample()
    let (target, body) = server.creation()
    Run.progress("overload: without a limit")
    let free = try Load.run(
      on: server, target, connections: 64, script: FilledDatabase.script(body, makesIDs: true), seconds: 8,
      warmUpSeconds: 2)
    // The tables are flushed after some seconds.
    sleep(10)
    let idle = try PacedReads.run(port: server.port, sample, seconds: 8)
    table.add(
      "no limit", Format.count(free.requestsPerSecond), "", "", "", "", "",
      "\(Format.tenths(idle.p99 { _ in true })) (no creates)",
      Format.tenths(Double(server.process.anonymousBytes) / 1_048_576))

    let limit = Int(free.bytesWritten / 8 / 10)
    table.notes.append("The limit of the disk: \(Format.count(Double(limit) / 1e6)) MB/s.")
    try withExtendedLifetime(DiskLimit(of: server.process, onDiskOf: data, bytesPerSecond: limit)) {
      func load(_ clients: Int, _ body: String, seconds: Int, windows: Int, _ name: (Int) -> String) throws {
        let writers = WaitingWriters(clients, port: server.port, target, body: body)
        for window in 0..<windows {
          Run.progress("overload: \(name(window))")
          let memory = LargestMemory(of: server.process)
          let reads = try PacedReads.run(port: server.port, sample, seconds: seconds)
          let bytes = memory.stop()
          let ends = window + 1 < windows ? writers.take() : writers.stop()
          table.add(
            name(window), Format.count(Double(ends.created.count) / Double(seconds)),
            Format.tenths(ends.seconds(of: 0.5) * 1000), Format.tenths(ends.seconds(of: 0.99) * 1000),
            Format.tenths(ends.seconds(of: 1) * 1000), Format.count(Double(ends.refused)),
            ends.failures.isEmpty ? "0" : "\(ends.failures)",
            Format.tenths(reads.p99 { _ in true }),
            Format.tenths(Double(bytes) / 1_048_576))
        }
      }
      try load(64, body, seconds: 10, windows: 6) { "second \($0 * 10) to \($0 * 10 + 10)" }
      try load(largeClients, largeBody, seconds: 20, windows: 1) { _ in "large documents, 20 s" }
    }
    return table
  }

  fileprivate static let largeClients = 512
  fileprivate static let largeBytes = 512 << 10
  fileprivate static let largeBody = """
    {"fields": {"text": {"stringValue": "\(String(repeating: "0123456789abcdef", count: largeBytes / 16))"}}}
    """
}

/// Reads the memory of a process again and again, and keeps the largest number.
private final class LargestMemory: Sendable {
  private let bytes = Atomic<Int>(0)
  private let isStopped = Atomic(false)
  private let running = DispatchGroup()

  init(of process: ChildProcess) {
    let pid = process.pid
    running.enter()
    let thread = Thread { [self] in
      while !isStopped.load(ordering: .relaxed) {
        bytes.max(ChildProcess.anonymousBytes(of: pid), ordering: .relaxed)
        usleep(50_000)
      }
      running.leave()
    }
    thread.start()
  }

  /// Returns the largest number of bytes.
  func stop() -> Int {
    isStopped.store(true, ordering: .relaxed)
    running.wait()
    return bytes.load(ordering: .relaxed)
  }
}
