import Basics
import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LogEngine
import QueryEngine
import Synchronization
import Testing
import TestSupport
import WireFormat

/// Writers that are many times faster than the disk. Time is counted in requests and syncs, so the speed of the machine
/// does not matter.
@Suite struct OverloadTests {
  private static let commits = 20_000
  private static let threads = 4
  private static let commitBytesMax = 96 << 10
  private static let tablesBytesMax = 1 << 20

  /// The end of one commit.
  private struct End: Sendable {
    var number: Int
    /// The commits that had begun before it.
    var place: Int
    var isCommitted: Bool
    /// The syncs of the log between its begin and its end.
    var syncs: Int
  }

  private struct Seen: Sendable {
    var ends: [End] = []
    var problems: [String] = []
    /// The most bytes of unfinished commits, and the fewest that tables could still take.
    var mostBytes = 0
    var leastFree = Int.max
  }

  private let disk = SlowDisk()
  private let memory = MemoryShare(bytesMax: commitBytesMax)
  private let budget = MemtableBudget(tablesBytesMax: tablesBytesMax, filledBytesMax: 128 << 10)
  private let service: FirestoreService
  private let id: DatabaseID

  init() throws {
    id = try #require(DatabaseID(project: "p"))
    var settings = LoggedStoreSettings()
    settings.budget = budget
    settings.memtableBytesMax = 128 << 10
    settings.flushOperationsMax = 100
    settings.idleSeconds = 3600
    settings.log = FileLog.Sizes(segmentBytesMin: 64 << 10, segmentBytesMax: 256 << 10)
    settings.pause = { [disk] _ in disk.wait(commits: 20) }
    let store = try LoggedStore.open(SlowDataFile(disk), folder: SlowFolder(disk), settings: settings)
    let databases = DatabaseRegistry(idleSeconds: nil, commitMemory: memory) { (_) throws(StorageError) in store }
    service = FirestoreService(databases: databases, mode: .emulator)
  }

  /// Memory stays within its bounds. Each commit succeeds or ends with `RESOURCE_EXHAUSTED`, and none waits much longer
  /// than the others. Reads are answered while the log is synced: the disk waits for them.
  @Test(.timeLimit(.minutes(5))) func overloadRefusesCommitsAndDelaysNoReads() async throws {
    let (seen, stored) = try await onDedicatedThread { [self] in
      disk.work.update { $0.isOver = true }
      try commitFirst()
      disk.work.update { $0 = SlowDisk.Work() }
      let seen = Observed(Seen())
      let readers = startThreads(1) { _ in read(seen) }
      onThreads(Self.threads) { thread in
        for number in stride(from: thread, to: Self.commits, by: Self.threads) { commit(number, seen) }
      }
      disk.work.update { $0.isOver = true }
      _ = readers()
      if !seen.wait(secondsMax: 120, until: { $0.ends.count == Self.commits }) {
        seen.update { $0.problems.append("not every commit ended") }
      }
      return (seen.value, try storedNumbers())
    }
    let work = disk.work.value
    #expect(!work.isStuck, "the clients waited for the disk: \(work)")
    #expect(seen.problems.isEmpty, "\(seen.problems.prefix(10))")
    let committed = seen.ends.filter(\.isCommitted)
    #expect(Set(seen.ends.map(\.number)).count == Self.commits, "a commit ended twice")
    #expect(Set(committed.map(\.number)) == stored, "what is stored is not what was acknowledged")
    // The writers are ten times as fast as the disk.
    #expect(committed.count > 500 && committed.count < Self.commits / 8, "\(committed.count) commits succeeded")
    #expect(work.syncs > 5 && work.flushes > 5, "\(work), \(committed.count) commits")

    // Threads that are refused take their bytes for a moment.
    #expect(seen.mostBytes <= Self.commitBytesMax + Self.threads * 4096, "\(seen.mostBytes) bytes of commits waited")
    // One chunk of a table and one group beyond.
    #expect(seen.leastFree > -(512 << 10), "\(seen.leastFree) bytes of tables were free")
    #expect(memory.usedBytes == 0)

    // A commit waits for the group before it and for its own, each of which may begin a segment.
    let longest = committed.map(\.syncs).max() ?? 0
    #expect(longest <= 5, "a commit waited for \(longest) syncs")
    for part in 0..<5 {
      let range = part * Self.commits / 5..<(part + 1) * Self.commits / 5
      #expect(committed.contains { range.contains($0.place) }, "no commit of \(range) succeeded")
    }
  }

  private func write(_ number: Int) -> Write {
    .set("c/\(number)", ("n", .integer(Int64(number))), ("text", .string(String(repeating: "x", count: 100))))
  }

  /// The first commit opens the log.
  private func commitFirst() throws {
    let result: Result<CommitOutcome, Status> = try wait { done in
      try service.commit([.set("first/f", ("n", 1))], in: id, as: .admin, completion: done)
    }
    _ = try result.get()
  }

  private func commit(_ number: Int, _ seen: Observed<Seen>) {
    disk.keepPace()
    let (place, begun) = disk.work.update { work in
      work.commits += 1
      return (work.commits - 1, work.syncs)
    }
    let end = { @Sendable (isCommitted: Bool, problem: String?) in
      let syncs = disk.work.value.syncs - begun
      if isCommitted { disk.step() }
      let (used, free) = (memory.usedBytes, budget.freeBytes)
      seen.update { seen in
        seen.ends.append(End(number: number, place: place, isCommitted: isCommitted, syncs: syncs))
        seen.mostBytes = max(seen.mostBytes, used)
        seen.leastFree = min(seen.leastFree, free)
        if let problem { seen.problems.append(problem) }
      }
    }
    do {
      try service.commit([write(number)], in: id, as: .admin) { result in
        switch result {
        case .success: end(true, nil)
        case .failure(let status): end(false, status.code == .resourceExhausted ? nil : "\(number): \(status)")
        }
      }
    } catch { end(false, "\(number): \(error)") }
  }

  /// Reads until the writers have ended. The log is being synced most of the time.
  private func read(_ seen: Observed<Seen>) {
    while !disk.work.value.isOver {
      do {
        try service.getDocument(document("first/f"), in: id, as: .admin) { document, _ in
          if document.updateVersion <= 0 { seen.update { $0.problems.append("a read found no version") } }
        }
      } catch { seen.update { $0.problems.append("a read failed: \(error)") } }
      disk.work.update { $0.reads += 1 }
    }
  }

  private func storedNumbers() throws -> Set<Int> {
    let cursor = try service.runQuery(RunQueryRequest(Query(collectionID: "c")), in: id, as: .admin)
    var numbers: Set<Int> = []
    while !cursor.isAtEnd {
      try cursor.slice { key, _ in
        numbers.insert(Int(String(decoding: key.id, as: UTF8.self)) ?? -1)
        return true
      }
    }
    return numbers
  }
}
