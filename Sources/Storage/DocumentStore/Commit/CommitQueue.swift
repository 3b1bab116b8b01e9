import Basics
import Dispatch
import DocumentModel
import Glibc
import KeyValue
import Synchronization

/// The pipeline through which all commits of a database reach its single writer.
///
/// A commit passes these steps in order:
///
/// 1. Submit: the caller's thread, or a background thread for a large commit, plans the commit against a snapshot
///    (``CommitPlan``) and calls ``submit(_:completions:)``, which appends it to the queue. If ``unfinishedBytesMax``
///    would be exceeded, the commit fails at once.
/// 2. Group: the writer thread takes up to ``groupMembersMax`` waiting commits, of about ``groupBytesMax`` at most, and
///    opens one write transaction for them.
/// 3. Validate: for each commit in turn, ``CommitWriter`` checks the transaction's reads for conflicts. It also checks
///    that the documents and indexes used by the plan are unchanged; otherwise it plans the commit again inside the
///    transaction. A commit that fails here does not affect the others.
/// 4. Write: the commit gets the next version. Its documents, index entries, before-images and change-log rows are
///    written.
/// 5. Sync: the store commits the transaction, which is durable when ``KeyValueStore/write(_:)`` returns. If it
///    fails, the writer retries each commit of the group alone.
/// 6. Publish: the writer notifies ``changes``, then calls each completion, then starts the next group.
///
/// The writer thread comes from the system's pool and is used only while commits wait. While it syncs, the next
/// group gathers; so the number of syncs per commit falls as the load rises, and no commit waits for a timer.
final class CommitQueue: Sendable {
  /// Called once per commit, after it is durable or has failed: on the writer's thread, or on the submitting thread if
  /// the queue is full.
  typealias Completion = @Sendable (Result<CommitOutcome, CommitError>) -> Void

  private struct Waiting: Sendable {
    var member: CommitWriter.Member
    var bytes: Int
    /// When the commit was submitted, in microseconds of the monotonic clock.
    var since: Int
    var completion: Completion
  }

  private struct State {
    var waiting: [Waiting] = []
    var isWriting = false
  }

  /// The most bytes that the unfinished commits of all databases and their plans may take. Commits above it fail at
  /// once. The plans of large commits may exceed it; ``LargeCommits`` limits them.
  static let unfinishedBytesMax = 96 << 20
  /// The memory of the unfinished commits of all databases of the process.
  static let processMemory = MemoryShare(bytesMax: unfinishedBytesMax)
  /// The size of a group at which no further commit joins it, in bytes. The engine keeps the pages that a group changes
  /// in memory until it is written.
  static let groupBytesMax = 16 << 20
  /// The most commits in one group. A limit lets the first commits of a long queue finish before the last are written.
  static let groupMembersMax = 2048

  /// Notifies observers after each durable group.
  let changes = ChangeSignal()
  private let store: any KeyValueStore
  private let state = Mutex(State())
  private let writer: Mutex<CommitWriter>
  private let queue: DispatchQueue
  /// No commit may take a version at or below this one: a reader may have seen the state at this version.
  private let floor = Atomic<Int64>(Int64.min)
  private let counters: CommitCounters
  /// The memory of unfinished commits, which databases share.
  let memory: MemoryShare

  /// Creates an empty queue. `use` limits the growth of the documents.
  init(
    store: any KeyValueStore, indexCache: IndexCatalogCache, label: String, counters: CommitCounters,
    use: DocumentUse? = nil, memory: MemoryShare = CommitQueue.processMemory
  ) {
    self.store = store
    self.memory = memory
    self.counters = counters
    writer = Mutex(CommitWriter(indexCache: indexCache, use: use))
    queue = DispatchQueue(label: label)
  }

  /// Appends commits to the queue, next to each other. Each succeeds or fails on its own.
  ///
  /// The caller has taken the bytes of the requests from ``memory``. This function takes those of the plans, even if too
  /// few are left for the plans of large commits. The queue gives both back.
  func submit(_ members: [CommitWriter.Member], completions: [Completion], areLarge: Bool = false) {
    let now = Self.microseconds()
    let waiting = zip(members, completions).map { member, completion in
      Waiting(
        member: member, bytes: member.request.bytes + (member.plan?.bytes ?? 0), since: now, completion: completion)
    }
    let planBytes = members.reduce(0) { $0 + ($1.plan?.bytes ?? 0) }
    if areLarge {
      memory.change(by: planBytes)
    } else if !memory.take(planBytes) {
      memory.give(waiting.reduce(0) { $0 + $1.bytes } - planBytes)
      return refuse(completions)
    }
    let isFirst = state.withLock { state in
      state.waiting.append(contentsOf: waiting)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if isFirst { queue.async { self.writeGroup() } }
  }

  /// Fails commits because too many are unfinished.
  func refuse(_ completions: [Completion]) {
    for completion in completions { completion(.failure(.overloaded(waitingBytesMax: memory.bytesMax))) }
  }

  /// Runs other work on the writer's thread, such as trimming or clearing, between two groups.
  func perform(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  /// Runs one write transaction with the commit writer. Call it only from work given to ``perform(_:)``.
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

  /// Waits for the group being written, if any, and gives all later commits versions above `version`. So every
  /// commit up to `version` is in the store when this function returns.
  ///
  /// The writer's own work must not call it. Cost: waits for the work already queued, usually none.
  func settle(upTo version: Int64) {
    queue.sync { raiseFloor(to: version) }
  }

  /// Waits until the writer is idle and holds no reference to the store. No caller may submit commits meanwhile.
  func drain() {
    // The first waits for a group being written, the second for the check for another group that follows it.
    queue.sync {}
    queue.sync {}
  }

  /// The version that all later commits will be above. ``settle(upTo:)`` and each commit raise it.
  var settledVersion: Int64 { floor.load(ordering: .sequentiallyConsistent) }

  private func raiseFloor(to version: Int64) {
    floor.max(version, ordering: .sequentiallyConsistent)
  }

  /// Drops the writer's cached catalog; for work given to ``perform(_:)`` that changed the catalog itself.
  func forgetCatalog() {
    writer.withLock { $0.forgetCatalog() }
  }

  /// Writes one group, then queues itself again, so ``perform(_:)`` gets its turn under load.
  private func writeGroup() {
    guard let group = nextGroup() else { return }
    let results = write(group)
    changes.send()
    let now = Self.microseconds()
    counters.count(group: group.count)
    for (waiting, result) in zip(group, results) {
      counters.count(result, writes: waiting.member.request.writes.count, microseconds: now - waiting.since)
      memory.give(waiting.bytes)
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
      let waiting = state.waiting.prefix(Self.groupMembersMax)
      var bytes = 0
      let end = waiting.firstIndex { member in
        defer { bytes += member.bytes }
        return bytes >= Self.groupBytesMax
      }
      let group = Array(waiting[..<(end ?? waiting.endIndex)])
      state.waiting.removeFirst(group.count)
      return group
    }
  }

  private func write(_ group: [Waiting]) -> [Result<CommitOutcome, CommitError>] {
    do throws(StorageError) {
      return try transact(group)
    } catch {
      guard group.count > 1 else { return [.failure(.storage(error))] }
      // A single member may have caused the failure: try each alone, so that only that one fails.
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
      raiseFloor(
        to: writer.withLock { writer in
          writer.noteCommitted()
          return writer.lastVersion
        })
      return results
    } catch {
      writer.withLock { $0.rollBack() }
      throw error
    }
  }
}
