package import LogEngine

/// A node, in one of its lives. A node begins a session when it starts, and another one when others declared it dead.
package struct NodeSession: Hashable, Sendable {
  package let node: UInt32
  /// Increases with each session of the node.
  package let session: UInt64

  package init(node: UInt32, session: UInt64) {
    self.node = node
    self.session = session
  }
}

/// The owner of a store as another node saw it: if it does not change for a while, the owner may be dead.
package struct OwnerMark: Equatable, Sendable {
  package let owner: NodeSession
  /// The number of the last renewal of its session.
  package let renewal: UInt64
  /// Whether the session is the last one of its node and was not ended by others.
  package let isLive: Bool

  package init(owner: NodeSession, renewal: UInt64, isLive: Bool) {
    self.owner = owner
    self.renewal = renewal
    self.isLive = isLive
  }
}

/// A request to the tables of a cluster. Each is one transaction, applied whole or not at all.
package enum TableRequest: Equatable, Sendable {
  /// Begins the session of a node after the session with this number, if that is still its last one.
  ///
  /// Without the condition, a request that was delayed could end a session that began later, whose owner still counts on
  /// its lease.
  case beginSession(node: UInt32, after: UInt64, renewal: UInt64)
  /// Extends a session: the number of its last renewal becomes this one, unless it is greater already. Notes how far the
  /// node has confirmed the log of the store that it owns.
  ///
  /// The node chooses a new number for each request. If the tables counted, a renewal that was visible and then lost at a
  /// failover would have the same number as the next one, and a node that saw the first would not notice the second.
  case renew(NodeSession, renewal: UInt64, confirmed: UInt64)
  /// Reads the state of the store, and entries after a sequence.
  case observe(after: UInt64)
  /// Inserts an entry if its position is free, and the entry before it is at `behind` and of the same epoch. A handover also
  /// removes the owner.
  case append(SharedEntry, behind: LogPosition)
  /// Changes nothing, in a transaction that is durable when it is answered, if the log has this position.
  case settle(LogPosition)
  /// Makes a node the owner of the store in the next epoch, and inserts its takeover entry at the end.
  ///
  /// Its conditions: the epoch is still `epoch`; the session of the new owner is live; and the store has no owner, or the
  /// owner's session is over, or it is that of `dead` and was not renewed since. That session is ended.
  case takeOver(by: NodeSession, from: OwnerMark?, epoch: UInt64)
}

/// The answer to a ``TableRequest``. The answer to a request that changed something means that the change is durable.
package enum TableReply: Equatable, Sendable {
  case session(NodeSession)
  case renewed
  /// The last session of the node is another one, with this number, or others ended it.
  case sessionOver(last: UInt64)
  case observed(StoreObservation)
  case appended
  /// Nothing was inserted. Another entry is at the position, or `nil` if the entry before it is missing or of another epoch.
  case refused(found: LogPosition?)
  case settled
  case notSettled
  case takenOver(SharedEntry)
  case notTaken
}

/// The state of a store in the tables, from one snapshot.
package struct StoreObservation: Equatable, Sendable {
  package let epoch: UInt64
  package let owner: OwnerMark?
  /// The sequence up to which an owner has confirmed entries.
  package let confirmed: UInt64
  /// The sequence of the first entry that the log has, or would have if it is empty.
  package let firstSequence: UInt64
  /// The entries after the requested sequence, in order, without a gap.
  package let entries: [SharedEntry]
  /// The requested sequence.
  package let after: UInt64
  /// The position of the entry with the requested sequence, or `nil` if the log does not have it.
  package let previous: LogPosition?
  /// The sequence of the last entry of the log. ``entries`` may end before it.
  package let head: UInt64

  package init(
    epoch: UInt64, owner: OwnerMark?, confirmed: UInt64, firstSequence: UInt64, entries: [SharedEntry],
    after: UInt64 = 0, previous: LogPosition? = nil, head: UInt64
  ) {
    self.head = head
    self.after = after
    self.previous = previous
    self.epoch = epoch
    self.owner = owner
    self.confirmed = confirmed
    self.firstSequence = firstSequence
    self.entries = entries
  }
}

/// The tables of a cluster about one store and its nodes. The engine that holds them makes them durable.
package protocol SharedTables: AnyObject, Sendable {
  /// Performs a request and waits for its answer. Returns `nil` if the answer was lost: the request may have been performed,
  /// or may yet be.
  func perform(_ request: TableRequest) -> TableReply?
}

/// The times of the protocol, in microseconds. Each node measures them with its own clock, which must not stop while the
/// machine sleeps. The rates of two clocks may differ by a tenth.
package struct ClusterTiming: Sendable {
  /// The time for which a renewal counts, from the moment before it was sent.
  package var lease: Int64 = 2_500_000
  /// The time for which a mark must stay the same before its owner counts as dead.
  package var silence: Int64 = 3_000_000
  /// The time between two renewals.
  package var renewal: Int64 = 1_000_000
  /// The time between two observations.
  package var poll: Int64 = 250_000
  /// The time for which a node observes often after ``ClusterNode/hurry(at:)``, and the time between two observations then.
  package var hurry: Int64 = 500_000
  package var hurriedPoll: Int64 = 10_000
  /// The time between two looks of an owner at the end of the log.
  package var check: Int64 = 1_000_000
  /// The time for which a node whose replica has entries that the log lost waits for the owner to append them again.
  package var healing: Int64 = 6_000_000
  /// The greatest difference between the clock of an owner and that of the tables, and the floor of a new epoch above the
  /// clock of the tables.
  package var skew: Int64 = 500_000

  package init() {}
}
