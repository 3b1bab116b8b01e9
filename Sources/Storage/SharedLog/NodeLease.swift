/// The session of a node, and the time until which it may count on being an owner.
///
/// It compares times of this node's own clock only. A renewal counts from the moment before it was sent, so the time that
/// another node has watched its mark is always later.
package struct NodeLease: Sendable {
  package private(set) var session: NodeSession?

  private let node: UInt32
  private let timing: ClusterTiming
  /// The last session of the node that is known.
  private var last: UInt64 = 0
  private var renewal: UInt64
  /// The time at which the lease ends, unless a renewal is answered before. It means nothing without a session.
  package private(set) var until = Int64.min
  private var nextRequest = Int64.min

  /// Creates a lease without a session. The numbers of its renewals begin after `renewal`, which no earlier life of the node
  /// came near: a random number.
  package init(node: UInt32, timing: ClusterTiming, renewal: UInt64) {
    self.node = node
    self.timing = timing
    self.renewal = renewal
  }

  /// Whether the lease is in force.
  package func holds(at now: Int64) -> Bool { session != nil && now < until }

  /// Ends the session. The next request begins another one, which tells the tables that this one is over.
  package mutating func giveUp() {
    session = nil
    nextRequest = .min
  }

  /// Returns the request that is due, or `nil`. The caller passes its answer to ``receive(_:to:sentAt:)``.
  package mutating func request(at now: Int64, confirmed: UInt64) -> TableRequest? {
    guard now >= nextRequest else { return nil }
    nextRequest = now + timing.renewal
    renewal &+= 1
    guard let session else { return .beginSession(node: node, after: last, renewal: renewal) }
    return .renew(session, renewal: renewal, confirmed: confirmed)
  }

  /// Handles the answer to a request that was sent at a time. Returns `false` if the session is over: this node owns nothing
  /// any more.
  package mutating func receive(_ reply: TableReply?, to request: TableRequest, sentAt: Int64) -> Bool {
    switch (request, reply) {
    case (.beginSession(_, let after, _), .session(let begun)):
      guard session == nil, after == last else { return true }
      session = begun
      last = begun.session
      until = sentAt + timing.lease
    case (.beginSession(_, let after, _), .sessionOver(let found)):
      guard session == nil, after == last else { return true }
      // It may be lower than a number that was visible and lost.
      last = found
      nextRequest = .min
    case (.renew(let renewed, _, _), .renewed):
      if renewed == session { until = max(until, sentAt + timing.lease) }
    case (.renew(let renewed, _, _), .sessionOver(let found)):
      guard renewed == session else { return true }
      giveUp()
      last = found
      return false
    default: break
    }
    return true
  }
}

/// Watches the mark of an owner, to notice that it may be dead.
package struct OwnerWatch: Sendable {
  private var mark: OwnerMark?
  private var since: Int64?

  package init() {}

  /// Notes a mark that was received at a time.
  package mutating func note(_ mark: OwnerMark?, at now: Int64) {
    guard mark != self.mark || since == nil else { return }
    self.mark = mark
    since = now
  }

  /// Notes that an observation failed. An outage of the tables must not look like the death of an owner.
  package mutating func noteFailure() { since = nil }

  /// Whether the mark has not changed for a time.
  package func isSilent(for duration: Int64, at now: Int64) -> Bool { since.map { now - $0 >= duration } ?? false }
}
