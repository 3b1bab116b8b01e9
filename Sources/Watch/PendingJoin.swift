/// A target that joins when the hub has reached the version that its client has seen at another node.
struct PendingJoin {
  let subscription: Subscription
  let selection: TargetSelection
  var dependencies: AuthorizationDependencies
  let version: Int64
  /// The beats before the stream fails.
  var beatsLeft = WatchHub.joinBeatsMax

  init(
    _ subscription: Subscription, _ selection: TargetSelection, _ dependencies: AuthorizationDependencies,
    _ version: Int64
  ) {
    self.subscription = subscription
    self.selection = selection
    self.dependencies = dependencies
    self.version = version
  }

  /// Clients connect again after it.
  static let failure = WatchError.behind("This node is behind the position of the listener. Try again.")
}
