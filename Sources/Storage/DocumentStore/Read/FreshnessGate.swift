/// Waits until this node has every commit that any node of a cluster had acknowledged.
///
/// A node that writes to its databases needs none: its newest snapshot is the newest state.
package protocol FreshnessGate: Sendable {
  /// Calls `done` once, on any thread, perhaps before this returns: with `true` when the databases of this node show every
  /// commit that was acknowledged before this call, with `false` if that cannot be found out now.
  func whenNewest(_ done: @escaping @Sendable (Bool) -> Void)
}
