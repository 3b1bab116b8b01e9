import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import Synchronization
import Watch

extension Benchmark {
  static let changeFeed = Benchmark(
    name: "feed",
    summary: "listeners in this process, without connections",
    meaning: """
      The table shows the cost of listeners for a writer, and how soon they are notified. Each listener follows one
      document of its own, or all follow one query. The first two rows commit changes of one document one after the
      other, in memory, and wait for each acknowledgment. The last row is the time from such a commit until every
      listener has received the change and the following snapshot, on one thread. Memory is the growth of the process
      (RssAnon) per listener that is up to date, without a connection.
      """
  ) {
    var table = ResultTable("work", "µs each", "against no listeners", "KiB a listener")
    let commits = 2000
    let count = 10_000
    let bench = try FeedBench()
    try bench.fill(count)
    _ = try bench.commit(commits)
    let alone = try bench.commit(commits)
    table.add("commit of a document, no listeners", Format.tenths(alone / Double(commits) * 1e6), "", "")

    Run.progress("feed: 10,000 listeners of 10,000 documents")
    var before = bench.memory
    var listeners = try (0..<count).map { number in
      try FeedBench.Listener(bench, .documents([bench.keys[number].path]))
    }
    try bench.settle(listeners)
    let memory = Double(bench.memory - before) / Double(count)
    let among = try bench.commit(commits, settling: listeners[0])
    table.add(
      "the same, 10,000 listeners of one document each", Format.tenths(among / Double(commits) * 1e6),
      Format.ratio(among / alone, to: 1), Format.tenths(memory))
    for listener in listeners { listener.stream.end() }
    listeners = []

    Run.progress("feed: 10,000 listeners of one query")
    before = bench.memory
    var query = Query(collectionID: "tasks")
    query.limit = 20
    listeners = try (0..<count).map { _ in try FeedBench.Listener(bench, .query(query)) }
    try bench.settle(listeners)
    let queryMemory = Double(bench.memory - before) / Double(count)
    let rounds = 20
    let watch = Stopwatch()
    for _ in 0..<rounds {
      _ = try bench.commit(1)
      try bench.settle(listeners)
    }
    table.add(
      "change delivered to 10,000 listeners of one query", Format.tenths(watch.seconds / Double(rounds) * 1e6), "",
      Format.tenths(queryMemory))
    for listener in listeners { listener.stream.end() }
    return table
  }
}

/// An in-memory database with listeners on this thread.
private final class FeedBench {
  let service: FirestoreService
  let id: DatabaseID
  private(set) var keys: [DocumentKey] = []
  private let server: Server
  private var samples = SampleDocuments()

  final class Listener {
    let stream: ListenStream
    private(set) var snapshots = 0
    private let wake: Wake

    init(_ bench: FeedBench, _ selection: ListenTarget.Selection) throws {
      let wake = Wake()
      self.wake = wake
      stream = try ListenStream(bench.service, in: bench.id, as: .admin) {
        wake.isDue.store(true, ordering: .sequentiallyConsistent)
      }
      try stream.receive(.add(ListenTarget(id: 1, selection)))
    }

    final class Wake: Sendable {
      let isDue = Atomic(true)
    }

    /// Takes all pending events.
    func take() throws {
      while wake.isDue.exchange(false, ordering: .sequentiallyConsistent) {
        while case .more = try stream.pull({ event in
          if case .noChange = event { snapshots += 1 }
          return true
        }) {}
      }
    }
  }

  init() throws {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.port = 0
    server = try Server(configuration)
    service = server.service
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    self.id = id
  }

  deinit { server.stop() }

  /// Creates `count` documents.
  func fill(_ count: Int) throws {
    keys = (0..<count).compactMap { DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\($0)".utf8))) }
    for start in stride(from: 0, to: count, by: 500) {
      try commit(keys[start..<min(start + 500, count)].map { Write(.update(samples.next(), mask: nil), key: $0) })
    }
  }

  /// Changes the first document `count` times, one commit after another. Returns the seconds.
  func commit(_ count: Int, settling listener: Listener? = nil) throws -> Double {
    let writes = (0..<count).map { _ in Write(.update(samples.next(), mask: nil), key: keys[0]) }
    let watch = Stopwatch()
    for write in writes {
      try commit([write])
      try listener?.take()
    }
    return watch.seconds
  }

  private func commit(_ writes: [Write]) throws {
    let done = DispatchSemaphore(value: 0)
    let failed = Lock(false)
    try service.commit(writes, in: id, as: .admin) { result in
      if case .failure = result { failed.withLock { $0 = true } }
      done.signal()
    }
    done.wait()
    if failed.withLock({ $0 }) { throw BenchmarkError("a commit failed") }
  }

  /// Waits until all listeners are up to date.
  func settle(_ listeners: [Listener]) throws {
    for _ in 0..<3 {
      for listener in listeners { try listener.take() }
      for hub in try service.watchHubs(as: service.administrator(.admin)).all { hub.settle() }
    }
    for listener in listeners { try listener.take() }
  }

  /// The anonymous memory (RssAnon) of this process, in KiB.
  var memory: Int {
    let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    return lines.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }
}
