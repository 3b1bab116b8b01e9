/// A target that joins when the hub has what its client may have seen at another node: a version, and every commit that was
/// acknowledged before it was added.
struct PendingJoin {
  let subscription: Subscription
  let selection: TargetSelection
  var dependencies: AuthorizationDependencies
  let version: Int64
  /// The question to the node that writes to the database whose answer the target awaits, or `nil` after it.
  var question: Int?
  /// The beats before the stream fails.
  var beatsLeft = WatchHub.joinBeatsMax

  init(
    _ subscription: Subscription, _ selection: TargetSelection, _ dependencies: AuthorizationDependencies,
    _ version: Int64, question: Int?
  ) {
    self.subscription = subscription
    self.selection = selection
    self.dependencies = dependencies
    self.version = version
    self.question = question
  }

  /// Clients connect again after it.
  static let failure = WatchError.behind("This node is behind the position of the listener. Try again.")
}
