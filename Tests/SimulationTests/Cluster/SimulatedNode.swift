import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import TestSupport

/// A node of a ``SimulatedCluster``: the protocol, a replica, and the service that it offers as the owner or as a
/// follower. It replaces a ``ClusterMember`` and the parts of a server around it, which have threads, sockets and clocks
/// of the system.
///
/// Unchecked, because either the thread of the simulation uses it or a ``ParkingThread``, never both.
final class SimulatedNode: ProjectLog, @unchecked Sendable {
  /// A commit whose writer has parked.
  private struct Append {
    let position: LogPosition
    let bytes: Int
    let since: Int64
    let thread: ParkingThread
    var fate: ClusterNode.CommitFate?
  }

  /// Something that waits until the entries before it are applied.
  private enum Pending {
    case entries([SharedEntry])
    case ownership(EpochLease, takeover: SharedEntry, floor: Int64)
  }

  let number: Int
  private unowned let cluster: SimulatedCluster
  /// The clock that does not stop: its rate, and its time at the start of the run.
  private let rate: Double
  private let offset: Int64
  /// The difference between its time of day and that of the tables.
  private let skew: Int64
  /// The number of its starts. Messages to an earlier life are lost.
  private(set) var life = 0
  var isPaused = false
  private(set) var machine: ClusterNode
  private(set) var replica: Replica
  /// The data file, which survives the node.
  private var base: LMDBStore?
  private var queues = SteppedQueues(seed: 0)
  private let gate = NodeGate()
  private var feed = EntryFeed()
  private var positions = AppliedPositions()
  private var pending: [Pending] = []
  private var sent: [Int: Int64] = [:]
  private var append: Append?
  /// The entries that are not sent to the followers yet.
  private var unsent: [SharedEntry] = []
  private var lease: EpochLease?
  private var serving: EpochLease?
  private(set) var owned: SimulatedService?
  private(set) var followed: SimulatedService?
  /// Counts the services, so that a client notices that its own is gone.
  private(set) var services = 0
  private var isAsking = false

  init(_ number: Int, _ cluster: SimulatedCluster) throws {
    self.number = number
    self.cluster = cluster
    rate = Double.random(in: 0.955...1.045, using: &cluster.random)
    offset = Int64.random(in: 0...1_000_000_000, using: &cluster.random)
    skew = cluster.random.pick([-450_000, 0, 450_000])
    machine = ClusterNode(number: UInt32(number), after: LogPosition(), secret: SimulatedCluster.secret, renewal: 0)
    replica = try Replica(
      ReplicaFiles(existing: []) { (_) throws(StorageError) in throw .notOwner(of: "none", owner: nil) },
      secret: SimulatedCluster.secret)
    gate.node = self
    try start()
  }

  /// The time of the clock that does not stop.
  var clock: Int64 { Int64(Double(cluster.now) * rate) + offset }
  /// The time of day, in microseconds since 1970.
  var timeOfDay: Int64 { SimulatedCluster.origin + cluster.now + skew }
  /// The service that answers clients, if there is one.
  var service: SimulatedService? { owned ?? followed }
  /// Whether a writer has parked.
  var isAppending: Bool { append != nil }

  // MARK: Lives

  private func start() throws {
    life += 1
    isPaused = false
    (feed, positions, pending, sent, unsent) = (EntryFeed(), AppliedPositions(), [], [:], [])
    queues = SteppedQueues(seed: cluster.random.next())
    let files = ReplicaFiles(existing: base == nil ? [] : [SimulatedCluster.store]) {
      // The replica keeps this function.
      [weak self] (_) throws(StorageError) in
      let opened = if let base = self?.base { base } else { try LMDBStore.open(.inMemory(mapBytes: 64 << 20)) }
      self?.base = opened
      return opened
    }
    var settings = Replica.Settings()
    // Tables of some commits, so that a kill loses some and keeps others.
    settings.store.memtableBytesMax = 6_000
    settings.store.flushesInline = true
    settings.logBytesPerMark = 10_000
    replica = try Replica(files, secret: SimulatedCluster.secret, settings: settings)
    replica.connect(self)
    machine = ClusterNode(
      number: UInt32(number), after: replica.applied, mark: replica.lastMark, secret: SimulatedCluster.secret,
      renewal: UInt64(life) << 32)
  }

