import ClusterTesting
import DocumentModel
import LogEngine
import QueryEngine
import Replication
import SharedLog
import TestSupport

/// A change of the simulation that takes away a part on which clients rely. ``LogWitness`` must notice each.
enum ClusterFault: CaseIterable {
  /// A follower answers reads, and lets targets join, without asking the owner how far the log is.
  case ownerNotAsked
  /// An owner answers reads after its lease.
  case leaseNeverEnds
  /// A new owner gives commits versions that a former one had promised to readers.
  case floorIgnored
  /// A follower does not tell its listeners about the commits of the owner.
  case commitsNotNoted
  /// A client that repeats a request gives it another ID.
  case repeatedAsNew
}

/// Three whole nodes, step by step: services, replicas, and clients that change nodes between any two requests. A seed
/// decides what happens next. After each step, ``LogWitness`` and the clients check what must always hold.
///
/// `ClusterRun` simulates the protocol below the services alone, with more faults and more steps.
///
/// Faults: messages arrive late, in any order, or never; nodes pause, are killed and start again with their data file,
/// or load a snapshot; clocks drift and differ; the tables show a transaction before it is durable, and may fail over
/// and lose it; the log is truncated.
final class SimulatedCluster {
  /// Something on its way to a node, to the tables, or to a client.
  private struct Message {
    /// The node that receives it, and its life then.
    var node: SimulatedNode?
    var life = 0
    /// Whether it goes to the tables.
    var isRequest = false
    /// Whether it never leaves the node, so it cannot be lost.
    var isLocal = false
    let arrive: () throws -> Void
  }

  static let secret: UInt64 = 0x5EC2E7
  static let store = StoreName(database: "(default)")!
  static let collection = TestSupport.collection("c")
  static let query = Query(collectionID: "c")
  /// The time of day at the start, in microseconds since 1970.
  static let origin: Int64 = 1_800_000_000_000_000
  /// The time after which a node gives up a commit, in microseconds.
  static let patience: Int64 = 2_500_000

  let fault: ClusterFault?
  let witness: LogWitness
  var random: SplitMix
  private(set) var nodes: [SimulatedNode] = []
  private(set) var now: Int64 = 1_000_000
  /// The thread whose work runs now.
  var running: ParkingThread?
  /// A difference that was found in the middle of such work.
  var failure: (any Error)?
  /// The faults so far.
  private var story: [String] = []
  /// How often a node replaced its replica by a snapshot.
  private(set) var snapshotsLoaded = 0
  private(set) var isHealing = false
  private var visible = TableState(secret: secret, skew: ClusterTiming().skew)
  private var durable = TableState(secret: secret, skew: ClusterTiming().skew)
  /// The answers to transactions that are not durable yet.
  private var held: [Message] = []
  private var messages: [Message] = []
  /// The messages that take long.
  private var stalled: [Message] = []
  private var threads: [ParkingThread] = []
  private var seconds: Int64 = 0
  private(set) lazy var clients = ClusterClients(self)

  init(seed: UInt64, _ fault: ClusterFault? = nil) throws {
    self.fault = fault
    random = SplitMix(seed: seed)
    witness = try LogWitness()
    for number in 1...3 { nodes.append(try SimulatedNode(number, self)) }
  }

  /// What happened, so that a test can say that enough did.
  var counts: ClusterClients.Counts { clients.counts }

  /// The number of epochs so far.
  var epochs: UInt64 { durable.epoch }

  /// The last faults, one per line, for failure messages.
  var lastFaults: String { story.suffix(20).map { "\n  \($0)" }.joined() }

  /// Notes that a node replaces its replica by a snapshot.
  func noteLoading(_ node: SimulatedNode) {
    snapshotsLoaded += 1
    story.append("node \(node.number) loads a snapshot")
  }

  /// The sequence of the first entry that the log has.
  var firstSequence: UInt64 { visible.firstSequence }

  /// Plays a number of steps.
  /// - Throws: ``Difference`` if something does not hold.
  func play(steps: Int) throws {
    for _ in 0..<steps { try step() }
  }

  /// Ends all faults, and expects that each node answers clients, all listeners become current, and all replicas become
  /// equal.
  /// - Throws: ``Difference`` if something does not hold, or does not happen within 30 seconds.
  func heal() throws {
    isHealing = true
    messages += stalled
    stalled = []
    for node in nodes { node.isPaused = false }
    clients.heal()
    for _ in 0..<600 {
      try pass(50_000)
      for _ in 0..<4 {
        for _ in 0..<messages.count where !messages.isEmpty { try deliver() }
        try makeDurable()
        for node in nodes {
          node.openAsFollower()
          while try node.work() {}
        }
        try clients.settle()
      }
      let isEverywhere = nodes.allSatisfy { $0.replica.applied.sequence == UInt64(witness.line.count) }
      let isServed = nodes.allSatisfy { $0.service != nil && !$0.isAppending }
      if isEverywhere, isServed, clients.areDone { return try compare() }
      try clients.step(isLast: true)
    }
    let states = nodes.map { node in
      "\(node.machine.role), \(node.replica.applied.sequence) entries, "
        + (node.owned != nil ? "owns" : node.followed != nil ? "follows" : "has no service")
    }
    throw Difference("no progress without faults: \(states), \(witness.line.count) entries; \(clients.state)")
  }

  private func compare() throws {
    for node in nodes { try witness.compare(node.replica, of: node.number) }
  }

  /// Ends the threads.
  func end() {
    for node in nodes { try? node.end() }
    messages = []
    stalled = []
    held = []
    for thread in threads { thread.end() }
  }

  // MARK: Threads

  /// Returns a thread without work.
  func takeThread() -> ParkingThread { threads.popLast() ?? ParkingThread() }

