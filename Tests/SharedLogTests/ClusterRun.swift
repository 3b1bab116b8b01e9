import ClusterTesting
import LogEngine
import SharedLog
import TestSupport

/// A cluster in one value: nodes, their replicas and clocks, the tables, and the messages between them. A seed decides what
/// happens next. After each step, ``ClusterWitness`` checks what must always hold.
///
/// Faults: messages arrive late, in any order, or never; nodes pause and go on, or are killed and start again with their
/// replica; clocks drift; the engine of the tables shows a transaction before it is durable, and may fail over and lose it;
/// it also loses durable entries whose owner can append them again; the log is truncated.
struct ClusterRun {
  /// A node, and its machine's data that survives it.
  struct Node {
    var machine: ClusterNode
    /// The positions of the replica, one for each entry.
    var replica: [LogPosition] = []
    var lastVersion: Int64 = 0
    /// No commit of this node may have a version at or below it.
    var floor: Int64 = 0
    /// The number of its starts. Answers to an earlier start are lost.
    var life = 1
    var isPaused = false
    /// The clock that does not stop: its rate, and its time at the start of the run.
    var rate: Double
    var offset: Int64
    /// The difference between its time of day and that of the tables.
    var skew: Int64
    /// The commit whose outcome is not known yet.
    var commit: UInt64?
    /// The requests without an answer, by the time at which they were sent.
    var sent: [Int: Int64] = [:]
  }

  enum Message {
    case request(TableRequest, number: Int, node: Int, life: Int)
    case answer(TableReply?, number: Int, node: Int, life: Int)
    /// An entry that an owner sends to a follower.
    case entry(SharedEntry, node: Int)
    /// An owner tells another node in which epoch it owns the store. A node without the tables asks for it.
    case owner(epoch: UInt64, node: Int)
    /// A read that a follower may answer when it has what the owner has.
    case readIndex(read: Int, owner: Int)
    case read(Int)
  }

  /// A read of the newest state, or a promise that no commit comes at or below a version.
  struct Read {
    enum Stage { case arrived, seen, waiting(UInt64), over }
    let node: Int
    let life: Int
    /// The number of entries that had been acknowledged when it began.
    let acknowledged: UInt64
    let isPromise: Bool
    var stage = Stage.arrived
    /// The number of entries that it shows, or the version of the promise.
    var shown: UInt64 = 0
    var version: Int64 = 0
  }

  let mutation: ClusterMutation?
  private(set) var random: SplitMix
  private(set) var nodes: [Node] = []
  private(set) var witness = ClusterWitness()
  private var now: Int64 = 1_000_000
  private var visible: TableState
  private var durable: TableState
  /// The answers to transactions that are not durable yet.
  private var held: [Message] = []
  private var messages: [Message] = []
  /// The messages that take long.
  private var stalled: [Message] = []
  /// Whether the faults have ended.
  private var isHealing = false
  /// The number of entries that the log should have, while it lacks some that were durable. No other fault happens then.
  private var lost: (count: UInt64, steps: Int)?
  private var reads: [Read] = []
  private var lastCommit: UInt64 = 0
  /// The commits that are certain not to be in the log, to be tried again.
  private var refused: [UInt64] = []
  private let timing: ClusterTiming
  private static let secret: UInt64 = 0x5EC2E7

  init(seed: UInt64, _ mutation: ClusterMutation? = nil) {
    self.mutation = mutation
    random = SplitMix(seed: seed)
    var timing = ClusterTiming()
    if mutation == .leaseTooLong { timing.lease = 4_500_000 }
    if mutation == .divergesAtOnce { timing.healing = 0 }
    self.timing = timing
    visible = TableState(secret: Self.secret, skew: timing.skew, omission: mutation?.omission)
    visible.pageMax = random.pick([1024, 1024, TableState.pageMin])
    durable = visible
    for number in 0..<3 {
      let machine = ClusterNode(
        number: UInt32(number + 1), after: LogPosition(), secret: Self.secret, renewal: 0, timing: timing)
      nodes.append(
        Node(
          machine: machine, rate: Double.random(in: 0.955...1.045, using: &random),
          offset: Int64.random(in: 0...1_000_000_000, using: &random),
          skew: random.pick([-450_000, 0, 450_000])))
    }
  }