  /// Ends the node as a crash does. Only its data file is left.
  func end() throws {
    life += 1
    retire(owned: true, followed: true)
    // The process is gone in the middle of its writer's work. Here the thread must return, and release its locks.
    while let append {
      self.append = nil
      try finish(append.thread.resume(), append.thread)
    }
    replica.abandon()
    queues.end()
    gate.forgetAll()
    (isAsking, lease, serving) = (false, nil, nil)
  }

  /// Kills the node and starts it again with its data file.
  func restart() throws {
    try end()
    try start()
  }

  /// Replaces the replica by a snapshot, which another node wrote after some entry of the log.
  func loadAnew() throws {
    cluster.noteLoading(self)
    try end()
    base = nil
    try start()
    let line = cluster.witness.line
    let least = min(Int(cluster.firstSequence) - 1, line.count)
    let entries = Array(line.prefix(Int.random(in: least...line.count, using: &cluster.random)))
    try replica.apply(entries)
    machine = ClusterNode(
      number: UInt32(number), after: entries.last?.position ?? LogPosition(), secret: SimulatedCluster.secret,
      renewal: UInt64(life) << 32)
  }

  // MARK: Time

  /// Does what is due.
  func tick() throws {
    for (request, since) in sent.sorted(by: { $0.key < $1.key }) where cluster.now - since > 1_500_000 {
      try receive(nil, to: request)
    }
    machine.readable = feed.readable
    try perform(machine.tick(at: clock))
    if let append, cluster.now - append.since > SimulatedCluster.patience { try giveUp() }
    gate.expire(at: cluster.now)
  }

  /// Lets the timers of the service run.
  func advance(seconds: Int) { queues.advance(seconds: seconds) }

  /// Runs one piece of work of the service. Returns `false` if none waits.
  func work() throws -> Bool {
    guard queues.waiting > 0 else { return false }
    let didWork = Atomic(false)
    try run { [queues] in didWork.store(queues.step(), ordering: .sequentiallyConsistent) }
    return didWork.load(ordering: .sequentiallyConsistent)
  }

  /// Runs work that may append to the log.
  private func run(_ work: @escaping @Sendable () -> Void) throws {
    let thread = cluster.takeThread()
    cluster.running = thread
    try finish(thread.run(work), thread)
  }

  private func finish(_ progress: ParkingThread.Progress, _ thread: ParkingThread) throws {
    cluster.running = nil
    if progress == .finished { cluster.giveBack(thread) }
    if let failure = cluster.failure { throw failure }
  }

  // MARK: The protocol

  func receive(_ reply: TableReply?, to request: Int) throws {
    sent[request] = nil
    try perform(machine.receive(reply, to: request, at: clock))
  }

  func follow(_ entry: SharedEntry) throws { try perform(machine.follow([entry])) }

  func noteOwner(in epoch: UInt64) throws { try perform(machine.noteOwner(in: epoch, at: clock)) }

  func hurry() { machine.hurry(at: clock) }

  func handOver() throws { try perform(machine.handOver(at: clock)) }

  private func perform(_ actions: [ClusterNode.Action]) throws {
    try take(actions)
    try continueWriter()
    try applyPending()
  }

  private func take(_ actions: [ClusterNode.Action]) throws {
    var last: SharedEntry?
    for action in actions {
      switch action {
      case .perform(let request, let number):
        sent[number] = cluster.now
        cluster.ask(request, number, of: self)
      case .apply(let entries):
        last = entries.last
        // As in a member: the writer of an own commit has it in its memtable.
        if let append, actions.contains(.report(.appended(append.position))) {
          replica.note(append.position, bytes: append.bytes)
          for entry in entries { feed.append(entry) }
          unsent += entries
        } else {
          pending.append(.entries(entries))
        }
      case .report(let fate): append?.fate = fate
      case .adopt(let epoch, let floor):
        guard let last else { continue }
        let until = cluster.fault == .leaseNeverEnds ? Int64.max : machine.lease.until
        let lease = EpochLease(epoch: epoch, until: until) { [self] in clock }
        self.lease = lease
        pending.append(.ownership(lease, takeover: last, floor: floor))
      case .rejoin(.truncated): return try loadAnew()
      case .rejoin(.diverged): throw Difference("node \(number) diverged")
      case .stepDown, .tell, .healed: break
      }
    }
    followRole()
  }

  /// Makes the lease that of the protocol.
  private func followRole() {
    if case .owner(let epoch) = machine.role, let lease, lease.epoch == epoch {
      if cluster.fault != .leaseNeverEnds { lease.extend(until: machine.lease.until) }
    } else if let ended = lease {
      if cluster.fault != .leaseNeverEnds { ended.end() }
      feed.end()
      lease = nil
      guard serving != nil else { return }
      serving = nil
      // A server learns it on another thread, so its service refuses clients for a while before it is gone.
      cluster.postLocally(to: self) { [self] in if serving == nil { retire(owned: true, followed: false) } }
    }
  }

