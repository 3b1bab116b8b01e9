import DocumentModel

/// A listener as seen by the hub: its targets, and the changes that the current step has found for it.
final class Subscriber {
  /// One target.
  struct Target {
    let selection: TargetSelection
    /// The view of the query; `nil` for targets of documents.
    let view: QueryView?
    /// The documents on which the authorization of the target depends.
    var guards: [DocumentKey] = []
    /// Whether the listener was notified of the version from which the hub follows the target.
    var isJoined = false
  }

  let mailbox: WatchMailbox
  /// The beats in which the listener receives NO_CHANGE; see ``WatchHubState/slots``.
  let slot: Int
  var targets: [Int: Target] = [:]
  /// Whether every commit wakes the listener.
  var receivesAll = false
  /// Whether the listener is not notified of changes until it rejoins.
  var isDetached = false
  /// The changes that the current step has found for the listener.
  var parts: [WatchBatch.Part] = []

  init(_ mailbox: WatchMailbox, slot: Int) {
    self.mailbox = mailbox
    self.slot = slot
  }

  /// Stops notifying the listener until it rejoins.
  func detach() {
    isDetached = true
    mailbox.discardAndMarkLagging()
  }
}