  /// Plays a number of steps.
  /// - Throws: ``ClusterWitness/Violation`` if something does not hold.
  mutating func play(steps: Int) throws {
    for _ in 0..<steps {
      if lost == nil { try step() } else { try calmStep() }
      try witness.checkOwners(
        nodes.indices.filter { nodes[$0].machine.mayAnswerReads(at: clock(of: $0)) }.map { $0 + 1 })
    }
  }

  /// Ends all faults, and expects that a node takes over, commits, and that all replicas get everything.
  /// - Throws: ``ClusterWitness/Violation`` if something does not hold, or does not happen within 20 seconds.
  mutating func heal() throws {
    while lost != nil { try calmStep() }
    isHealing = true
    messages += stalled
    stalled = []
    for node in nodes.indices { nodes[node].isPaused = false }
    let before = witness.counts.acknowledged
    for _ in 0..<400 {
      try pass(50_000)
      for _ in 0..<4 {
        let count = messages.count
        for _ in 0..<count where !messages.isEmpty { try deliver() }
        try makeDurable()
      }
      let isEverywhere = nodes.allSatisfy { $0.replica.count == witness.line.count }
      if witness.counts.acknowledged > before, isEverywhere { return }
      if witness.counts.acknowledged == before { try submit() }
    }
    let roles = nodes.map { "\($0.machine.role) with \($0.replica.count) entries" }
    throw ClusterWitness.Violation("no progress without faults: \(roles), \(witness.line.count) entries in the log")
  }

  /// The clock of a node that does not stop while the node is paused.
  private func clock(of node: Int) -> Int64 { Int64(Double(now) * nodes[node].rate) + nodes[node].offset }

  /// The time of day of a node.
  private func timeOfDay(of node: Int) -> Int64 { now + nodes[node].skew }

  // MARK: Steps

  private mutating func step() throws {
    switch Int.random(in: 0..<1000, using: &random) {
    case 0..<532: for _ in 0..<2 { try deliver() }
    case 532..<538: announceOwner()
    case 538..<540: hurry(anyNode())
    case 540..<560: if mayLoseRenewal { failOver() } else { try deliver() }
    case 983..<986:
      failOver()
      if random.chance(oneIn: 3) { loseTail() }
    case 560..<690: try pass(Int64.random(in: 1_000...80_000, using: &random))
    case 690..<810: try makeDurable()
    case 810..<890: try submit()
    case 890..<940: beginRead()
    case 940..<958: release()
    case 958..<963: lose()
    case 963..<969: try disconnect(anyNode())
    case 969..<973: nodes[anyNode()].isPaused = true
    case 973..<980: resume(anyNode())
    case 980..<983: kill()
    case 986..<993: truncate()
    case 993..<998: try handOver()
    default: try pass(4_000_000)
    }
  }