  /// Continues the writer whose commit is certain.
  private func continueWriter() throws {
    guard let append, append.fate != nil else { return }
    cluster.running = append.thread
    try finish(append.thread.resume(), append.thread)
  }

  /// Gives up a commit that takes too long: the writer learns that its outcome is unknown, and the node is the owner no
  /// more. The protocol finds out whether the log has the entry.
  private func giveUp() throws {
    append?.fate = .unknown
    try take(machine.handOver(at: clock))
    try continueWriter()
  }

  /// Applies what can be applied. The writer of the store may hold its lock.
  private func applyPending() throws {
    while append == nil, !pending.isEmpty {
      switch pending.removeFirst() {
      case .entries(let entries):
        for entry in entries { try cluster.checkApplied(entry, by: self) }
        let changed = try replica.apply(entries)
        if !changed.isEmpty, let followed, cluster.fault != .commitsNotNoted {
          for database in followed.databases.openDatabases { _ = try database.noteApplied() }
        }
        for entry in entries { positions.append(entry.position) }
        gate.noteApplied(comparedBy: { [self] in comparison(with: $0) })
      case .ownership(let lease, let takeover, let floor):
        guard self.lease === lease else { continue }
        serving = lease
        feed.begin(with: takeover)
        send(takeover)
        retire(owned: true, followed: true)
        try openAsOwner(lease, floor)
      }
    }
  }

  // MARK: The log of the writer

  /// Called on the thread of the writer, which parks until the outcome is certain.
  func append(_ body: [UInt8], of store: StoreName, in lease: EpochLease) throws(StorageError) -> LogPosition {
    guard serving === lease, machine.acceptsCommits(at: clock), let thread = cluster.running else {
      throw .notOwner(of: store.text, owner: nil)
    }
    let actions = machine.submit(body, at: clock)
    guard let position = machine.appending else { throw .notOwner(of: store.text, owner: nil) }
    append = Append(position: position, bytes: body.count, since: cluster.now, thread: thread)
    do { try take(actions) } catch { cluster.failure = error }
    let life = life
    thread.park()
    // A killed node has no commit any more.
    let fate = life == self.life ? append?.fate : nil
    if life == self.life { append = nil }
    switch fate {
    case .appended(let position): return position
    case .notOwner: throw .notOwner(of: store.text, owner: nil)
    case .unknown, nil: throw .outcomeUnknown(path: store.text, detail: "the simulation ended the wait")
    }
  }

  func noteReadable(_ position: LogPosition) {
    feed.noteReadable(position.sequence)
    while let next = unsent.first, next.position.sequence <= position.sequence { send(unsent.removeFirst()) }
  }

  private func send(_ entry: SharedEntry) {
    for other in cluster.nodes where other !== self {
      cluster.post(to: other) { try other.follow(entry) }
    }
  }

  // MARK: Services

  private func openAsOwner(_ lease: EpochLease, _ floor: Int64) throws {
    let (life, replica, queues) = (life, replica, queues.queues)
    try run { [self] in
      do {
        let store = try replica.store(SimulatedCluster.store, in: lease)
        let registry = DatabaseRegistry(
          clock: Clock { [self] in timeOfDay }, idleSeconds: nil, queues: queues,
          floor: cluster.fault == .floorIgnored ? nil : floor
        ) { (_) throws(StorageError) in store }
        let opened = try SimulatedService(databases: registry, store: store)
        _ = try registry.database(opened.id)
        guard self.life == life, serving === lease else { return }
        owned = opened
        services += 1
      } catch {
        // It could not write what an owner writes first.
        switch error {
        case StorageError.notOwner, StorageError.outcomeUnknown, ReplicaError.storage(.notOwner): break
        default: cluster.failure = error
        }
        guard self.life == life, serving === lease else { return }
        cluster.postLocally(to: self) { [self] in try handOver() }
      }
    }
  }

