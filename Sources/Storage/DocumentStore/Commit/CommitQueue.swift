import Dispatch
import DocumentModel
import Glibc
import KeyValue
import Synchronization

/// The line in front of a database's one writer: whoever waits is written together, with one sync.
///
/// A writer thread is borrowed from the system's pool while there is something to write. While it syncs, the next
/// group gathers; so the number of syncs falls as the load rises, and nobody waits for a timer.
final class CommitQueue: Sendable {
  /// Called once per commit, on the writer's thread, after the commit is durable or has failed.
  typealias Completion = @Sendable (Result<CommitOutcome, CommitError>) -> Void

  private struct Waiting: Sendable {
    var member: CommitWriter.Member
    var bytes: Int
    /// When it stood in line, in microseconds of the monotonic clock.
    var since: Int
    var completion: Completion
  }

  private struct State {
    var waiting: [Waiting] = []
    var waitingBytes = 0
    var isWriting = false
  }

  /// Bytes of commits and their plans that may wait; what comes on top is refused at once.
  static let waitingBytesMax = 256 << 20
  /// Commits of one group, so that the first of a long line is not answered with the last.
  static let groupMembersMax = 2048

  /// Tells of what became durable.
  let changes = ChangeSignal()
  private let store: any KeyValueStore
  private let state = Mutex(State())
  private let writer: Mutex<CommitWriter>
  private let queue: DispatchQueue
  /// No commit may take a version at or below this: somebody was told what the database looked like then.
  private let floor = Atomic<Int64>(Int64.min)
  private let counters: CommitCounters

  /// Creates the line in front of a store.
  init(store: any KeyValueStore, indexCache: IndexCatalogCache, label: String, counters: CommitCounters) {
    self.store = store
    self.counters = counters
    writer = Mutex(CommitWriter(indexCache: indexCache))
    queue = DispatchQueue(label: label)
  }

  /// Puts commits in the line, next to each other; each succeeds or fails on its own.
  func submit(_ members: [CommitWriter.Member], completions: [Completion]) {
    let now = Self.microseconds()
    let waiting = zip(members, completions).map { member, completion in
      Waiting(
        member: member, bytes: member.request.bytes + (member.plan?.bytes ?? 0), since: now, completion: completion)
    }
    let bytes = waiting.reduce(0) { $0 + $1.bytes }
    enum Decision { case refuse, start, wait }
    let decision = state.withLock { state -> Decision in
      guard state.waitingBytes + bytes <= Self.waitingBytesMax else { return .refuse }
      state.waiting.append(contentsOf: waiting)
      state.waitingBytes += bytes
      if state.isWriting { return .wait }
      state.isWriting = true
      return .start
    }
    switch decision {
    case .refuse:
      for completion in completions { completion(.failure(.overloaded(waitingBytesMax: Self.waitingBytesMax))) }
    case .start: queue.async { self.writeGroup() }
    case .wait: break
    }
  }

  /// Runs other work of the writer, such as trimming or clearing, between two groups.
  func perform(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  /// Runs one write transaction with the writer; only for work given to ``perform(_:)``.
  func write(
    _ body: (inout CommitWriter, any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        var failure: StorageError?
        writer.withLock { writer in
          do throws(StorageError) { try body(&writer, transaction) } catch { failure = error }
        }
        if let failure { throw failure }
      }
    } catch {
      forgetCatalog()
      throw error
    }
  }

  /// Makes sure that every commit up to `version` is in the store: waits for the group being written, if any, and
  /// makes all later ones take versions above `version`.
  ///
  /// Not to be called by the writer's own work. Cost: as long as the groups ahead in the line take, mostly nothing.
  func settle(upTo version: Int64) {
    queue.sync { raiseFloor(to: version) }
  }

  /// Waits until the writer has nothing to do and holds on to nothing any more. Nobody may submit meanwhile.
  func drain() {
    // The first waits for a group being written, the second for its look whether another one came.
    queue.sync {}
    queue.sync {}
  }

  /// The version that every later commit will be above; ``settle(upTo:)`` and each commit raise it.
  var settledVersion: Int64 { floor.load(ordering: .sequentiallyConsistent) }

  private func raiseFloor(to version: Int64) {
    floor.max(version, ordering: .sequentiallyConsistent)
  }

  /// Forgets what the writer remembers of the catalogue; for work that changed it in ``exclusively(_:)``.
  func forgetCatalog() {
    writer.withLock { $0.forgetCatalog() }
  }

  /// Writes one group and stands in line again, so that ``perform(_:)`` gets its turn under load.
  private func writeGroup() {
    guard let group = nextGroup() else { return }
    let results = write(group)
    changes.send()
    let now = Self.microseconds()
    counters.count(group: group.count)
    for (waiting, result) in zip(group, results) {
      counters.count(result, writes: waiting.member.request.writes.count, microseconds: now - waiting.since)
      waiting.completion(result)
    }
    queue.async { self.writeGroup() }
  }

  private static func microseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1000
  }

  private func nextGroup() -> [Waiting]? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isWriting = false
        return nil
      }
      let group = Array(state.waiting.prefix(Self.groupMembersMax))
      state.waiting.removeFirst(group.count)
      state.waitingBytes -= group.reduce(0) { $0 + $1.bytes }
      return group
    }
  }

  private func write(_ group: [Waiting]) -> [Result<CommitOutcome, CommitError>] {
    do throws(StorageError) {
      return try transact(group)
    } catch {
      guard group.count > 1 else { return [.failure(.storage(error))] }
      // One member may be what the engine could not take: try each alone, so that it fails alone.
      return group.map { member in
        do throws(StorageError) { return try transact([member])[0] } catch { return .failure(.storage(error)) }
      }
    }
  }

  private func transact(_ group: [Waiting]) throws(StorageError) -> [Result<CommitOutcome, CommitError>] {
    var results: [Result<CommitOutcome, CommitError>] = []
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        results.removeAll()
        var failure: StorageError?
        writer.withLock { writer in
          do throws(StorageError) {
            try writer.begin(transaction, floor: settledVersion)
            for waiting in group {
              do throws(CommitError) {
                results.append(.success(try writer.apply(waiting.member, transaction)))
              } catch {
                if case .storage(let error) = error { throw error }
                results.append(.failure(error))
              }
            }
            try writer.finish(transaction)
          } catch { failure = error }
        }
        if let failure { throw failure }
      }
      raiseFloor(to: writer.withLock { $0.lastVersion })
      return results
    } catch {
      writer.withLock { $0.forgetCatalog() }
      throw error
    }
  }
}
