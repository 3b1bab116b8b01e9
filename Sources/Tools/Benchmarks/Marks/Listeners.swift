import Foundation
import Glibc

extension Benchmark {
  static let listeners = Benchmark(
    name: "listeners",
    summary: "single writes and streams of writes to 1,000 and 10,000 listeners over server-sent events",
    meaning: """
      All listeners are connections of one thread on the same machine as the server. "All have it" is the time from
      before the write is sent until the last listener has read it: the median and the slowest of the writes. A write is
      a commit of one document over HTTP, sent after the response to the previous one. Memory is the growth of RssAnon
      per listener. Lag is the time from before a write is sent until a listener reads it. The table shows the median
      lag at one listener in fifty, in the first and in the last third of the time. "Delivered" is the number of
      documents that the listeners received, as a share of the writes. It is below 100 % if the server merged several
      changes into one.
      """
  ) {
    var table = ResultTable("server", "work", "result", "mark")
    let hearth = try HearthPeer()
    do {
      defer { hearth.process.stop() }
      try Listening.fanOut(HearthListening(hearth), listeners: 10_000, marks: ("< 250 ms", "< 20 KiB"), &table)
    }
    try Listening.besides(listeners: 10_000, &table)
    try Listening.stream(listeners: 1000, isShared: true, &table)
    try Listening.stream(listeners: 1000, isShared: false, &table)
    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      let pocketBase = try PocketBasePeer()
      defer { pocketBase.process.stop() }
      do {
        try Listening.fanOut(PocketBaseListening(pocketBase), listeners: 10_000, marks: nil, &table)
      } catch { table.notes.append("PocketBase: \(error)") }
    }
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      let emulator = try EmulatorPeer()
      defer { emulator.process.stop() }
      do {
        try Listening.fanOut(EmulatorListening(emulator), listeners: 1000, marks: nil, &table)
      } catch { table.notes.append("official emulator: \(error)") }
    }
    return table
  }
}

/// The measurements of `listeners`.
enum Listening {
  /// Measures single writes to `listeners` listeners of one collection.
  static func fanOut(
    _ listening: some ListeningServer, listeners: Int, marks: (time: String, memory: String)?,
    _ table: inout ResultTable
  ) throws {
    let name = type(of: listening.server).name
    Run.progress("listeners: \(name), \(Format.count(Double(listeners))) listeners of one collection")
    try listening.prepare()
    let process = listening.server.process
    let clients = try FeedClients(counting: listening.marker)
    let before = process.anonymousBytes
    let opening = Stopwatch()
    try listening.open(listeners, clients)
    let opened = opening.seconds
    try settle(clients)
    let memory = Double(process.anonymousBytes - before) / Double(listeners) / 1024
    var seconds: [Double] = []
    let cpu = process.cpuSeconds
    for number in 0..<20 {
      clients.reset()
      let watch = Stopwatch()
      guard let write = try listening.beginChange(number) else { throw BenchmarkError("\(name) accepts no changes") }
      try clients.read(withinSeconds: 60) { clients.total >= listeners && clients.counts.allSatisfy { $0 > 0 } }
      seconds.append(watch.seconds)
      let reply = LoadClient.finish(write)
      guard reply?.status == 200 else { throw BenchmarkError("\(name) refused a change: \(reply?.body ?? "")") }
      try settle(clients)
    }
    seconds.sort()
    let cpuEach = (process.cpuSeconds - cpu) / Double(20 * listeners) * 1e6
    let what = "1 write to \(Format.count(Double(listeners))) listeners of one collection"
    table.add(
      name, "\(what): all have it",
      "\(Format.tenths(seconds[10] * 1000)) ms, slowest \(Format.tenths(seconds[19] * 1000)) ms", marks?.time ?? "")
    table.add(name, "the same: CPU of the server", "\(Format.tenths(cpuEach)) µs a listener", "")
    table.add(name, "the same: memory", "\(Format.tenths(memory)) KiB a listener", marks?.memory ?? "")
    table.add(name, "the same: time to open all listeners", "\(Format.tenths(opened)) s", "")
  }

  /// Reads until no more bytes arrive for a while.
  private static func settle(_ clients: FeedClients) throws {
    var noChange = 0
    while noChange < 3 {
      let total = clients.total
      try clients.read(forMilliseconds: 50)
      noChange = clients.total == total ? noChange + 1 : 0
    }
  }

  /// Measures the cost of a write to a document, without listeners and with one listener per document.
  static func besides(listeners: Int, _ table: inout ResultTable) throws {
    let hearth = try HearthPeer()
    defer { hearth.process.stop() }
    let listening = HearthListening(hearth)
    try FirestoreFilling.store(listeners, into: "many", port: hearth.port)
    let writer = try CommitConnection(port: hearth.port)
    // A write that changes nothing notifies no listener, so each write has a new number.
    var written = 0
    let clients = try FeedClients(counting: listening.marker)
    func measure() throws -> (milliseconds: Double, cpu: Double) {
      var seconds: [Double] = []
      let cpu = hearth.process.cpuSeconds
      for number in 0..<2000 {
        let watch = Stopwatch()
        written += 1
        try writer.write("many/m\(number * 7 % listeners)", written)
        seconds.append(watch.seconds)
        try clients.read(forMilliseconds: 0)
      }
      seconds.sort()
      return (seconds[seconds.count / 2] * 1000, (hearth.process.cpuSeconds - cpu) / 2000 * 1e6)
    }
    Run.progress("listeners: writes without listeners")
    _ = try measure()
    let alone = try measure()
    Run.progress("listeners: writes with \(Format.count(Double(listeners))) listeners of a document each")
    try clients.open(listeners, port: hearth.port) { listening.request("many/m\($0)") }
    try clients.read(withinSeconds: 60) { clients.counts.allSatisfy { $0 > 0 } }
    try settle(clients)
    clients.reset()
    let (milliseconds, cpu) = try measure()
    try clients.read(withinSeconds: 10) { clients.total >= 2000 }
    let what = "a write to one of \(Format.count(Double(listeners))) documents"
    table.add(
      "Hearth", "\(what), no listeners",
      "\(Format.tenths(alone.milliseconds * 1000)) µs, CPU \(Format.tenths(alone.cpu)) µs", "")
    table.add(
      "Hearth", "\(what), each with one listener",
      "\(Format.tenths(milliseconds * 1000)) µs, CPU \(Format.tenths(cpu)) µs: "
        + "\(Format.ratio(milliseconds, to: alone.milliseconds)), CPU \(Format.ratio(cpu, to: alone.cpu))", "< 2 ×")
  }

