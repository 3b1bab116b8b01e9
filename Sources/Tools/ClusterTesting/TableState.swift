package import LogEngine
package import SharedLog

/// The tables of a cluster as a value: what each request does. An engine's tables must do the same.
package struct TableState: Sendable {
  /// Conditions that a mutation leaves out.
  package enum Omission: Sendable {
    /// An append does not look at the entry before it.
    case predecessor
    /// A takeover does not look at the renewals of the owner.
    case renewals
    /// The begin of a session does not look at the last one.
    case lastSession
    /// A takeover has no floor.
    case floor
    /// The tables count the renewals of a session.
    case renewalNumber
  }

  /// The last session of a node.
  package struct Node: Sendable {
    package var session: UInt64
    package var renewal: UInt64
    package var isLive = true
  }

  package var omission: Omission?
  /// The time of day of the engine.
  package var now: Int64 = 0
  package var nodes: [UInt32: Node] = [:]
  package var epoch: UInt64 = 0
  package var owner: NodeSession?
  package var confirmed: UInt64 = 0
  /// The entries from ``firstSequence`` on.
  package var entries: [SharedEntry] = []
  package var firstSequence: UInt64 = 1
  /// The position before the first entry.
  package var origin = LogPosition()
  /// The most entries of an observation.
  package var pageMax = 1024
  /// The least ``pageMax`` with which nodes find out that an entry is confirmed, unless more epochs than that had no commit. An
  /// engine limits bytes, and takeovers have few.
  package static let pageMin = 8
  package let secret: UInt64
  package let skew: Int64
  /// The position that was inserted last out of line, because ``Omission/predecessor`` permits it.
  package var stray: [SharedEntry] = []

  /// Creates tables without entries.
  package init(secret: UInt64, skew: Int64, omission: Omission? = nil) {
    self.secret = secret
    self.skew = skew
    self.omission = omission
  }

  /// The position after the last entry.
  package var head: LogPosition { entries.last?.position ?? origin }

  /// Returns the entry with a sequence, if the log has it.
  package func entry(_ sequence: UInt64) -> SharedEntry? {
    guard sequence >= firstSequence, sequence - firstSequence < UInt64(entries.count) else { return nil }
    return entries[Int(sequence - firstSequence)]
  }

  /// Performs a request as one transaction. Returns the answer, and whether anything changed.
  package mutating func perform(_ request: TableRequest) -> (TableReply, isWrite: Bool) {
    switch request {
    case .beginSession(let number, let after, let renewal):
      let last = nodes[number]?.session ?? 0
      guard last == after || omission == .lastSession else { return (.sessionOver(last: last), false) }
      nodes[number] = Node(session: last + 1, renewal: omission == .renewalNumber ? 0 : renewal)
      return (.session(NodeSession(node: number, session: last + 1)), true)
    case .renew(let session, let renewal, let confirmed):
      guard let node = nodes[session.node], node.session == session.session, node.isLive else {
        return (.sessionOver(last: nodes[session.node]?.session ?? 0), false)
      }
      nodes[session.node]?.renewal = omission == .renewalNumber ? node.renewal + 1 : max(node.renewal, renewal)
      if owner == session { self.confirmed = max(self.confirmed, confirmed) }
      return (.renewed, true)
    case .observe(let after): return (.observed(observation(after: after)), false)
    case .append(let entry, let behind): return append(entry, behind)
    case .settle(let position):
      let isThere = entry(position.sequence)?.position == position
      return (isThere ? .settled : .notSettled, isThere)
    case .takeOver(let session, let mark, let epoch): return takeOver(session, mark, epoch)
    }
  }

  private func observation(after: UInt64) -> StoreObservation {
    let mark = owner.map { owner in
      let node = nodes[owner.node]
      let isCurrent = node?.session == owner.session
      return OwnerMark(
        owner: owner, renewal: isCurrent ? node?.renewal ?? 0 : 0, isLive: isCurrent && node?.isLive == true)
    }
    return StoreObservation(
      epoch: epoch, owner: mark, confirmed: confirmed, firstSequence: firstSequence,
      entries: Array(entries.filter { $0.position.sequence > after }.prefix(pageMax)), after: after,
      previous: entry(after)?.position, head: head.sequence)
  }

  private mutating func append(_ entry: SharedEntry, _ behind: LogPosition) -> (TableReply, isWrite: Bool) {
    let sequence = entry.position.sequence
    if let found = self.entry(sequence) { return (.refused(found: found.position), false) }
    let isNext = sequence == head.sequence + 1 && behind == head && behind.epoch == entry.position.epoch
    if !isNext {
      guard omission == .predecessor else { return (.refused(found: nil), false) }
      stray.append(entry)
      return (.appended, true)
    }
    // The first entry of an epoch is its takeover, so the entry before a batch is of the same epoch and was not truncated.
    guard !entries.isEmpty || omission == .predecessor else { return (.refused(found: nil), false) }
    entries.append(entry)
    if entry.kind == .handover { owner = nil }
    return (.appended, true)
  }

  private mutating func takeOver(
    _ session: NodeSession, _ mark: OwnerMark?, _ epoch: UInt64
  ) -> (TableReply, isWrite: Bool) {
    guard self.epoch == epoch, let node = nodes[session.node], node.session == session.session, node.isLive else {
      return (.notTaken, false)
    }
    if let owner {
      guard owner == mark?.owner, owner != session else { return (.notTaken, false) }
      if let other = nodes[owner.node], other.session == owner.session, other.isLive {
        guard other.renewal == mark?.renewal || omission == .renewals else { return (.notTaken, false) }
        nodes[owner.node]?.isLive = false
      }
    }
    self.epoch += 1
    owner = session
    let note = TakeoverNote(owner: session, floor: omission == .floor ? .min : now + skew)
    let entry = SharedEntry(.takeover, note.body, after: head, epoch: self.epoch, secret: secret)
    entries.append(entry)
    return (.takenOver(entry), true)
  }

  /// Loses the newest entries, as an engine does whose asynchronous standby takes over. All are of the present epoch, and at
  /// least one entry stays.
  package mutating func lose(_ count: Int) {
    precondition(entries.suffix(count + 1).allSatisfy { $0.position.epoch == epoch }, "the takeover would be lost")
    entries.removeLast(count)
  }

  /// Forgets the entries before a sequence. The last entry stays, so the next one finds its predecessor.
  package mutating func truncate(before sequence: UInt64) {
    while let first = entries.first, first.position.sequence < sequence, entries.count > 1 {
      origin = first.position
      firstSequence = first.position.sequence + 1
      entries.removeFirst()
    }
  }
}