  /// Begins to answer reads from the replica, after it has everything.
  func openAsFollower() {
    guard service == nil, !isAsking, case .follower = machine.role,
      let store = replica.followedStore(SimulatedCluster.store)
    else { return }
    isAsking = true
    let life = life
    gate.whenNewest { [self] isNewest in
      guard self.life == life else { return }
      isAsking = false
      guard isNewest, service == nil, serving == nil else { return }
      let registry = DatabaseRegistry(
        clock: Clock { [self] in timeOfDay }, idleSeconds: nil, queues: queues.queues, adopts: false, freshness: gate
      ) { (_) throws(StorageError) in store }
      do {
        let opened = try SimulatedService(databases: registry, store: store)
        _ = try registry.database(opened.id)
        followed = opened
        services += 1
      } catch { cluster.failure = error }
    }
  }

  private func retire(owned isOwned: Bool, followed isFollowed: Bool) {
    if isOwned { owned = nil }
    if isFollowed { followed = nil }
    services += 1
  }

  // MARK: Answers to clients

  /// Sends the outcome of a commit to its client. A killed node answers nothing.
  func answer(_ result: Result<CommitOutcome, Status>, to number: Int, _ attempt: Int, inLife life: Int) {
    guard self.life == life else { return }
    cluster.postToClient { [unowned cluster] in try cluster.clients.receive(result, of: number, attempt) }
  }

  /// Reads for a client that has waited until the replica is as new as the owner.
  func read(_ isNewest: Bool, since began: Int64) {
    guard isNewest, let followed else { return }
    do { try cluster.clients.check(followed, since: began, isOwner: false) } catch { cluster.failure = error }
  }

  // MARK: Read index

  /// Calls `done` when the replica has everything that was acknowledged before this call, or after a while with
  /// `false`.
  func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) {
    guard cluster.fault != .ownerNotAsked else { return done(true) }
    guard let owner = machine.knownOwner.map({ cluster.nodes[Int($0.node) - 1] }), owner !== self else {
      return done(false)
    }
    let question = gate.wait(until: cluster.now + 2_000_000, done)
    cluster.post(to: owner) { [self, life] in
      guard let index = owner.readIndex() else { return }
      cluster.post(to: self, inLife: life) { [self] in
        gate.answer(question, index, comparedBy: { [self] in comparison(with: $0) })
      }
    }
  }

  /// The position that a read must show, if this node is the owner: first the position, then the lease.
  private func readIndex() -> ReadIndex? {
    let head = feed.headPosition
    guard let serving, serving.holds else { return nil }
    return ReadIndex(head, configuration: 1)
  }

  private func comparison(with index: ReadIndex) -> ReadIndex.Comparison {
    // Nothing is half applied here.
    if !positions.isLast(replica.applied) { positions.append(replica.applied) }
    return positions.comparison(with: index.position)
  }
}

/// The questions of a node to the owner.
private final class NodeGate: FreshnessGate {
  private struct Question {
    let deadline: Int64
    let done: @Sendable (Bool) -> Void
    var index: ReadIndex?
  }

  private struct State {
    weak var node: SimulatedNode?
    var questions: [Int: Question] = [:]
    var last = 0
  }

  private let state = Mutex(State())

  var node: SimulatedNode? {
    get { state.withLock { $0.node } }
    set { state.withLock { $0.node = newValue } }
  }

  func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) {
    guard let node else { return done(false) }
    node.whenNewest(done)
  }

  /// Adds a question, and returns its number.
  func wait(until deadline: Int64, _ done: @escaping @Sendable (Bool) -> Void) -> Int {
    state.withLock { state in
      state.last += 1
      state.questions[state.last] = Question(deadline: deadline, done: done)
      return state.last
    }
  }

  func answer(_ question: Int, _ index: ReadIndex, comparedBy compare: (ReadIndex) -> ReadIndex.Comparison) {
    state.withLock { $0.questions[question]?.index = index }
    noteApplied(comparedBy: compare)
  }

  /// Ends the questions whose answers the replica has reached.
  func noteApplied(comparedBy compare: (ReadIndex) -> ReadIndex.Comparison) {
    end { question in
      switch question.index.map(compare) {
      case .reached: true
      case .unknown: false
      case .ahead, nil: nil
      }
    }
  }

  /// Ends the questions that wait for too long.
  func expire(at now: Int64) { end { $0.deadline < now ? false : nil } }

  /// Forgets the questions of a former life.
  func forgetAll() { state.withLock { $0.questions = [:] } }

  private func end(_ result: (Question) -> Bool?) {
    let questions = state.withLock { $0.questions }
    for (number, question) in questions.sorted(by: { $0.key < $1.key }) {
      guard let isNewest = result(question) else { continue }
      state.withLock { $0.questions[number] = nil }
      question.done(isNewest)
    }
  }
}
