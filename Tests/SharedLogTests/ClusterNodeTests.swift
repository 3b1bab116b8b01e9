import ClusterTesting
import LogEngine
import SharedLog
import Testing

/// The steps of ``ClusterNode`` one by one, against tables that answer at once.
@Suite struct ClusterNodeTests {
  /// Two nodes, and the tables between them.
  private struct Pair {
    var tables = TableState(secret: 1, skew: 500_000)
    var nodes = [1, 2].map { ClusterNode(number: $0, after: LogPosition(), secret: 1, renewal: 0) }
    /// The actions of the nodes, except for requests.
    var done: [[ClusterNode.Action]] = [[], []]
    /// Whether the answers to appends are lost.
    var losesAppends = false

    /// Lets a node do what is due at a time, and everything that follows from it.
    mutating func tick(_ node: Int, at now: Int64) {
      let actions = nodes[node].tick(at: now)
      perform(actions, node, now)
    }

    mutating func perform(_ actions: [ClusterNode.Action], _ node: Int, _ now: Int64) {
      for action in actions {
        guard case .perform(let request, let number) = action else {
          done[node].append(action)
          continue
        }
        let (reply, _) = tables.perform(request)
        if losesAppends, case .append = request {
          losesAppends = false
          perform(nodes[node].receive(nil, to: number, at: now), node, now)
        } else {
          perform(nodes[node].receive(reply, to: number, at: now), node, now)
        }
      }
    }

    mutating func submit(_ body: [UInt8], _ node: Int, at now: Int64) {
      let actions = nodes[node].submit(body, at: now)
      perform(actions, node, now)
    }

    mutating func takeDone(_ node: Int) -> [ClusterNode.Action] {
      defer { done[node] = [] }
      return done[node]
    }
  }

  private static let second: Int64 = 1_000_000

  /// A pair whose first node owns the store.
  private func owned() -> Pair {
    var pair = Pair()
    for now in 0..<3 as Range<Int64> { pair.tick(0, at: now * Self.second) }
    pair.done = [[], []]
    return pair
  }

  /// The owner ended its stream of entries. Its handover comes a little later.
  @Test func aHandoverIsNoticedSoon() {
    var pair = owned()
    pair.tick(1, at: 0)
    pair.tick(1, at: Self.second)
    pair.nodes[1].hurry(at: Self.second + 1)
    // It looks at once, and sees nothing new.
    pair.tick(1, at: Self.second + 1)
    #expect(pair.nodes[1].role == .follower && pair.nodes[1].knownOwner == pair.nodes[0].lease.session)
    let actions = pair.nodes[0].handOver(at: Self.second + 2)
    pair.perform(actions, 0, Self.second + 2)
    // Not before the time of the next look, which is soon.
    pair.tick(1, at: Self.second + 9_000)
    #expect(pair.nodes[1].role == .follower)
    for time in [11_000, 22_000] as [Int64] { pair.tick(1, at: Self.second + time) }
    #expect(pair.nodes[1].role == .owner(epoch: 2))
  }

  @Test func theFirstNodeThatAsksBecomesTheOwner() throws {
    var pair = Pair()
    pair.tick(0, at: 0)
    pair.tick(0, at: Self.second)
    #expect(pair.nodes[0].role == .owner(epoch: 1))
    let entry = try #require(pair.tables.entries.first)
    #expect(pair.takeDone(0) == [.apply([entry]), .adopt(epoch: 1, floor: 500_000)])
    // The other one follows.
    pair.tick(1, at: 0)
    pair.tick(1, at: Self.second)
    #expect(pair.nodes[1].role == .follower)
  }

