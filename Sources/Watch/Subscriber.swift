import DocumentModel

/// A listener as its feed knows it: what it follows, and what a step has for it.
final class Subscriber {
  /// One target.
  struct Target {
    let selection: TargetSelection
    /// The view of its query.
    let view: QueryView?
    /// The documents that its admission rests on.
    var guards: [DocumentKey] = []
    /// Whether it was told from which version on it is followed.
    var isJoined = false
  }

  let listener: WatchMailbox
  /// When it is told that nothing happened.
  let slot: Int
  var targets: [Int: Target] = [:]
  /// Whether it is woken by every commit.
  var receivesAll = false
  /// Whether it is told nothing until it asks to be caught up.
  var isDetached = false
  /// What the step under way has for it.
  var parts: [WatchBatch.Part] = []

  init(_ listener: WatchMailbox, slot: Int) {
    self.listener = listener
    self.slot = slot
  }

  /// Has it told of nothing until it asks.
  func detach() {
    isDetached = true
    listener.lag()
  }
}
