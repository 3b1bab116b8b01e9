import DocumentModel

/// The hub's record of a listener: its targets, and the changes that the current step has found for it.
struct SubscriberRecord {
  /// One target.
  struct Target {
    let selection: TargetSelection
    /// The view of the query; `nil` for targets of documents.
    var view: QueryView?
    /// The documents on which the authorization of the target depends.
    var guards: [DocumentKey] = []
    /// Whether the listener was notified of the version from which the hub follows the target.
    var isJoined = false
  }

  let subscriber: Subscriber
  /// The beats in which the listener receives NO_CHANGE; see ``WatchHubState/slots``.
  let slot: Int
  var targets: [Int: Target] = [:]
  /// Whether every commit wakes the listener.
  var receivesAll = false
  /// Whether the listener is not notified of changes until it rejoins.
  var isDetached = false
  /// The changes that the current step has found for the listener.
  var parts: [WatchBatch.Part] = []

  init(_ subscriber: Subscriber, slot: Int) {
    self.subscriber = subscriber
    self.slot = slot
  }

  /// Adds changes of a target to the next batch, if the listener follows the target. Returns whether they are the first.
  mutating func add(_ delta: TargetDelta?, for target: Int) -> Bool {
    guard !isDetached, targets[target]?.isJoined == true else { return false }
    parts.append(WatchBatch.Part(target: target, delta: delta))
    return parts.count == 1
  }

  /// Delivers the next batch.
  mutating func deliverBatch(at version: Int64) {
    var parts: [WatchBatch.Part] = []
    swap(&parts, &self.parts)
    deliver(.batch(WatchBatch(version: version, parts: parts)))
  }

  /// Delivers a batch or NO_CHANGE. If the mailbox overflows, the listener must rejoin.
  mutating func deliver(_ event: Subscriber.Event) {
    if !isDetached, !subscriber.deliver(event) { isDetached = true }
  }
}

/// A target of a listener.
struct Subscription: Hashable {
  /// The index of the listener's record.
  let record: Int
  /// The hub's number of the target.
  let target: Int
}
