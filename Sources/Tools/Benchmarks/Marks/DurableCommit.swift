import Glibc

extension Benchmark {
  static let durableCommit = Benchmark(
    name: "durable-commit",
    summary: "creates of one document each, 64 clients, synced, compared with PocketBase and the disk itself",
    meaning: """
      Each of 64 connections repeatedly posts one document of five fields and waits for the response. Hearth responds
      after the commit is on disk. Waiting commits share a sync. PocketBase responds before its log is synced. The rate
      of the disk is that of a loop of one 4 KiB write and one fdatasync, the best possible rate for a server that syncs
      every commit alone. The bytes are those that the server passes to the kernel, including its responses of about 700
      bytes. The server chooses the document ids, except in the second row. Random ids from clients spread a group of
      commits over as many pages as possible.
      """
  ) {
    var table = ResultTable(
      "server", "creates/s", "CPU µs/create", "bytes written/create", "Hearth, synced, against it", "mark")
    let clients = 64
    func load(_ server: any DocumentServer, _ what: String, warmUp: Int = 1, makesIDs: Bool = false) throws -> Load {
      Run.progress("durable-commit: \(what)")
      let (target, body) = try server.creation()
      var script = """
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        wrk.body = [[\(body)]]
        """
      if makesIDs { script += "\n" + randomIDs }
      return try Load.run(on: server, target, connections: clients, script: script, warmUpSeconds: warmUp)
    }
    func add(_ name: String, _ load: Load, against hearth: Load?, _ mark: String) {
      table.add(
        name, Format.count(load.requestsPerSecond), Format.tenths(load.cpuMicrosecondsPerRequest),
        Format.count(load.bytesWritten / load.requests),
        hearth.map { Format.ratio($0.requestsPerSecond, to: load.requestsPerSecond) } ?? "", mark)
    }

    let directory = try Run.makeDirectory("durable")
    Run.progress("durable-commit: the disk's own sync rate")
    let syncs = try syncsPerSecond(in: directory, seconds: 3)
    let durable = try HearthPeer(data: "\(directory)/data")
    defer { durable.process.stop() }
    let synced = try load(durable, "Hearth, synced")
    let spread = try load(durable, "Hearth, synced, random ids from the clients", makesIDs: true)
    durable.process.stop()
    add("Hearth, synced", synced, against: nil, "")
    add("Hearth, synced, random ids from the clients", spread, against: synced, "")

    let inMemory = try HearthPeer()
    defer { inMemory.process.stop() }
    add("Hearth, in memory", try load(inMemory, "Hearth, in memory"), against: nil, "")
    inMemory.process.stop()

    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      let pocketBase = try PocketBasePeer()
      defer { pocketBase.process.stop() }
      add("PocketBase, not synced", try load(pocketBase, "PocketBase"), against: synced, "≥ 4 ×")
    }
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      let emulator = try EmulatorPeer()
      defer { emulator.process.stop() }
      add("official emulator, in memory", try load(emulator, "official emulator", warmUp: 5), against: synced, "")
    }
    table.add(
      "the disk: 4 KiB write + fdatasync", Format.count(syncs), "", Format.count(4096),
      Format.ratio(synced.requestsPerSecond, to: syncs), "")
    table.notes.append("The data lies on \(Machine.fileSystem(of: directory)).")
    return table
  }

  /// A Lua script for `wrk` with random IDs like those of client libraries.
  private static let randomIDs = """
    math.randomseed(os.time())
    local characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    function request()
      local id = {}
      for i = 1, 20 do
        local n = math.random(62)
        id[i] = characters:sub(n, n)
      end
      return wrk.format("POST", wrk.path .. "?documentId=" .. table.concat(id))
    end
    """

  /// Returns how often per second 4 KiB can be written to a file and synced.
  private static func syncsPerSecond(in directory: String, seconds: Double) throws -> Double {
    let file = open("\(directory)/floor", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard file >= 0 else { throw BenchmarkError("cannot write to \(directory)") }
    defer { close(file) }
    let page = [UInt8](repeating: 0x68, count: 4096)
    let watch = Stopwatch()
    var count = 0
    while watch.seconds < seconds {
      // Write within an existing file length, as a database does after a while.
      guard pwrite(file, page, page.count, count % 1024 * page.count) == page.count, fdatasync(file) == 0 else {
        throw BenchmarkError("cannot write to \(directory)")
      }
      count += 1
    }
    return Double(count) / watch.seconds
  }
}