  @Test func aCommitIsAppendedThenApplied() throws {
    var pair = owned()
    pair.submit([7], 0, at: 3 * Self.second)
    let entry = try #require(pair.tables.entries.last)
    #expect(entry.body == [7])
    #expect(
      pair.takeDone(0) == [.apply([entry]), .tell(entry), .report(.appended(entry.position))])
  }

  /// The second answer finds the entry of the first try.
  @Test func aLostAnswerAppendsOnce() throws {
    var pair = owned()
    pair.losesAppends = true
    pair.submit([7], 0, at: 3 * Self.second)
    #expect(pair.tables.entries.count { $0.kind == .batch } == 1)
    #expect(pair.takeDone(0).last == .report(.appended(pair.tables.head)))
  }

  @Test func aFollowerAppliesTheLastEntryWhenItIsConfirmed() throws {
    var pair = owned()
    pair.submit([7], 0, at: 3 * Self.second)
    pair.tick(1, at: 0)
    // The takeover is followed by an entry of its epoch, which itself is not confirmed.
    #expect(pair.takeDone(1) == [.apply([pair.tables.entries[0]])])
    let actions = pair.nodes[1].follow([pair.tables.entries[1]])
    #expect(actions == [.apply([pair.tables.entries[1]])])
  }

  @Test func aFollowerAppliesEntriesThatTheOwnerSendsInOrder() throws {
    var pair = owned()
    for body in 7...9 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    let entries = pair.tables.entries
    // The entries before them are missing.
    #expect(pair.nodes[1].follow([entries[2]]) == [])
    #expect(pair.nodes[1].follow([entries[0], entries[1]]) == [.apply([entries[0], entries[1]])])
    // The first one arrives again. The last one is another entry than the log has.
    #expect(pair.nodes[1].follow([entries[1], entries[2]]) == [.apply([entries[2]])])
    let foreign = SharedEntry(.batch, [1], after: entries[1].position, epoch: 1, secret: 5)
    #expect(pair.nodes[1].follow([SharedEntry(kind: .batch, position: foreign.position, body: [2])]) == [])
    #expect(pair.nodes[1].follow([entries[3]]) == [.apply([entries[3]])])
  }

  @Test func aSilentOwnerIsReplacedAndRefused() throws {
    var pair = owned()
    pair.submit([7], 0, at: 3 * Self.second)
    // The first node is paused. Its lease ends, by its clock, before the other one takes over.
    for quarter in 0..<20 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(pair.nodes[1].role == .owner(epoch: 2))
    #expect(pair.takeDone(1).contains(.adopt(epoch: 2, floor: 500_000)))
    #expect(!pair.nodes[0].mayAnswerReads(at: 6 * Self.second))
    _ = pair.takeDone(0)
    pair.submit([8], 0, at: 6 * Self.second)
    #expect(pair.takeDone(0) == [.stepDown, .report(.notOwner)])
    #expect(!pair.tables.entries.contains { $0.body == [8] })
  }

  // MARK: Loss

  @Test func theOwnerAppendsAgainWhatTheLogLost() {
    var pair = owned()
    for body in 1...9 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    let entries = pair.tables.entries
    _ = pair.takeDone(0)
    pair.tables.lose(5)
    pair.submit([10], 0, at: 3 * Self.second)
    // It steps back by 1, 2 and 4 entries until it finds one, and then finds some that are there.
    #expect(pair.takeDone(0).prefix(1) == [.healed(7)])
    #expect(pair.tables.entries.prefix(10) == entries[...] && pair.tables.entries.count == 11)
    // Without a commit, it notices when it looks at the log.
    pair.tables.lose(1)
    pair.tick(0, at: 5 * Self.second)
    #expect(pair.takeDone(0) == [.healed(1)] && pair.tables.entries.count == 11)
  }

  /// The steps back from the newest entry, of 1, 2, 4 and 8 entries, miss the two that are left.
  @Test func aLogThatWasTruncatedIsHealed() {
    var pair = owned()
    for body in 1...20 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    let entries = pair.tables.entries
    _ = pair.takeDone(0)
    pair.tables.truncate(before: 15)
    pair.tables.lose(5)
    #expect(pair.tables.entries.map(\.position.sequence) == [15, 16])
    pair.submit([21], 0, at: 3 * Self.second)
    #expect(pair.takeDone(0).prefix(1) == [.healed(5)])
    #expect(pair.tables.entries.prefix(7) == entries[14...])
  }

  @Test func aLogWithATakeoverIsNotHealed() {
    var pair = owned()
    for body in 1...3 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    _ = pair.takeDone(0)
    pair.tables.lose(2)
    // A node that has not seen the lost entries takes over.
    for quarter in 0..<20 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(pair.nodes[1].role == .owner(epoch: 2))
    pair.submit([4], 0, at: 4 * Self.second)
    #expect(pair.takeDone(0) == [.stepDown, .report(.notOwner)])
    #expect(pair.tables.entries.map(\.kind) == [.takeover, .batch, .takeover])
  }

  /// A follower waits for the owner, and does not take over meanwhile.
  @Test(arguments: [true, false])
  func aFollowerThatIsAheadWaitsForTheOwner(isOwnerAlive: Bool) {
    var pair = owned()
    for body in 1...3 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    pair.tick(1, at: 3 * Self.second)
    _ = pair.nodes[1].follow([pair.tables.entries[3]])
    #expect(pair.nodes[1].tail.applied == pair.tables.head)
    _ = pair.takeDone(1)
    pair.tables.lose(2)
    var end: Int64?
    for quarter in 13..<60 as Range<Int64> where end == nil {
      if isOwnerAlive, let session = pair.tables.owner {
        _ = pair.tables.perform(.renew(session, renewal: UInt64(quarter), confirmed: 0))
      }
      pair.tick(1, at: quarter * Self.second / 4)
      if pair.takeDone(1) == [.rejoin(.diverged)] { end = quarter }
    }
    // From 3.25 seconds on: for six seconds, or for three.
    #expect(end == (isOwnerAlive ? 37 : 25))
  }

  /// Some files of a replica are further than others. The log lost what they have.
  @Test func aReplicaIsWholeAtItsGreatestMark() {
    var pair = owned()
    for body in 1...3 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    let mark = pair.tables.head
    pair.nodes[1] = ClusterNode(number: 2, after: LogPosition(), mark: mark, secret: 1, renewal: 0)
    pair.tables.lose(1)
    for quarter in 13..<40 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(!pair.nodes[1].tail.isWhole && pair.nodes[1].role == .follower)
    #expect(pair.takeDone(1).last == .rejoin(.diverged))
  }

  /// The only file with the last entry had it durably, so it is confirmed although no owner said so.
  @Test func aReplicaWithTheLastEntryInOneFileTakesOver() {
    var pair = owned()
    for body in 1...3 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    let entries = pair.tables.entries
    pair.nodes[1] = ClusterNode(
      number: 2, after: entries[1].position, mark: pair.tables.head, secret: 1, renewal: 0)
    for quarter in 13..<40 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(pair.nodes[1].role == .owner(epoch: 2))
    #expect(pair.takeDone(1).first == .apply(Array(entries[2...])))
  }

  /// An observation has a part of a long log.
  @Test func aReplicaIsNotAheadOfALogThatItReadsInParts() {
    var pair = owned()
    for body in 1...20 as ClosedRange<UInt8> { pair.submit([body], 0, at: 3 * Self.second) }
    pair.tables.pageMax = TableState.pageMin
    pair.nodes[1] = ClusterNode(number: 2, after: LogPosition(), mark: pair.tables.head, secret: 1, renewal: 0)
    for tick in 0..<30 as Range<Int64> { pair.tick(1, at: 3 * Self.second + tick) }
    #expect(pair.nodes[1].tail.applied == pair.tables.head && !pair.nodes[1].tail.isAhead)
    #expect(pair.takeDone(1).allSatisfy { if case .apply = $0 { true } else { false } })
  }

  /// The tables do not answer the first node, but the second one tells it that it is the owner now.
  @Test func anOwnerStepsDownWhenAnotherNodeOwnsALaterEpoch() throws {
    var pair = owned()
    for quarter in 0..<20 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(pair.nodes[1].role == .owner(epoch: 2))
    _ = pair.takeDone(0)
    #expect(pair.nodes[0].noteOwner(in: 1, at: 0) == [] && pair.nodes[0].role == .owner(epoch: 1))
    // An append without an answer is repeated until it is certain, also by a follower.
    let sent = pair.nodes[0].submit([8], at: 6 * Self.second)
    #expect(pair.nodes[0].noteOwner(in: 2, at: 0) == [.stepDown])
    #expect(pair.nodes[0].role == .follower && pair.nodes[0].appending != nil)
    #expect(pair.nodes[0].noteOwner(in: 3, at: 0) == [])
    pair.perform(sent, 0, 7 * Self.second)
    #expect(pair.takeDone(0) == [.report(.notOwner)])
    #expect(!pair.tables.entries.contains { $0.body == [8] })
    // Its session is over, so it takes nothing back before it has seen the tables.
    pair.tick(0, at: 8 * Self.second)
    #expect(pair.nodes[0].role == .follower && pair.nodes[1].role == .owner(epoch: 2))
  }

  /// The first node stepped down for a takeover that the engine then loses. Its session is live, but it does not own the
  /// store any more.
  @Test func aSessionThatOwnsNothingMoreIsGivenUp() throws {
    var pair = owned()
    let before = pair.tables
    for quarter in 0..<20 as Range<Int64> { pair.tick(1, at: quarter * Self.second / 4) }
    #expect(pair.nodes[0].noteOwner(in: 2, at: 0) == [.stepDown])
    pair.tables = before
    pair.nodes[1] = ClusterNode(number: 2, after: LogPosition(), secret: 1, renewal: 1 << 32)
    for quarter in 20..<40 as Range<Int64> {
      for node in 0...1 { pair.tick(node, at: quarter * Self.second / 4) }
    }
    #expect(pair.nodes.filter { $0.role == .owner(epoch: 2) }.count == 1)
    #expect(pair.tables.entries.map(\.kind) == [.takeover, .takeover])
  }

  @Test func anOwnerThatRenewsIsNotReplaced() {
    var pair = owned()
    for quarter in 12..<60 as Range<Int64> {
      pair.tick(0, at: quarter * Self.second / 4)
      pair.tick(1, at: quarter * Self.second / 4)
    }
    #expect(pair.nodes.map(\.role) == [.owner(epoch: 1), .follower])
  }

  @Test func aHandoverNeedsNoWait() {
    var pair = owned()
    pair.tick(1, at: 0)
    let actions = pair.nodes[0].handOver(at: 3 * Self.second)
    #expect(!pair.nodes[0].mayAnswerReads(at: 3 * Self.second))
    pair.perform(actions, 0, 3 * Self.second)
    #expect(pair.takeDone(0).last == .stepDown)
    pair.tick(1, at: Self.second)
    pair.tick(1, at: Self.second * 2)
    #expect(pair.nodes[1].role == .owner(epoch: 2))
  }

  /// A request to begin a session that was delayed must not end the session that began after it.
  @Test func aDelayedBeginOfASessionIsRefused() {
    var tables = TableState(secret: 1, skew: 0)
    var lease = NodeLease(node: 1, timing: ClusterTiming(), renewal: 0)
    let first = lease.request(at: 0, confirmed: 0)
    #expect(first == .beginSession(node: 1, after: 0, renewal: 1))
    let second = TableRequest.beginSession(node: 1, after: 0, renewal: 2)
    #expect(lease.request(at: Self.second, confirmed: 0) == second)
    let (reply, _) = tables.perform(second)
    _ = lease.receive(reply, to: second, sentAt: Self.second)
    #expect(lease.holds(at: 3 * Self.second))
    #expect(tables.perform(.beginSession(node: 1, after: 0, renewal: 1)).0 == .sessionOver(last: 1))
    #expect(tables.perform(.renew(NodeSession(node: 1, session: 1), renewal: 3, confirmed: 0)).0 == .renewed)
  }

  /// An observation that was delayed shows an entry that was lost. A confirmation of its sequence is not one of it.
  @Test func aConfirmationIsOfAPosition() throws {
    var tail = EntryTail(after: LogPosition(), secret: 1)
    let lost = SharedEntry(.batch, [1], after: LogPosition(), epoch: 1, secret: 1)
    let kept = SharedEntry(.batch, [2], after: LogPosition(), epoch: 1, secret: 1)
    func seen(_ entry: SharedEntry) -> StoreObservation {
      StoreObservation(epoch: 1, owner: nil, confirmed: 0, firstSequence: 1, entries: [entry], head: 1)
    }
    try tail.see(seen(lost))
    tail.confirm(upTo: kept.position)
    #expect(tail.takeConfirmed() == [])
    try tail.see(seen(kept))
    #expect(tail.takeConfirmed() == [kept])
    let stranger = SharedEntry(.batch, [3], after: lost.position, epoch: 1, secret: 1)
    #expect(throws: EntryTail.Break.diverged) { try tail.see(seen(stranger)) }
  }
}
