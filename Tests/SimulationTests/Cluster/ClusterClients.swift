import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import SharedLog
import TestSupport
import WireFormat

/// The clients of a ``SimulatedCluster``. Each request goes to any node, which answers it or passes it to the owner.
final class ClusterClients {
  struct Counts {
    var commits = 0, repeated = 0, refused = 0, transactions = 0, ownerReads = 0, followerReads = 0, promises = 0
    var ownerSnapshots = 0, followerSnapshots = 0
  }

  /// A commit that a client sends until it knows the outcome, at most ``attemptsMax`` times.
  private struct Commit {
    let request: LogWitness.Request
    let transaction: TransactionID?
    /// The newest version that a client knew when it began.
    let began: Int64
    var attempt = 0
    var deadline: Int64 = 0
    var isOver = false
  }

  private static let attemptsMax = 8
  private static let openMax = 5

  private unowned let cluster: SimulatedCluster
  private(set) var counts = Counts()
  private var commits: [Int: Commit] = [:]
  private var lastCommit = 0
  private var listeners: [MovingListener] = []
  /// The number of commits that were acknowledged when the faults ended.
  private var before = 0
  private var isHealing = false

  private var random: SplitMix {
    get { cluster.random }
    set { cluster.random = newValue }
  }

  init(_ cluster: SimulatedCluster) {
    self.cluster = cluster
    for number in 0..<3 { listeners.append(MovingListener(number, cluster)) }
  }

  /// One step of a client. With `isLast`, no more transactions and promises begin.
  func step(isLast: Bool) throws {
    for number in commits.keys.sorted() where commits[number]?.deadline ?? .max < cluster.now { send(number) }
    switch Int.random(in: 0..<(isLast ? 5 : 12), using: &random) {
    case 0, 1: begin(writes(), reads: nil)
    case 2, 3: read()
    case 4: try listenSomewhere()
    case 5...7: try listeners[Int.random(in: listeners.indices, using: &random)].pull()
    case 8, 9: beginTransaction()
    case 10: try readInPast()
    default: if random.chance(oneIn: 3) { listeners[Int.random(in: listeners.indices, using: &random)].breakOff() }
    }
  }

  private func listenSomewhere() throws {
    for listener in listeners { try connect(listener) }
  }

  // MARK: The end

  /// Expects something new from now on.
  func heal() {
    isHealing = true
    before = counts.commits
    for number in commits.keys { commits[number]?.attempt = 0 }
  }

  func settle() throws {
    for listener in listeners {
      try connect(listener)
      try listener.pull(eventsMax: .max)
    }
  }

  /// Whether every request has an answer, something was committed since ``heal()``, and all listeners show the last
  /// commit.
  var areDone: Bool {
    counts.commits > before && commits.isEmpty
      && listeners.allSatisfy { $0.isCurrent(at: cluster.witness.twin.lastVersion) }
  }

  var state: String {
    "\(counts.commits - before) commits, \(commits.count) requests are open; listeners: \(listeners.map(\.state))"
  }

  // MARK: Commits

  private func begin(_ writes: [Write], reads: (TransactionID, LogWitness.Request)?) {
    guard commits.count < Self.openMax, !isHealing || counts.commits == before else { return }
    var request = reads?.1 ?? LogWitness.Request(id: .random(using: &random), writes: writes)
    request.writes = writes
    cluster.witness.expect(request)
    lastCommit += 1
    commits[lastCommit] = Commit(request: request, transaction: reads?.0, began: cluster.witness.acknowledged)
    send(lastCommit)
  }

  private func send(_ number: Int) {
    guard var commit = commits[number] else { return }
    guard commit.attempt < Self.attemptsMax else { return commits[number] = nil }
    commit.attempt += 1
    if commit.attempt > 1 { counts.repeated += 1 }
    commit.deadline = cluster.now + 2_000_000
    commits[number] = commit
    let node = random.pick(cluster.nodes)
    let attempt = commit.attempt
    cluster.post(to: node) { [unowned self] in handle(number, attempt, at: node, hops: 0) }
  }

  /// Handles a commit at a node. A follower passes it to the owner.
  private func handle(_ number: Int, _ attempt: Int, at node: SimulatedNode, hops: Int) {
    guard let commit = commits[number], commit.attempt == attempt else { return }
    guard let service = node.owned else {
      guard hops < 2, let owner = node.machine.knownOwner else { return retrySoon(number) }
      let next = cluster.nodes[Int(owner.node) - 1]
      return cluster.post(to: next) { [unowned self] in handle(number, attempt, at: next, hops: hops + 1) }
    }
    let isNew = cluster.fault == .repeatedAsNew && attempt > 1
    let id = isNew ? RequestID.random(using: &random) : commit.request.id
    let life = node.life
    do {
      try service.service.commit(
        commit.request.writes, transaction: commit.transaction, in: service.id, as: .admin, requestID: id
      ) { result in node.answer(result, to: number, attempt, inLife: life) }
    } catch { node.answer(.failure(Status(error, database: service.id)), to: number, attempt, inLife: life) }
  }

  private func retrySoon(_ number: Int) { commits[number]?.deadline = cluster.now + 100_000 }

