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
}

/// A target of a listener.
struct Subscription: Hashable {
  /// The index of the listener's record.
  let record: Int
  /// The hub's number of the target.
  let target: Int
}