  /// A step without faults, until the owner has appended again what the log lost.
  private mutating func calmStep() throws {
    guard let (count, steps) = lost else { return }
    guard durable.head.sequence < count else { return lost = nil }
    guard steps < 5_000 else { throw ClusterWitness.Violation("the log still lacks entries that its owner has") }
    lost = (count, steps + 1)
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<6: for _ in 0..<4 { try deliver() }
    case 6: try pass(Int64.random(in: 1_000...40_000, using: &random))
    case 7: try submit()
    default: try makeDurable()
    }
  }

  /// Whether a renewal is visible that is not durable.
  private var mayLoseRenewal: Bool {
    held.contains { if case .answer(.renewed?, _, _, _) = $0 { true } else { false } }
  }

  private mutating func anyNode() -> Int { Int.random(in: nodes.indices, using: &random) }

  /// Lets time pass, and gives each node its turn. Requests that take too long count as lost.
  private mutating func pass(_ duration: Int64) throws {
    now += duration
    visible.now = now
    durable.now = now
    for node in nodes.indices where !nodes[node].isPaused {
      for (number, since) in nodes[node].sent.sorted(by: { $0.key < $1.key }) where now - since > 1_500_000 {
        nodes[node].sent[number] = nil
        try perform(nodes[node].machine.receive(mutated(nil), to: number, at: clock(of: node)), node)
      }
      try perform(nodes[node].machine.tick(at: clock(of: node)), node)
    }
  }

  private mutating func deliver() throws {
    guard !messages.isEmpty else { return try pass(10_000) }
    // Mostly the oldest, so that something gets done; sometimes any.
    let place = random.chance(oneIn: 4) ? Int.random(in: messages.indices, using: &random) : 0
    let message = messages.remove(at: place)
    // A session that begins late can end a later one, so such a request is held up more often.
    let isBegin = if case .request(.beginSession, _, _, _) = message { true } else { false }
    if !isHealing, lost == nil, random.chance(oneIn: isBegin ? 6 : 40) { return stalled.append(message) }
    switch message {
    case .request(let request, let number, let node, let life):
      let (reply, isWrite) = visible.perform(request)
      let answer = Message.answer(reply, number: number, node: node, life: life)
      let isAtOnce = if case .settle = request { mutation == .visibleIsDurable } else { false }
      if isWrite, !isAtOnce { held.append(answer) } else { messages.append(answer) }
    case .answer(let reply, let number, let node, let life):
      guard nodes[node].life == life else { return }
      guard !nodes[node].isPaused else { return messages.append(message) }
      nodes[node].sent[number] = nil
      try perform(nodes[node].machine.receive(mutated(reply), to: number, at: clock(of: node)), node)
    case .entry(let entry, let node):
      guard !nodes[node].isPaused else { return messages.append(message) }
      try perform(nodes[node].machine.follow([entry]), node)
    case .owner(let epoch, let node):
      guard !nodes[node].isPaused else { return messages.append(message) }
      let actions = nodes[node].machine.noteOwner(in: epoch, at: clock(of: node))
      if mutation == .replacedIsRefused, actions.contains(.stepDown) { try report(.notOwner, node) }
      try perform(actions, node)
    case .readIndex(let read, let owner):
      guard !nodes[owner].isPaused else { return messages.append(message) }
      answerIndex(read, owner)
    case .read(let read):
      guard !nodes[reads[read].node].isPaused else { return messages.append(message) }
      try proceed(read)
    }
  }

  /// Changes an answer as a mutation of a node would understand it.
  private func mutated(_ reply: TableReply?) -> TableReply? {
    switch (mutation, reply) {
    case (.unconfirmedApplied, .observed(let seen)):
      return .observed(
        StoreObservation(
          epoch: seen.epoch, owner: seen.owner, confirmed: seen.entries.last?.position.sequence ?? seen.confirmed,
          firstSequence: seen.firstSequence, entries: seen.entries, head: seen.head))
    case (.lostIsRefused, nil): return .refused(found: nil)
    default: return reply
    }
  }

  /// Lets a message that was held up for long arrive soon.
  private mutating func release() {
    guard !stalled.isEmpty else { return }
    messages.append(stalled.remove(at: Int.random(in: stalled.indices, using: &random)))
  }

  /// Lets a node go on. Its connections may have ended while it was paused.
  private mutating func resume(_ node: Int) {
    guard nodes[node].isPaused else { return }
    nodes[node].isPaused = false
    guard random.chance(oneIn: 2) else { return }
    messages.removeAll { if case .answer(_, _, node, _) = $0 { true } else { false } }
  }

  private mutating func lose() {
    guard !messages.isEmpty else { return }
    let place = Int.random(in: messages.indices, using: &random)
    switch messages[place] {
    case .read, .readIndex: break
    default: messages.remove(at: place)
    }
  }

  /// Takes the answers to all requests of a node. The requests go on.
  private mutating func disconnect(_ node: Int) throws {
    guard !nodes[node].isPaused else { return }
    for number in nodes[node].sent.keys.sorted() {
      nodes[node].sent[number] = nil
      try perform(nodes[node].machine.receive(mutated(nil), to: number, at: clock(of: node)), node)
    }
  }

  // MARK: The tables

  private mutating func makeDurable() throws {
    durable = visible
    messages += held
    held = []
    try witness.note(durable)
  }

  /// The engine fails over: what was not durable is gone, and so are all connections.
  private mutating func failOver() {
    visible = durable
    held = []
    messages.removeAll { if case .request = $0 { true } else { false } }
    stalled.removeAll { if case .request = $0 { true } else { false } }
  }

  /// The engine loses some of the newest entries, which were durable, while their owner can append them again.
  private mutating func loseTail() {
    let batches = visible.entries.reversed().prefix { $0.kind == .batch && $0.position.epoch == visible.epoch }
    guard !batches.isEmpty, visible.entries.count > batches.count, let owner = visible.owner,
      visible.nodes[owner.node]?.session == owner.session, visible.nodes[owner.node]?.isLive == true
    else { return }
    let node = Int(owner.node) - 1
    guard case .owner(let epoch) = nodes[node].machine.role, epoch == visible.epoch, !nodes[node].isPaused,
      nodes[node].machine.lease.session == owner, nodes[node].machine.mayAnswerReads(at: clock(of: node))
    else { return }
    lost = (visible.head.sequence, 0)
    visible.lose(Int.random(in: 1...min(4, batches.count), using: &random))
    durable = visible
    witness.noteLoss()
  }

  private mutating func truncate() {
    guard visible.entries.count > 2 else { return }
    let sequence = visible.head.sequence - UInt64.random(in: 0...2, using: &random)
    visible.truncate(before: min(sequence, visible.confirmed))
  }

  // MARK: Nodes

  private mutating func kill() {
    let node = anyNode()
    nodes[node].life += 1
    nodes[node].isPaused = false
    nodes[node].sent = [:]
    nodes[node].commit = nil
    // Some of its files are at the last entry, others at an earlier one.
    let mark = nodes[node].replica.last ?? LogPosition()
    nodes[node].replica.removeLast(min(nodes[node].replica.count, random.pick([0, 0, 1, 3])))
    start(node, mark: mark)
  }

  private mutating func start(_ node: Int, mark: LogPosition = LogPosition()) {
    nodes[node].machine = ClusterNode(
      number: UInt32(node + 1), after: nodes[node].replica.last ?? LogPosition(), mark: mark, secret: Self.secret,
      renewal: UInt64(nodes[node].life) << 32, timing: timing)
  }

  private mutating func handOver() throws {
    let node = anyNode()
    guard !nodes[node].isPaused, nodes[node].commit == nil else { return }
    try perform(nodes[node].machine.handOver(at: clock(of: node)), node)
  }

  /// A node that believes that it owns the store tells the others, perhaps long after it was replaced.
  private mutating func announceOwner() {
    let owners = nodes.indices.filter { if case .owner = nodes[$0].machine.role { true } else { false } }
    guard !owners.isEmpty, case .owner(let epoch) = nodes[random.pick(owners)].machine.role else { return }
    for other in nodes.indices { messages.append(.owner(epoch: epoch, node: other)) }
  }

  private mutating func hurry(_ node: Int) {
    guard !nodes[node].isPaused else { return }
    nodes[node].machine.hurry(at: clock(of: node))
  }

  private mutating func perform(_ actions: [ClusterNode.Action], _ node: Int) throws {
    for action in actions {
      switch action {
      case .perform(let request, let number):
        nodes[node].sent[number] = now
        messages.append(.request(request, number: number, node: node, life: nodes[node].life))
        if mutation == .sentEarly, case .append(let entry, _) = request { tell(entry, from: node) }
      case .apply(let entries):
        for entry in entries {
          try witness.checkApplied(entry, behind: nodes[node].replica.count, node: node + 1)
          nodes[node].replica.append(entry.position)
          if entry.kind == .batch { nodes[node].lastVersion = ClusterCommit(entry.body).version }
        }
      case .report(let fate): try report(fate, node)
      case .adopt(_, let floor): nodes[node].floor = max(nodes[node].floor, floor)
      case .stepDown, .healed: break
      case .tell(let entry): tell(entry, from: node)
      case .rejoin(let reason):
        guard reason == .truncated else { throw ClusterWitness.Violation("node \(node + 1) diverged") }
        // It loads a snapshot, which another replica wrote after any entry that the log continues.
        let least = min(Int(visible.firstSequence) - 1, witness.line.count)
        let loaded = Int.random(in: least...witness.line.count, using: &random)
        nodes[node].replica = witness.line.prefix(loaded).map(\.position)
        nodes[node].lastVersion = witness.lastVersion
        nodes[node].sent = [:]
        nodes[node].commit = nil
        if random.chance(oneIn: 2) {
          nodes[node].life += 1
          start(node)
        } else {
          // It continues without a new start, and late answers still arrive.
          nodes[node].machine.pause()
          nodes[node].machine.restart(
            after: nodes[node].replica.last ?? LogPosition(), renewal: UInt64.random(in: 0..<1 << 40, using: &random))
        }
        return
      }
    }
  }

  private mutating func tell(_ entry: SharedEntry, from node: Int) {
    for other in nodes.indices where other != node { messages.append(.entry(entry, node: other)) }
  }

  // MARK: Commits

  private mutating func submit() throws {
    let node = anyNode()
    guard !nodes[node].isPaused, nodes[node].commit == nil,
      nodes[node].machine.acceptsCommits(at: clock(of: node))
    else { return }
    let id: UInt64
    if let again = refused.popLast() {
      id = again
      witness.noteRetried(id)
    } else {
      lastCommit += 1
      id = lastCommit
    }
    let version = max(timeOfDay(of: node), nodes[node].lastVersion + 1, nodes[node].floor + 1)
    nodes[node].commit = id
    try perform(nodes[node].machine.submit(ClusterCommit(id: id, version: version).body, at: clock(of: node)), node)
  }

  private mutating func report(_ fate: ClusterNode.CommitFate, _ node: Int) throws {
    guard let id = nodes[node].commit else { return }
    nodes[node].commit = nil
    switch fate {
    case .appended(let position): try witness.noteAcknowledged(id, at: position)
    case .notOwner:
      try witness.noteRefused(id)
      refused.append(id)
    case .unknown:
      guard mutation == .unknownIsRefused else { return witness.noteUnknown() }
      try witness.noteRefused(id)
      refused.append(id)
    }
  }

  // MARK: Reads

  private mutating func beginRead() {
    let node = anyNode()
    guard !nodes[node].isPaused else { return }
    reads.append(
      Read(
        node: node, life: nodes[node].life, acknowledged: witness.acknowledged, isPromise: random.chance(oneIn: 3)))
    messages.append(.read(reads.count - 1))
  }

  /// Continues a read. Between two stages the node may be paused for any time.
  private mutating func proceed(_ index: Int) throws {
    var read = reads[index]
    let node = read.node
    defer { reads[index] = read }
    guard read.life == nodes[node].life else { return read.stage = .over }
    let isOwner = nodes[node].machine.mayAnswerReads(at: clock(of: node))
    switch read.stage {
    case .arrived:
      if read.isPromise || isOwner || mutation == .leaseIgnored {
        if mutation == .leaseCheckedFirst {
          guard isOwner else { return read.stage = .over }
        } else {
          look(&read)
        }
        read.stage = .seen
        messages.append(.read(index))
        // The moment between the two looks, which matters most.
        if !isHealing, lost == nil, random.chance(oneIn: 30) { nodes[node].isPaused = true }
      } else {
        // A follower asks each node. One that is not the owner does not answer.
        for other in nodes.indices where other != node { messages.append(.readIndex(read: index, owner: other)) }
      }
    case .seen:
      if mutation == .leaseCheckedFirst {
        look(&read)
      } else if mutation != .leaseIgnored, !isOwner {
        return read.stage = .over
      }
      try finish(&read)
    case .waiting(let sequence):
      guard nodes[node].replica.count >= sequence else { return messages.append(.read(index)) }
      read.shown = UInt64(nodes[node].replica.count)
      try finish(&read)
    case .over: break
    }
  }

  /// Takes the snapshot of a read, or the version of a promise, and raises the floor to it.
  private mutating func look(_ read: inout Read) {
    read.shown = UInt64(nodes[read.node].replica.count)
    read.version = timeOfDay(of: read.node)
    if read.isPromise { nodes[read.node].floor = max(nodes[read.node].floor, read.version) }
  }

  private mutating func finish(_ read: inout Read) throws {
    read.stage = .over
    guard read.isPromise else { return try witness.checkRead(read.shown, acknowledged: read.acknowledged) }
    // A promise waits for the group that is being written.
    if nodes[read.node].commit == nil { witness.notePromise(read.version) }
  }

  /// The owner tells a follower how far it must have applied the log: it looks at its replica, then at its lease.
  private mutating func answerIndex(_ index: Int, _ owner: Int) {
    guard nodes[owner].machine.mayAnswerReads(at: clock(of: owner)), case .arrived = reads[index].stage else { return }
    reads[index].stage = .waiting(UInt64(nodes[owner].replica.count))
    messages.append(.read(index))
  }
}