  func receive(_ result: Result<CommitOutcome, Status>, of number: Int, _ attempt: Int) throws {
    guard let commit = commits[number] else { return }
    switch result {
    case .success(let outcome):
      try cluster.witness.acknowledge(commit.request.id, outcome)
      counts.commits += 1
      if commit.transaction != nil { counts.transactions += 1 }
      commits[number] = nil
    case .failure(let status) where status.code == .unavailable || Self.isUnknown(status):
      // The answer to an earlier attempt says nothing about this one.
      if commit.attempt == attempt { retrySoon(number) }
    case .failure(let status):
      guard commit.attempt == attempt else { return }
      try refuse(commit, status)
      commits[number] = nil
    }
  }

  /// Whether a status says that the outcome of a commit is unknown.
  private static func isUnknown(_ status: Status) -> Bool {
    status.code == .internal && status.fault?.contains("the simulation ended the wait") == true
  }

  private func refuse(_ commit: Commit, _ status: Status) throws {
    try cluster.witness.refuse(commit.request.id)
    counts.refused += 1
    if commit.transaction != nil, status.code == .aborted { return }
    guard cluster.witness.permits(status.code, of: commit.request.writes, since: commit.began) else {
      throw Difference("\(commit.request.writes) failed: \(status)")
    }
  }

  private func writes() -> [Write] {
    var writes: [Write] = []
    for _ in 0..<random.pick([1, 1, 2, 3]) {
      let path = "c/\(random.pick(["a", "b", "d", "e", "f", "g"]))"
      guard !writes.contains(where: { $0.key == document(path) }) else { continue }
      let number = Value.integer(Int64.random(in: 1...9, using: &random))
      switch Int.random(in: 0..<8, using: &random) {
      case 0: writes.append(.delete(path))
      case 1: writes.append(.set(path, ("n", number), if: .exists(false)))
      case 2: writes.append(.merge(path, ["m"], ("m", number), if: .exists(true)))
      case 3...5: writes.append(.merge(path, ["m"], ("m", number), transforms: [.increment("n", 1)]))
      default: writes.append(.set(path, ("n", number), ("text", .string(String(repeating: "x", count: 200)))))
      }
    }
    return writes
  }

  // MARK: Transactions

  /// Reads in a transaction at the owner. The commit follows as another request.
  private func beginTransaction() {
    guard commits.count < Self.openMax, let owner = cluster.nodes.first(where: { $0.owned != nil }) else { return }
    var request = LogWitness.Request(id: .random(using: &random), writes: [])
    let keys = ["c/a", "c/b", "c/z"].filter { _ in random.chance(oneIn: 2) }.map { document($0) }
    let hasQuery = random.chance(oneIn: 3)
    cluster.post(to: owner) { [unowned self] in
      guard let service = owner.owned else { return }
      do {
        let id = try service.service.beginTransaction(.readWrite(retrying: nil), in: service.id, as: .admin)
        for key in keys { request.reads[key] = try service.updateTime(of: key, .transaction(id)) }
        if hasQuery { request.listed = try service.documents(.transaction(id)) }
        begin(writes(), reads: (id, request))
      } catch { try Self.expectUnavailable(error) }
    }
  }

  /// A service whose node lost the ownership refuses requests, until it is gone.
  static func expectUnavailable(_ error: any Error) throws {
    if error is Difference { throw error }
    guard Status(error, database: nil).code == .unavailable else { throw error }
  }

  // MARK: Reads

  /// Reads the newest state at some node.
  private func read() {
    let node = random.pick(cluster.nodes)
    let began = cluster.witness.acknowledged
    cluster.post(to: node) { [unowned self] in
      if let service = node.owned { return try check(service, since: began, isOwner: true) }
      guard node.followed != nil else { return }
      node.whenNewest { node.read($0, since: began) }
    }
  }

  /// Reads, and checks that the answer is the state at some time since the read began.
  func check(_ service: SimulatedService, since began: Int64, isOwner: Bool) throws {
    do {
      let found = try service.documents(.latest)
      let witness = cluster.witness
      guard witness.states(since: began).contains(where: { witness.documents(at: $0) == found }) else {
        throw Difference(
          "a read at \(isOwner ? "the owner" : "a follower") shows \(found); since \(began) there was "
            + "\(witness.states(since: began).map { witness.documents(at: $0) })")
      }
      if isOwner { counts.ownerReads += 1 } else { counts.followerReads += 1 }
    } catch { try Self.expectUnavailable(error) }
  }

  /// Reads at a time, which promises that no later commit has a version at or below it. The owner waits for the commit
  /// that it writes.
  private func readInPast() throws {
    let owners = cluster.nodes.filter { $0.owned != nil && !$0.isPaused && !$0.isAppending }
    guard let owner = owners.randomElement(using: &random), let service = owner.owned else { return }
    let time = owner.timeOfDay - Int64.random(in: 0...100_000, using: &random)
    do {
      let found = try service.documents(.readTime(Timestamp(uncheckedMicroseconds: time)))
      guard found == cluster.witness.documents(at: time) else {
        throw Difference("a read at \(time) shows \(found), not \(cluster.witness.documents(at: time))")
      }
      cluster.witness.promise(time)
      counts.promises += 1
    } catch {
      // At a time before the first commit, the database may not have existed.
      let code = Status(error, database: nil).code
      let isEarly = time < cluster.witness.twin.versions.first ?? .max
      if isEarly, code == .failedPrecondition || code == .invalidArgument { return }
      try Self.expectUnavailable(error)
    }
  }

  // MARK: Listeners

  private func connect(_ listener: MovingListener) throws {
    try listener.connect { [unowned self] isAtOwner in
      if isAtOwner { counts.ownerSnapshots += 1 } else { counts.followerSnapshots += 1 }
    }
  }
}
