package import LogEngine

/// One node's part in the protocol for one store, without I/O, threads or a clock: times, answers and wishes go in,
/// ``Action``s come out.
///
/// 1. A node renews its session (``NodeLease``), and observes the store. As a follower it applies confirmed entries
///    (``EntryTail``).
/// 2. If the owner is silent or gone, it sends a takeover. It becomes the owner when its takeover entry is durable and
///    applied.
/// 3. As the owner it appends one entry at a time (``EntryAppend``), and applies it when it is certain that the log has it.
/// 4. If its session is over or its append is refused, it is a follower again.
///
/// Safety does not rest on leases or clocks: an entry counts if it is in the log, and the log has one entry at a position.
/// The lease decides only whether a read may be answered without asking.
package struct ClusterNode: Sendable {
  /// A task of the caller, in the order of the list.
  package enum Action: Equatable, Sendable {
    /// Send a request to the tables, and pass the answer to ``receive(_:to:at:)`` with this number.
    case perform(TableRequest, number: Int)
    /// Apply entries to the replica.
    case apply([SharedEntry])
    /// Tell the author of the commit that was submitted its outcome.
    case report(CommitFate)
    /// This node is the owner in an epoch now: initialize what an owner writes, and give commits versions above the floor.
    case adopt(epoch: UInt64, floor: Int64)
    /// This node is not the owner any more.
    case stepDown
    /// Send an entry to the followers, after it is applied here. The log has it durably.
    case tell(SharedEntry)
    /// The log had lost so many of the newest entries at most, and this node, its owner, has appended them again.
    case healed(Int)
    /// The replica must be loaded anew.
    case rejoin(EntryTail.Break)
  }

  /// The outcome of a commit.
  package enum CommitFate: Equatable, Sendable {
    /// It is in the log, and durable.
    case appended(LogPosition)
    /// It is certain that it is not in the log.
    case notOwner
    /// It may be in the log. Only its identifier can tell.
    case unknown
  }

  /// The part of this node for the store.
  package enum Role: Equatable, Sendable {
    case follower
    case owner(epoch: UInt64)
    /// The owner until its handover is in the log. It answers nothing more. The handover waits for an append that is not
    /// certain yet.
    case leaving(epoch: UInt64)
  }

  /// The time for which the replica has had entries that the log lost.
  private struct Ahead {
    let owner: OwnerMark?
    /// The time between the observations that showed it.
    var time: Int64 = 0
    /// The time at which the last of them was sent.
    var last: Int64
    /// The greatest head of the log that they showed.
    var head: UInt64
  }

  package let number: UInt32
  package private(set) var role = Role.follower
  package private(set) var lease: NodeLease
  package private(set) var tail: EntryTail
  /// Whether this node may become the owner. The caller clears it if its clock differs too much from that of the tables.
  package var mayOwn = true

  /// The sequence that the owner confirms at most: up to it, its own reads show every entry. Otherwise another node could show a
  /// commit before the owner does.
  package var readable = UInt64.max

  private let timing: ClusterTiming
  private let secret: UInt64
  private var watch = OwnerWatch()
  private var epoch: UInt64 = 0
  private var owner: OwnerMark?
  /// The takeover of this node that is in the log, but not applied yet.
  private var takeover: SharedEntry?
  private var append: EntryAppend?
  /// The entries of this node's epoch while it is the owner.
  private var recent: NewestEntries?
  /// The repair of the log, and the number of its request.
  private var healing: (work: LogHealing, number: Int)?
  /// Whether the log lacked nothing when this node looked because of the present append. Then the append was refused for
  /// another reason.
  private var isLogWhole = false
  /// How long the replica has had entries that the log lost, and the owner as it was seen at first.
  private var ahead: Ahead?
  private var isBroken = false
  private var nextPoll = Int64.min
  /// The time until which this node observes often.
  private var hurriesUntil = Int64.min
  /// The requests without an answer. There is at most one of a kind, except for those that were given up.
  private var sent: [Int: (request: TableRequest, at: Int64)] = [:]
  private var lastNumber = 0

  /// Starts a node as a follower whose replica ends at a position, and whose data files have entries up to `mark` at most.
  /// `renewal` is a random number; see ``NodeLease``.
  package init(
    number: UInt32, after applied: LogPosition, mark: LogPosition = LogPosition(), secret: UInt64, renewal: UInt64,
    timing: ClusterTiming = ClusterTiming()
  ) {
    self.number = number
    self.timing = timing
    self.secret = secret
    lease = NodeLease(node: number, timing: timing, renewal: renewal)
    tail = EntryTail(after: applied, mark: mark, secret: secret)
  }

  // MARK: Loading the replica anew

  /// Ends all work, because the replica is loaded anew. The node sends nothing more until ``restart(after:renewal:)``, so
  /// another one takes over if it was the owner.
  package mutating func pause() {
    isBroken = true
    role = .follower
    healing = nil
  }

  /// Continues as a follower whose replica ends at another position, as after a start. Answers to earlier requests are
  /// ignored.
  package mutating func restart(
    after applied: LogPosition, mark: LogPosition = LogPosition(), renewal: UInt64
  ) {
    let (last, mayOwn) = (lastNumber, mayOwn)
    self = ClusterNode(
      number: number, after: applied, mark: mark, secret: secret, renewal: renewal, timing: timing)
    (lastNumber, self.mayOwn) = (last, mayOwn)
  }

  // MARK: Reads

  /// Whether a read of a snapshot that was taken before this call, in the same epoch, shows every commit that was
  /// acknowledged before it was taken. Call it after the snapshot is taken: a pause between the two then makes the answer
  /// `false`, not the snapshot old.
  package func mayAnswerReads(at now: Int64) -> Bool {
    if case .owner = role { lease.holds(at: now) } else { false }
  }

  /// Whether a commit may be submitted.
  package func acceptsCommits(at now: Int64) -> Bool { append == nil && mayAnswerReads(at: now) }

  // MARK: Inputs

  /// Sends what is due. Call it often. A caller that performs one request of a kind at a time does not ask for another one
  /// meanwhile: `mayRenew` is about sessions, `mayObserve` about observations and takeovers.
  package mutating func tick(at now: Int64, mayRenew: Bool = true, mayObserve: Bool = true) -> [Action] {
    guard !isBroken else { return [] }
    var actions: [Action] = []
    if mayRenew, let request = lease.request(at: now, confirmed: ownedSequence) { actions.append(send(request, now)) }
    guard mayObserve else { return actions }
    if case .follower = role, now >= nextPoll { actions.append(poll(now)) }
    if case .owner = role, append == nil, healing == nil, now >= nextPoll { actions.append(check(now)) }
    if let request = takeoverRequest(at: now) { actions.append(send(request, now)) }
    return actions
  }

  /// Appends the effect of a group of commits. The caller has asked ``acceptsCommits(at:)``.
  package mutating func submit(_ batch: [UInt8], at now: Int64) -> [Action] {
    guard case .owner(let epoch) = role, append == nil else { return [.report(.notOwner)] }
    return begin(.batch, batch, epoch, now)
  }

  /// Gives the store away: the owner answers nothing more, and the next node that wants may take over at once. If an append
  /// is not certain yet, the handover follows it.
  package mutating func handOver(at now: Int64) -> [Action] {
    guard case .owner(let epoch) = role else { return [] }
    role = .leaving(epoch: epoch)
    return append == nil && healing == nil ? begin(.handover, [], epoch, now) : []
  }

  /// Whether this node repairs the log. An append waits for it.
  package var isHealing: Bool { healing != nil }

  /// The position of the entry that this node appends now.
  package var appending: LogPosition? { append?.entry.position }

  /// The owner that this node saw last, or this node itself. `nil` while none is known, or this node leaves.
  package var knownOwner: NodeSession? {
    switch role {
    case .follower: owner?.owner
    case .owner: lease.session
    case .leaving: nil
    }
  }

  /// Takes entries that an owner sent, which the log has durably. Those that do not continue what this node has are
  /// ignored, because it will find them in the log.
  package mutating func follow(_ entries: [SharedEntry]) -> [Action] {
    guard case .follower = role, !isBroken else { return [] }
    tail.follow(entries)
    return applyConfirmed()
  }

  /// Observes often for a while, because the owner has ended its stream of entries: it may be giving the project away.
  package mutating func hurry(at now: Int64) {
    hurriesUntil = now + timing.hurry
    nextPoll = .min
  }

  /// Notes that another node says that it owns the store in an epoch, which it does only if its takeover is durable. An owner
  /// of an earlier epoch was replaced while the tables did not answer it, and steps down: it learns nothing else from them
  /// later. An append that is under way is repeated until it is certain, as after the end of a session.
  package mutating func noteOwner(in other: UInt64, at now: Int64) -> [Action] {
    switch role {
    case .owner(let epoch), .leaving(let epoch): epoch < other ? stepDown(now) : []
    case .follower: []
    }
  }

  /// Handles the answer to a request; `nil` if it was lost or takes too long. A later answer to the same number is ignored.
  package mutating func receive(_ reply: TableReply?, to number: Int, at now: Int64) -> [Action] {
    guard let (request, sentAt) = sent.removeValue(forKey: number), !isBroken else { return [] }
    if let work = healing, work.number == number { return heal(work.work, reply, now) }
    switch request {
    case .beginSession, .renew:
      guard lease.receive(reply, to: request, sentAt: sentAt) else { return stepDown(now) }
      return []
    case .observe:
      guard case .observed(let observation) = reply else {
        if reply == nil { watch.noteFailure() }
        return []
      }
      if case .follower = role { return see(observation, sentAt: sentAt, now) }
      return compare(observation, now)
    case .append: return proceed(reply, now)
    case .settle(let position):
      if position == append?.entry.position { return proceed(reply, now) }
      if reply == .settled { tail.confirm(upTo: position) }
      return applyConfirmed()
    case .takeOver:
      guard case .takenOver(let entry) = reply else { return [] }
      return expect(entry, isDurable: true) + [poll(now)]
    }
  }

  // MARK: Following and taking over

  private mutating func poll(_ now: Int64) -> Action {
    nextPoll = now + (now < hurriesUntil ? timing.hurriedPoll : timing.poll)
    return send(.observe(after: tail.applied.sequence), now)
  }

  private mutating func see(_ observation: StoreObservation, sentAt: Int64, _ now: Int64) -> [Action] {
    epoch = observation.epoch
    owner = observation.owner
    watch.note(observation.owner, at: now)
    do throws(EntryTail.Break) { try tail.see(observation) } catch {
      isBroken = true
      return [.rejoin(error)]
    }
    guard !tail.isAhead else {
      var ahead = ahead ?? Ahead(owner: observation.owner, last: sentAt, head: observation.head)
      // The owner appends entries, so it has not given up.
      if observation.head > ahead.head { (ahead.time, ahead.head) = (0, observation.head) }
      // A node that was paused has not seen whether the log lacked them meanwhile.
      ahead.time += min(max(0, sentAt - ahead.last), timing.renewal)
      ahead.last = max(ahead.last, sentAt)
      self.ahead = ahead
      if mayBeHealed(observation, ahead) { return applyConfirmed() }
      isBroken = true
      return [.rejoin(.diverged)]
    }
    ahead = nil
    // It was lost at a failover; or the observation is older, and the next one shows it again.
    if let takeover, !observation.entries.contains(takeover) { self.takeover = nil }
    var actions: [Action] = []
    // The answer to a takeover may have been lost.
    if let session = lease.session, observation.owner?.owner == session {
      let entry = observation.entries.last { $0.kind == .takeover }
      if let entry, TakeoverNote(entry.body)?.owner == session, entry.position.epoch == epoch {
        actions += expect(entry, isDurable: false)
        // It is visible, but is it durable?
        if !isPending({ $0 == .settle(entry.position) }) { actions.append(send(.settle(entry.position), now)) }
      } else if takeover == nil, append == nil, observation.head == tail.applied.sequence {
        // This node stepped down, but the engine lost the takeover that was the reason. While the session lasts, no node
        // takes over.
        lease.giveUp()
      }
    }
    // The rest of a long log follows at once.
    if let last = observation.entries.last, last.position.sequence < observation.head { nextPoll = .min }
    return actions + applyConfirmed()
  }

  /// Whether the owner of the newest entries may append again those that the log lost.
  private func mayBeHealed(_ observation: StoreObservation, _ ahead: Ahead) -> Bool {
    guard let mark = observation.owner, mark.isLive, mark.owner != lease.session,
      observation.epoch == tail.newest.epoch
    else { return false }
    // An owner that renews its session gets more time.
    return ahead.time < (mark == ahead.owner ? timing.silence : timing.healing)
  }

  /// Waits until a takeover entry of this node is applied.
  private mutating func expect(_ entry: SharedEntry, isDurable: Bool) -> [Action] {
    guard case .follower = role, entry.position.sequence > tail.applied.sequence else { return [] }
    takeover = entry
    if isDurable { tail.confirm(upTo: entry.position) }
    return applyConfirmed()
  }

  private mutating func applyConfirmed() -> [Action] {
    guard case .follower = role else { return [] }
    let entries = tail.takeConfirmed()
    guard !entries.isEmpty else { return [] }
    var actions = [Action.apply(entries)]
    guard let takeover, tail.applied.sequence >= takeover.position.sequence else { return actions }
    self.takeover = nil
    // If it was not the last entry, or the session ended meanwhile, this node is not the owner any more.
    guard tail.applied == takeover.position, let note = TakeoverNote(takeover.body), note.owner == lease.session
    else { return actions }
    role = .owner(epoch: takeover.position.epoch)
    recent = NewestEntries(from: takeover, bytesMax: LogHealing.bytesMax)
    actions.append(.adopt(epoch: takeover.position.epoch, floor: note.floor))
    return actions
  }

  private func takeoverRequest(at now: Int64) -> TableRequest? {
    guard case .follower = role, takeover == nil, append == nil, ahead == nil, tail.isWhole, mayOwn,
      lease.holds(at: now),
      let session = lease.session, !isPending({ if case .takeOver = $0 { true } else { false } })
    else { return nil }
    guard let owner else {
      return watch.isSilent(for: 0, at: now) ? .takeOver(by: session, from: nil, epoch: epoch) : nil
    }
    // The takeover of this session may be in the log already.
    guard owner.owner != session else { return nil }
    guard !owner.isLive || watch.isSilent(for: timing.silence, at: now) else { return nil }
    return .takeOver(by: session, from: owner, epoch: epoch)
  }

  // MARK: Owning

  private var ownedSequence: UInt64 {
    if case .owner = role { min(tail.applied.sequence, readable) } else { 0 }
  }

  private mutating func begin(
    _ kind: SharedEntry.Kind, _ body: [UInt8], _ epoch: UInt64, _ now: Int64
  ) -> [Action] {
    let entry = SharedEntry(kind, body, after: tail.applied, epoch: epoch, secret: secret)
    let append = EntryAppend(entry, behind: tail.applied)
    self.append = append
    isLogWhole = false
    return healing == nil ? [send(append.request, now)] : []
  }

  private mutating func proceed(_ reply: TableReply?, _ now: Int64) -> [Action] {
    // The entry before it may be lost.
    if append != nil, reply == .refused(found: nil), !isLogWhole, let recent, role != .follower {
      return beginHealing(recent, now)
    }
    return finish(reply, now)
  }

  /// Handles the answer to an append, also if the log could not be repaired.
  private mutating func finish(_ reply: TableReply?, _ now: Int64) -> [Action] {
    guard var append else { return [] }
    let step = append.receive(reply)
    if case .perform(let request) = step {
      self.append = append
      return [send(request, now)]
    }
    self.append = nil
    let isBatch = append.entry.kind == .batch
    guard step == .appended else {
      return stepDown(now) + (isBatch ? [.report(step == .refused ? .notOwner : .unknown)] : [])
    }
    var actions: [Action] = []
    switch role {
    case .owner, .leaving:
      tail.advance(past: append.entry)
      recent?.append(append.entry)
      actions = [.apply([append.entry]), .tell(append.entry)]
      if !isBatch { actions += stepDown(now) }
      if case .leaving(let epoch) = role { actions += begin(.handover, [], epoch, now) }
    // The session ended meanwhile: the entry arrives like those of others.
    case .follower: tail.confirm(upTo: append.entry.position)
    }
    return actions + (isBatch ? [.report(.appended(append.entry.position))] : [])
  }

  private mutating func stepDown(_ now: Int64) -> [Action] {
    takeover = nil
    watch = OwnerWatch()
    owner = nil
    guard role != .follower else { return [] }
    role = .follower
    recent = nil
    nextPoll = .min
    guard healing != nil else { return [.stepDown] }
    healing = nil
    // The append waited for the repair.
    return [.stepDown] + (append.map { [send($0.request, now)] } ?? [])
  }

  // MARK: Healing

  /// Looks whether the log still has the last entry.
  private mutating func check(_ now: Int64) -> Action {
    nextPoll = now + timing.check
    return send(.observe(after: tail.applied.sequence), now)
  }

  /// Compares the log with the entries of this node, its owner.
  private mutating func compare(_ observation: StoreObservation, _ now: Int64) -> [Action] {
    guard case .owner = role, append == nil, healing == nil, let recent,
      observation.after == tail.applied.sequence, observation.after >= observation.firstSequence,
      observation.previous != tail.applied
    else { return [] }
    return beginHealing(recent, now)
  }

  private mutating func beginHealing(_ recent: NewestEntries, _ now: Int64) -> [Action] {
    let work = LogHealing(recent.all)
    let action = send(work.request, now)
    healing = (work, lastNumber)
    return [action]
  }

  private mutating func heal(_ before: LogHealing, _ reply: TableReply?, _ now: Int64) -> [Action] {
    var work = before
    switch work.receive(reply) {
    case .perform(let request):
      let action = send(request, now)
      healing = (work, lastNumber)
      return [action]
    case .healed(let count):
      healing = nil
      isLogWhole = count == 0
      let actions = count > 0 ? [Action.healed(count)] : []
      if let append { return actions + [send(append.request, now)] }
      if case .leaving(let epoch) = role { return actions + begin(.handover, [], epoch, now) }
      return actions
    case .failed:
      healing = nil
      return append == nil ? stepDown(now) : finish(.refused(found: nil), now)
    }
  }

  // MARK: Requests

  private mutating func send(_ request: TableRequest, _ now: Int64) -> Action {
    lastNumber += 1
    sent[lastNumber] = (request, now)
    return .perform(request, number: lastNumber)
  }

  private func isPending(_ matches: (TableRequest) -> Bool) -> Bool { sent.values.contains { matches($0.request) } }
}