  func giveBack(_ thread: ParkingThread) { threads.append(thread) }

  // MARK: Steps

  private func step() throws {
    switch Int.random(in: 0..<1000, using: &random) {
    case 0..<400: for _ in 0..<3 { try deliver() }
    case 400..<470: try pass(Int64.random(in: 1_000...60_000, using: &random))
    case 470..<580: try makeDurable()
    case 580..<740: _ = try random.pick(nodes).workUnlessPaused()
    case 740..<945: try clients.step(isLast: false)
    case 945..<955: random.pick(nodes).openAsFollower()
    case 955..<962: release()
    case 962..<968: lose()
    case 968..<971: announceOwner()
    case 971..<973: random.pick(nodes).hurry()
    case 973..<977: pause(random.pick(nodes))
    case 977..<984: resume(random.pick(nodes))
    case 984..<987: try restart(random.pick(nodes))
    case 987..<990: failOver()
    case 990..<993: truncate()
    case 993..<996: try handOver(random.pick(nodes))
    case 996..<998: try pass(4_000_000)
    default: try deliver()
    }
  }

  /// Lets time pass, and gives each node its turn.
  private func pass(_ duration: Int64) throws {
    now += duration
    visible.now = Self.origin + now
    durable.now = visible.now
    let passed = now / 1_000_000 - seconds
    seconds += passed
    for node in nodes where !node.isPaused {
      if passed > 0 { node.advance(seconds: Int(passed)) }
      try node.tick()
    }
  }

  private func pause(_ node: SimulatedNode) {
    story.append("node \(node.number) pauses")
    node.isPaused = true
  }

  private func resume(_ node: SimulatedNode) {
    guard node.isPaused else { return }
    story.append("node \(node.number) continues")
    node.isPaused = false
  }

  private func restart(_ node: SimulatedNode) throws {
    story.append("node \(node.number) is killed and starts")
    try node.restart()
  }

  private func handOver(_ node: SimulatedNode) throws {
    guard !node.isPaused else { return }
    if node.owned != nil { story.append("node \(node.number) hands over") }
    try node.handOver()
  }

  private func announceOwner() {
    let epochs = nodes.compactMap { if case .owner(let epoch) = $0.machine.role { epoch } else { nil } }
    guard let epoch = epochs.randomElement(using: &random) else { return }
    for node in nodes { post(to: node) { try node.noteOwner(in: epoch) } }
  }

  // MARK: Messages

  /// Sends something to a node, in its present life or another one.
  func post(to node: SimulatedNode, inLife life: Int? = nil, _ arrive: @escaping () throws -> Void) {
    messages.append(Message(node: node, life: life ?? node.life, arrive: arrive))
  }

  /// Lets a node do something later, as on another thread.
  func postLocally(to node: SimulatedNode, _ arrive: @escaping () throws -> Void) {
    messages.append(Message(node: node, life: node.life, isLocal: true, arrive: arrive))
  }

  /// Sends something to a client.
  func postToClient(_ arrive: @escaping () throws -> Void) { messages.append(Message(arrive: arrive)) }

  /// Sends a request to the tables, and the answer back.
  func ask(_ request: TableRequest, _ number: Int, of node: SimulatedNode) {
    let life = node.life
    messages.append(
      Message(isRequest: true) { [unowned self] in
        let (reply, isWrite) = visible.perform(request)
        let answer = Message(node: node, life: life) { try node.receive(reply, to: number) }
        if isWrite { held.append(answer) } else { messages.append(answer) }
      })
  }

  private func deliver() throws {
    guard !messages.isEmpty else { return try pass(10_000) }
    // Mostly the oldest, so that something gets done; sometimes any.
    let place = random.chance(oneIn: 4) ? Int.random(in: messages.indices, using: &random) : 0
    let message = messages.remove(at: place)
    if !isHealing, random.chance(oneIn: 60) { return stalled.append(message) }
    if let node = message.node {
      guard node.life == message.life else { return }
      guard !node.isPaused else { return messages.append(message) }
    }
    try message.arrive()
    if let failure { throw failure }
  }

  /// Lets a message that was held up for long arrive soon.
  private func release() {
    guard !stalled.isEmpty else { return }
    messages.append(stalled.remove(at: Int.random(in: stalled.indices, using: &random)))
  }

  private func lose() {
    guard let place = messages.indices.filter({ !messages[$0].isLocal }).randomElement(using: &random) else { return }
    messages.remove(at: place)
  }

  // MARK: The tables

  private func makeDurable() throws {
    durable = visible
    messages += held
    held = []
    try witness.note(durable.entries)
  }

  /// The engine fails over: what was not durable is gone, and so are all connections.
  private func failOver() {
    if !held.isEmpty { story.append("the tables fail over") }
    visible = durable
    held = []
    messages.removeAll(where: \.isRequest)
    stalled.removeAll(where: \.isRequest)
  }

  private func truncate() {
    guard visible.entries.count > 2 else { return }
    let sequence = visible.head.sequence - UInt64.random(in: 0...2, using: &random)
    visible.truncate(before: min(sequence, visible.confirmed))
  }

  /// Checks an entry that a node applies.
  func checkApplied(_ entry: SharedEntry, by node: SimulatedNode) throws {
    let index = Int(entry.position.sequence) - 1
    guard witness.line.indices.contains(index), witness.line[index] == entry else {
      throw Difference("node \(node.number) applies entry \(index + 1), which is not durable")
    }
  }
}

extension SimulatedNode {
  /// Runs one piece of work of the service, unless the node is paused.
  fileprivate func workUnlessPaused() throws -> Bool { isPaused ? false : try work() }
}
