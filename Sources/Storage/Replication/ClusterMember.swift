import Dispatch
import Glibc
import KeyValue
package import LogEngine
package import SharedLog
import Synchronization

/// A node of a cluster at work: it runs a ``ClusterNode`` with threads and a clock, and applies the log to its
/// ``Replica``.
///
/// - Sessions, observations and appends have a queue each, so that none waits for another. The writer of a store performs
///   its own append.
/// - `applying` applies the entries in order. The next observation waits until everything is applied, so that few entries
///   are in memory.
/// - Events are called on a queue of their own, in order, each after the entries before it are applied.
///
/// Order of locks: the writer of a store, the turn to append, the state of the member, the state of the replica.
package final class ClusterMember: Sendable {
  /// A change of the part of this node.
  package enum Event: Equatable, Sendable {
    /// This node owns the project in an epoch: open the stores with ``ClusterMember/store(_:)``, and give commits
    /// versions above the floor, in microseconds since 1970.
    case becameOwner(epoch: UInt64, floor: Int64)
    /// This node is not the owner any more. The stores that it opened as the owner fail.
    case steppedDown
    /// Another owner is known, which may be this node, or none is.
    case ownerChanged(NodeSession?)
    /// PostgreSQL had lost so many of the newest entries at most, and this node, the owner, has appended them again.
    case healed(Int)
    /// The replica is loaded anew from a snapshot; see ``JoinEvent``.
    case join(JoinEvent)
    /// The replica cannot be used. The node does nothing more, and the process should stop with the explanation.
    case broken(ReplicaError)
  }

  /// The state of a member.
  package struct Status: Equatable, Sendable {
    package var role: ClusterNode.Role
    /// The position up to which the replica has the log.
    package var applied: LogPosition
    /// The owner, if it is known.
    package var owner: NodeSession?
    /// The session of this node, if it has one.
    package var session: NodeSession?
    /// The time for which this node may answer reads as the owner, in microseconds.
    package var leaseRemaining: Int64
    /// The time since the tables answered last, in microseconds; `nil` before the first answer.
    package var silence: Int64?
    /// Why the replica could not be written or used, if it is so now.
    package var failure: ReplicaError?
    /// Whether the replica is loaded anew.
    package var isJoining = false
  }

  /// The times of a member besides those of the protocol, in microseconds.
  package struct Patience: Sendable {
    /// The time after which a commit fails with an unknown outcome.
    package var commit: Int64 = 10_000_000
    /// The longest wait of ``ClusterMember/stop()`` for the handover.
    package var handover: Int64 = 3_000_000

    package init() {}
  }

  /// The number of this node.
  package let number: UInt32
  let tables: any SharedTables
  let replica: Replica
  let patience: Patience
  let now: @Sendable () -> Int64
  let state: Mutex<State>
  /// The entries that this node sends to others while it owns the project.
  package let feed = EntryFeed()
  /// Held by the writer that appends.
  let turn = Mutex<Void>(())
  /// The position at which the replica is to halt, and its sequence, or the greatest number without one.
  let logStop = Mutex<LogStop?>(nil)
  let stopSequence = Atomic(UInt64.max)
  /// Whether entries are being applied.
  let isApplying = Atomic(false)
  /// The sequence of an entry that the log has, but whose writer has not made it readable yet, or 0.
  let unpublished = Atomic<UInt64>(0)
  /// Whether the threads must do nothing more.
  let isHalted = Atomic<Bool>(false)
  private let sessions = RequestLine("hearth.cluster.sessions")
  private let observations = RequestLine("hearth.cluster.observations")
  private let appends = RequestLine("hearth.cluster.appends")
  /// Loads the replica anew, if the node can.
  let joining: Joining?
  let applying = DispatchQueue(label: "hearth.cluster.applying")
  let events = DispatchQueue(label: "hearth.cluster.events")
  private let ticks = DispatchQueue(label: "hearth.cluster.ticks")
  private let tickMicroseconds: Int
  let report: @Sendable (Event) -> Void
  private let noteApplied: @Sendable (Set<StoreName>) -> Void
  /// The sequence up to which entries are applied and `noteApplied` was called.
  let noted = Atomic<UInt64>(0)
  /// The greatest sequence that a data file had when the replica was opened. Before it, a store can have later entries than
  /// others, and entries that the log lost.
  let mark: Atomic<UInt64>
  /// The newest positions up to ``noted``.
  let positions = Mutex(AppliedPositions())

  /// The part of a member that its threads share.
  struct State: Sendable {
    var node: ClusterNode
    /// The lease of the epoch in which this node is the owner.
    var lease: EpochLease?
    /// The same, after the entries up to the takeover are applied.
    var serving: EpochLease?
    var owner: NodeSession?
    /// The commit whose writer waits.
    var commit: Commit?
    var failure: ReplicaError?
    var lastAnswer: Int64?
    /// Whether the replica is loaded anew, and nothing is applied.
    var isJoining = false
  }

  /// A commit whose writer waits.
  struct Commit: Sendable {
    let position: LogPosition
    let bytes: Int
    /// The request that the writer performs next.
    var next: (request: TableRequest, number: Int)?
    var fate: ClusterNode.CommitFate?
  }

  /// Creates a member that does nothing before ``start()``.
  /// - Parameters:
  ///   - number: the number of the node, which no other node has.
  ///   - tables: the tables of the cluster, whose log has the secret of the replica.
  ///   - joining: the snapshots with which the replica is loaded anew. Without them, a node that cannot continue is
  ///     ``Event/broken(_:)``.
  ///   - now: a clock in microseconds that does not stop while the machine sleeps.
  ///   - applied: is called with the stores that entries of other nodes changed, after each group of entries, on the thread
  ///     that applies them. The next entries wait for it.
  ///   - events: is called with each event, one at a time. It may block, and may use the member, but not stop it.
  package init(
    number: UInt32, tables: any SharedTables, replica: Replica, timing: ClusterTiming = ClusterTiming(),
    patience: Patience = Patience(), joining: Joining? = nil, now: @escaping @Sendable () -> Int64 = BootTime.now,
    applied noteApplied: @escaping @Sendable (Set<StoreName>) -> Void = { _ in },
    events report: @escaping @Sendable (Event) -> Void
  ) {
    self.number = number
    self.tables = tables
    self.replica = replica
    self.patience = patience
    self.joining = joining
    self.now = now
    self.report = report
    self.noteApplied = noteApplied
    tickMicroseconds = Int(max(2_000, min(25_000, timing.poll / 10)))
    let node = ClusterNode(
      number: number, after: replica.applied, mark: replica.lastMark, secret: replica.secret,
      renewal: .random(in: 0..<1 << 62), timing: timing)
    state = Mutex(State(node: node))
    mark = Atomic(replica.lastMark.sequence)
    replica.connect(self)
  }

  /// Begins to work.
  package func start() {
    joinIfNew()
    ticks.async { [weak self] in self?.tick() }
  }

  /// Opens a store of the project in the current epoch, creating it if it does not exist.
  /// - Throws: ``ReplicaError/storage(_:)`` with ``StorageError/notOwner(of:owner:)`` if this node is not the owner;
  ///   ``ReplicaError`` if the store cannot be opened.
  package func store(_ name: StoreName) throws(ReplicaError) -> ReplicatedStore {
    guard let lease = state.withLock({ $0.serving }), !isHalted.load(ordering: .sequentiallyConsistent) else {
      throw .storage(.notOwner(of: name.text, owner: nil))
    }
    return try replica.store(name, in: lease)
  }

  /// The state of this member.
  package var status: Status {
    state.withLock { state in
      Status(
        role: state.node.role, applied: replica.applied, owner: state.owner, session: state.node.lease.session,
        leaseRemaining: state.lease?.remaining ?? 0, silence: state.lastAnswer.map { now() - $0 },
        failure: state.failure, isJoining: state.isJoining)
    }
  }

  /// Sets whether this node may become the owner. An owner remains one; see ``handOver()``.
  package func setMayOwn(_ mayOwn: Bool) { state.withLock { $0.node.mayOwn = mayOwn } }

  /// Gives the project away if this node owns it. Does not wait. Unless ``setMayOwn(_:)`` forbids it, this node may be
  /// the next owner.
  package func handOver() {
    state.withLock { state in
      take(state.node.handOver(at: now()), &state)
    }
  }

  // MARK: Streams to and from other nodes

  /// Takes entries that the owner sent. The caller bounds the entries that are not applied yet; see ``afterApplying(_:)``.
  package func follow(_ entries: [SharedEntry]) {
    state.withLock { state in
      guard !isHalted.load(ordering: .sequentiallyConsistent) else { return }
      take(state.node.follow(entries), &state)
    }
  }

  /// Notes that the owner ended its stream of entries, so that a handover is noticed soon.
  package func noteStreamEnded() { state.withLock { $0.node.hurry(at: now()) } }

  /// Calls `action` when everything that was taken before is applied. On the queue that applies: it must return quickly.
  package func afterApplying(_ action: @escaping @Sendable () -> Void) {
    applying.async { [self] in
      // Nothing is half applied here.
      let applied = replica.applied
      positions.withLock { if !$0.isLast(applied) { $0.append(applied) } }
      noted.store(applied.sequence, ordering: .sequentiallyConsistent)
      action()
    }
  }

  /// Whether every entry up to a sequence is applied, and those who must know of it know it. If not, the entry may still be
  /// applied soon; see ``afterApplying(_:)``. Cost: a load, and one lock.
  package func hasApplied(upTo sequence: UInt64) -> Bool {
    noted.load(ordering: .sequentiallyConsistent) >= sequence && state.withLock { $0.failure == nil }
  }

  /// Whether reads show every entry up to a sequence, as ``hasApplied(upTo:)``, and no entry that the log may have lost. Cost:
  /// two loads, and one lock.
  package func shows(upTo sequence: UInt64) -> Bool {
    hasApplied(upTo: max(sequence, mark.load(ordering: .sequentiallyConsistent)))
  }

  /// Compares the replica with an index of the owner. Cost: two loads, and two locks.
  package func comparison(with index: ReadIndex) -> ReadIndex.Comparison {
    let comparison = positions.withLock { $0.comparison(with: index.position) }
    return comparison == .reached && !shows(upTo: index.position.sequence) ? .ahead : comparison
  }

  /// Returns the position that a read of another node must show to be as new as one at this node, or `nil` if this node is
  /// not the owner: every commit that was acknowledged before this call is at or below it.
  package func readPosition(in epoch: UInt64) -> LogPosition? {
    // First the position, then the lease: after a pause between the two the answer is `nil`, not an old position.
    let head = feed.headPosition
    guard let lease = state.withLock({ $0.serving }), lease.epoch == epoch, lease.holds else { return nil }
    return head
  }

  /// Returns the lease of an epoch in which this node is the owner, or `nil` if it is not.
  package func lease(of epoch: UInt64) -> EpochLease? {
    state.withLock { $0.serving }.flatMap { $0.epoch == epoch ? $0 : nil }
  }

  /// Notes that another node says that it owns the project in an epoch. If this node owned it in an earlier one, it does
  /// not any more.
  package func noteOwner(in epoch: UInt64) {
    state.withLock { state in
      guard !isHalted.load(ordering: .sequentiallyConsistent) else { return }
      take(state.node.noteOwner(in: epoch, at: now()), &state)
    }
  }

  // MARK: The end

  /// Gives the project away if this node owns it, and closes the replica, so that its files can be served alone. Do not
  /// call it on the queue of events.
  ///
  /// If the tables do not answer, it takes as long as ``Patience/handover`` and the requests that are under way.
  /// - Throws: ``ReplicaError/storage(_:)`` if a data file cannot be written. It is as after a crash then.
  package func stop() throws(ReplicaError) {
    setMayOwn(false)
    handOver()
    let deadline = now() + patience.handover
    while state.withLock({ $0.node.role != .follower && $0.failure?.isFinal != true }), now() < deadline { usleep(500) }
    halt()
    try replica.close()
  }

  /// Ends all work without a word to the other nodes, and leaves the data files as a crash would. Do not call it on the
  /// queue of events.
  package func abandon() {
    halt()
    replica.abandon()
  }

  private func halt() {
    isHalted.store(true, ordering: .sequentiallyConsistent)
    state.withLock { endEpoch(&$0) }
    ticks.sync {}
    for channel in [sessions, observations, appends] { channel.wait() }
    applying.sync {}
    events.sync {}
  }

  // MARK: Requests

  private func tick() {
    guard !isHalted.load(ordering: .sequentiallyConsistent) else { return }
    let readable = feed.readable
    state.withLock { state in
      state.node.readable = readable
      take(state.node.tick(at: now(), mayRenew: sessions.isIdle, mayObserve: observations.isIdle), &state)
    }
    ticks.asyncAfter(deadline: .now() + .microseconds(tickMicroseconds)) { [weak self] in self?.tick() }
  }

  private func send(_ request: TableRequest, _ number: Int) {
    let channel =
      switch request {
      case .beginSession, .renew: sessions
      case .observe, .takeOver: observations
      case .append, .settle: appends
      }
    channel.run { [self] in
      guard !isHalted.load(ordering: .sequentiallyConsistent) else { return }
      if case .observe = request { applying.sync {} }
      let reply = tables.perform(request)
      if reply == nil { usleep(Self.lostPause) }
      receive(reply, number)
    }
  }

  /// The pause after a lost answer, in microseconds: the tables may refuse connections at once.
  private static let lostPause: UInt32 = 50_000

  private func receive(_ reply: TableReply?, _ number: Int) {
    state.withLock { state in
      guard !isHalted.load(ordering: .sequentiallyConsistent) else { return }
      if reply != nil { state.lastAnswer = now() }
      take(state.node.receive(reply, to: number, at: now()), &state)
    }
  }

  // MARK: Actions

  /// Carries out what the node wants. Holds the lock of the state, so that everything gets to its queue in order.
  func take(_ actions: [ClusterNode.Action], _ state: inout State) {
    // An adoption follows the entry of the takeover.
    var last: SharedEntry?
    for action in actions {
      switch action {
      case .perform(let request, let number):
        if let commit = state.commit, Self.position(of: request) == commit.position {
          state.commit?.next = (request, number)
        } else {
          send(request, number)
        }
      case .apply(let entries):
        last = entries.last
        // The writer of an own commit has it in its memtable. But one of a node that is not the owner any more arrives
        // like those of others, perhaps before its writer knows the outcome.
        if let commit = state.commit, actions.contains(.report(.appended(commit.position))) {
          noteOwn(commit)
          for entry in entries { feed.append(entry) }
        } else {
          applying.async { self.apply(entries) }
        }
      case .report(let fate): state.commit?.fate = fate
      case .adopt(let epoch, let floor):
        if let last { adopt(epoch, floor, takeover: last, &state) }
      case .healed(let count): post(.healed(count))
      case .rejoin(.truncated): fail(.truncated, &state)
      case .rejoin(.diverged): fail(.diverged, &state)
      case .stepDown, .tell: break
      }
    }
    follow(&state)
  }

  /// The position of the entry that a request appends or settles.
  private static func position(of request: TableRequest) -> LogPosition? {
    switch request {
    case .append(let entry, _): entry.position
    case .settle(let position): position
    default: nil
    }
  }

  private func noteOwn(_ commit: Commit) {
    if replica.note(commit.position, bytes: commit.bytes) { applying.async { self.replica.moveMarksIfDue() } }
  }

  private func adopt(_ epoch: UInt64, _ floor: Int64, takeover: SharedEntry, _ state: inout State) {
    let lease = EpochLease(epoch: epoch, until: state.node.lease.until, now: now)
    state.lease = lease
    applying.async { [self] in
      let isServing = self.state.withLock { state in
        guard state.lease === lease else { return false }
        state.serving = lease
        feed.begin(with: takeover)
        return true
      }
      if isServing { events.async { self.report(.becameOwner(epoch: epoch, floor: floor)) } }
    }
  }

  /// Makes the lease and the known owner those of the node.
  private func follow(_ state: inout State) {
    if case .owner(let epoch) = state.node.role, let lease = state.lease, lease.epoch == epoch {
      lease.extend(until: state.node.lease.until)
    } else {
      endEpoch(&state)
    }
    let owner = state.node.knownOwner
    guard owner != state.owner else { return }
    state.owner = owner
    post(.ownerChanged(owner))
  }

  func endEpoch(_ state: inout State) {
    state.lease?.end()
    feed.end()
    state.lease = nil
    guard state.serving != nil else { return }
    state.serving = nil
    post(.steppedDown)
  }

  /// Calls an event after everything before it is applied.
  func post(_ event: Event) {
    applying.async { self.events.async { self.report(event) } }
  }

  private func fail(_ error: ReplicaError, _ state: inout State) {
    guard state.failure?.isFinal != true, !rejoin(after: error, &state) else { return }
    state.failure = error
    isHalted.store(true, ordering: .sequentiallyConsistent)
    endEpoch(&state)
    post(.broken(error))
  }

  // MARK: Applying

  /// Applies entries, and halts between two of them if it is to.
  private func apply(_ entries: [SharedEntry]) {
    let stop = stopSequence.load(ordering: .sequentiallyConsistent)
    guard let place = entries.firstIndex(where: { $0.position.sequence == stop }), place < entries.count - 1 else {
      return applyTogether(entries)
    }
    applyTogether(Array(entries[...place]))
    applyTogether(Array(entries[(place + 1)...]))
  }

  /// Applies entries, again and again while the data files cannot be written.
  private func applyTogether(_ entries: [SharedEntry]) {
    while true {
      // A member that stops applies what it took, but does not wait for a disk.
      if let failure = state.withLock({ $0.failure }), failure.isFinal { return }
      do throws(ReplicaError) {
        let changed = try applyToStores(entries)
        if !changed.isEmpty { noteApplied(changed) }
        positions.withLock { positions in for entry in entries { positions.append(entry.position) } }
        if let last = entries.last { noted.store(last.position.sequence, ordering: .sequentiallyConsistent) }
        state.withLock { if let failure = $0.failure, !failure.isFinal { $0.failure = nil } }
        if let last = entries.last { haltIfDue(at: last.position.sequence) }
        return
      } catch {
        state.withLock { state in
          if error.isFinal { fail(error, &state) } else { state.failure = error }
        }
        if error.isFinal || isHalted.load(ordering: .sequentiallyConsistent) { return }
      }
      usleep(Self.applyPause)
    }
  }

  private func applyToStores(_ entries: [SharedEntry]) throws(ReplicaError) -> Set<StoreName> {
    isApplying.store(true, ordering: .sequentiallyConsistent)
    defer { isApplying.store(false, ordering: .sequentiallyConsistent) }
    return try replica.apply(entries)
  }

  /// The time before entries are applied again, in microseconds.
  private static let applyPause: UInt32 = 250_000
}
