import Synchronization
import Transport

/// The address of a node, or none.
final class KnownAddress: Sendable {
  private let address = Mutex<NodeAddress?>(nil)

  /// The target of a relay.
  var target: RelayTarget { address.withLock { $0.map(RelayTarget.node) ?? .none } }

  /// Sets the address, or `nil` if none is known.
  func set(_ known: NodeAddress?) { address.withLock { $0 = known } }
}
