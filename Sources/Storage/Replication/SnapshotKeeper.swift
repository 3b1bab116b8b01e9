import Dispatch
import Glibc
import LogEngine
package import SharedLog
import Synchronization

/// The limits that decide when a node writes a snapshot, and how much log it keeps.
package struct SnapshotSettings: Sendable {
  /// The log since the last snapshot after which a new one is written, in bytes, if that is also at least the half of the
  /// data files. Below this size, reading the log is fast enough.
  package var logBytes: Int64 = 256 << 20
  /// The time for which an owner leaves the writing to another node, in microseconds.
  package var ownerPatience: Int64 = 60_000_000
  /// The age of the entries that are kept although a snapshot has them, in microseconds. A node that was away for a shorter
  /// time loads no snapshot.
  package var keptTime: Int64 = 3_600_000_000
  /// The time between two looks at the log, in microseconds.
  package var interval: Int64 = 10_000_000

  package init() {}
}

/// The work of a node on the snapshots of its cluster, on a queue of its own.
///
/// - Each node writes a snapshot when the log since the last one is long enough. The owner waits for the others to do it.
/// - The owner removes snapshots beyond the two newest ones, parts of attempts that failed, and entries of the log that are
///   before the second newest snapshot and older than ``SnapshotSettings/keptTime``.
///
/// It never stops a node: what fails is tried again after the interval.
package final class SnapshotKeeper: Sendable {
  /// An event for the log of the server.
  package enum Event: Equatable, Sendable {
    /// A snapshot was written in so many milliseconds.
    case written(SnapshotHead, milliseconds: Int64)
    /// Something failed, for another reason than the last time.
    case failed(String)
    /// The log begins with another entry.
    case truncated(before: UInt64)
  }

  private struct State: Sendable {
    /// The newest snapshot, and the bytes of the log after it when the replica had read `logBytes`.
    var newest: SnapshotHead?
    var measured: (bytes: Int64, logBytes: Int)?
    /// The time since when a snapshot is due.
    var dueSince: Int64?
    /// The entries that this node had at some times.
    var samples: [(time: Int64, sequence: UInt64)] = []
    var lastFailure: String?
    var firstSequence: UInt64 = 0
  }

  private let member: ClusterMember
  private let tables: any SnapshotTables
  private let settings: SnapshotSettings
  private let report: @Sendable (Event) -> Void
  private let queue = DispatchQueue(label: "hearth.cluster.snapshots", qos: .utility)
  private let isStopped = Atomic<Bool>(false)
  private let state = Mutex(State())

  /// Creates a keeper that does nothing before ``start()``. `report` is called on its queue.
  package init(
    _ member: ClusterMember, _ tables: any SnapshotTables, settings: SnapshotSettings = SnapshotSettings(),
    events report: @escaping @Sendable (Event) -> Void = { _ in }
  ) {
    self.member = member
    self.tables = tables
    self.settings = settings
    self.report = report
  }

  /// Begins to work.
  package func start() { schedule() }

  /// Ends the work, and waits until it is over. A snapshot that is being written is given up. Call it before the member stops.
  package func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    queue.sync {}
  }

  private func schedule() {
    queue.asyncAfter(deadline: .now() + .microseconds(Int(settings.interval))) { [weak self] in
      guard let self, !isHalted else { return }
      work()
      schedule()
    }
  }

  private var isHalted: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

  private func work() {
    let status = member.status
    guard !status.isJoining, status.failure?.isFinal != true else { return }
    sample()
    do throws(SnapshotFailure) {
      let heads = try tables.snapshots()
      let isOwner = if case .owner = status.role { true } else { false }
      if isOwner, let session = status.session { try tidy(heads, session, status.role) }
      try writeIfDue(heads.first, isOwner: isOwner)
      state.withLock { $0.lastFailure = nil }
    } catch { note(error.text) }
  }

  private func note(_ failure: String) {
    let isNew = state.withLock { state in
      defer { state.lastFailure = failure }
      return state.lastFailure != failure
    }
    if isNew, !isHalted { report(.failed(failure)) }
  }

  // MARK: Writing

  private func writeIfDue(_ newest: SnapshotHead?, isOwner: Bool) throws(SnapshotFailure) {
    let bytes = try logBytes(after: newest)
    let limit = max(settings.logBytes, Int64(member.replica.fileBytes) / 2)
    guard bytes >= limit, member.replica.applied.sequence > newest?.position.sequence ?? 0 else {
      state.withLock { $0.dueSince = nil }
      return
    }
    let now = member.now()
    let dueSince = state.withLock { state in
      let since = state.dueSince ?? now
      state.dueSince = since
      return since
    }
    guard !isOwner || now - dueSince >= settings.ownerPatience else { return }
    write()
  }

  /// Writes a snapshot now. Other threads than that of the queue may call it in tests only.
  func write() {
    let began = member.now()
    let writer = SnapshotWriter(tables, sealed: member.replica.sealed, isCancelled: { [self] in isHalted })
    do throws(SnapshotWritingError) {
      let head = try writer.write { member.replica.sources }
      report(.written(head, milliseconds: (member.now() - began) / 1000))
    } catch {
      switch error {
      case .noClaim, .cancelled: break
      default: note(error.description)
      }
    }
  }

  /// The bytes of the log after a snapshot: measured once, and then counted.
  private func logBytes(after newest: SnapshotHead?) throws(SnapshotFailure) -> Int64 {
    let counted = member.replica.logBytes
    let known = state.withLock { state -> Int64? in
      guard state.newest == newest, let measured = state.measured, measured.logBytes <= counted else { return nil }
      return measured.bytes + Int64(counted - measured.logBytes)
    }
    if let known { return known }
    let bytes = try tables.logBytes(after: newest?.position.sequence ?? 0)
    state.withLock { ($0.newest, $0.measured, $0.dueSince) = (newest, (bytes, counted), nil) }
    return bytes
  }

  // MARK: Removing

  private func tidy(
    _ heads: [SnapshotHead], _ session: NodeSession, _ role: ClusterNode.Role
  ) throws(SnapshotFailure) {
    guard case .owner(let epoch) = role else { return }
    for head in heads.dropFirst(2) { while try tables.remove(head.id), !isHalted {} }
    while try tables.removeLeftovers(), !isHalted {}
    guard heads.count >= 2, let aged = agedSequence else { return }
    // The entry at the position of the snapshot stays: a node that loads it compares.
    let bound = min(heads[1].position.sequence, aged)
    guard bound > state.withLock({ $0.firstSequence }) else { return }
    while try tables.truncate(before: bound, by: session, epoch: epoch) { if isHalted { return } }
    state.withLock { $0.firstSequence = bound }
    report(.truncated(before: bound))
  }

  /// Notes how far this node has the log now.
  private func sample() {
    let (now, sequence) = (member.now(), member.replica.applied.sequence)
    state.withLock { state in
      state.samples.append((now, sequence))
      // One sample of the age is enough.
      while state.samples.count >= 2, now - state.samples[1].time >= settings.keptTime { state.samples.removeFirst() }
    }
  }

  /// The greatest sequence that is known to be old enough to be removed.
  private var agedSequence: UInt64? {
    let now = member.now()
    return state.withLock { state in
      state.samples.first.flatMap { now - $0.time >= settings.keptTime ? $0.sequence : nil }
    }
  }
}