  /// Measures a stream of 1,000 writes a second to listeners of one collection or of one document each.
  static func stream(listeners: Int, isShared: Bool, _ table: inout ResultTable) throws {
    let hearth = try HearthPeer()
    defer { hearth.process.stop() }
    let listening = HearthListening(hearth)
    let documents = isShared ? 100 : listeners
    try FirestoreFilling.store(documents, into: "many", port: hearth.port)
    Run.progress(
      "listeners: 1,000 writes a second with \(listeners) listeners of \(isShared ? "one collection" : "a document each")"
    )
    let clients = try FeedClients(counting: listening.marker)
    try clients.open(listeners, port: hearth.port) { listening.request(isShared ? "many" : "many/m\($0)") }
    try clients.read(withinSeconds: 60) { clients.counts.allSatisfy { $0 > 0 } }
    try settle(clients)
    clients.reset()
    let seconds = 12
    let meter = LagMeter(every: isShared ? 50 : 1)
    clients.onBytes = { meter.read($0, $1) }
    let writers = try (0..<64).map { _ in try CommitConnection(port: hearth.port) }
    let cpu = hearth.process.cpuSeconds
    let watch = Stopwatch()
    var sent = 0
    while watch.seconds < Double(seconds) {
      let due = min(Int(watch.seconds * 1000), seconds * 1000)
      while sent < due {
        try writers[sent % writers.count].send("many/m\(sent * 7 % documents)", meter.now)
        sent += 1
      }
      for writer in writers { try writer.drain() }
      try clients.read(forMilliseconds: 1)
    }
    let used = (hearth.process.cpuSeconds - cpu) / watch.seconds
    clients.onBytes = nil
    let expected = isShared ? sent * listeners : sent
    let delivered = Double(clients.total) / Double(expected) * 100
    let answered = writers.reduce(0) { $0 + $1.answered }
    let (first, last, worst) = meter.lags()
    table.add(
      "Hearth",
      "1,000 writes a second, \(Format.count(Double(listeners))) listeners of \(isShared ? "one collection" : "a document each")",
      "lag \(Format.tenths(first)) ms, later \(Format.tenths(last)) ms, worst \(Format.tenths(worst)) ms; "
        + "delivered \(Format.count(delivered)) %; \(Format.tenths(used)) cores", "no growth")
    if answered < sent - 100 {
      table.notes.append("\(answered) of \(sent) writes got a response within \(seconds) seconds")
    }
  }
}

/// The lags of writes that carry their send time, measured at some of the listeners.
final class LagMeter {
  private let start: Stopwatch
  private let every: Int
  private var seen: [Double] = []
  private static let marker = Array(#""sentAt":{"integerValue":""#.utf8)

  /// Meters with one start can read what another one timed.
  init(every: Int, since start: Stopwatch = Stopwatch()) { (self.every, self.start) = (every, start) }

  /// Microseconds since the start.
  var now: Int { Int(start.seconds * 1e6) }

  /// Records the lag of the last write in the bytes for a listener.
  func read(_ number: Int, _ bytes: ArraySlice<UInt8>) {
    guard number.isMultiple(of: every), let place = bytes.lastRange(of: Self.marker) else { return }
    var sentAt = 0
    for byte in bytes[place.upperBound...] {
      guard byte >= 0x30, byte <= 0x39 else {
        seen.append(Double(now - sentAt) / 1000)
        return
      }
      sentAt = sentAt * 10 + Int(byte - 0x30)
    }
  }

  /// The median and the 99th percentile, in milliseconds.
  var percentiles: (median: Double, tail: Double) {
    guard !seen.isEmpty else { return (.nan, .nan) }
    let sorted = seen.sorted()
    return (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100])
  }

  /// Returns the medians of the first and the last third and the maximum, in milliseconds.
  func lags() -> (first: Double, last: Double, worst: Double) {
    let third = seen.count / 3
    guard third > 0 else { return (0, 0, 0) }
    let (first, last) = (seen[..<third].sorted(), seen[(seen.count - third)...].sorted())
    return (first[third / 2], last[third / 2], seen.max() ?? 0)
  }
}

extension ArraySlice<UInt8> {
  /// Returns the position of the last occurrence of a short text.
  fileprivate func lastRange(of marker: [UInt8]) -> Range<Int>? {
    guard count >= marker.count else { return nil }
    var place = endIndex - marker.count
    while place >= startIndex {
      if self[place] == marker[0], self[place..<(place + marker.count)].elementsEqual(marker) {
        return place..<(place + marker.count)
      }
      place -= 1
    }
    return nil
  }
}
