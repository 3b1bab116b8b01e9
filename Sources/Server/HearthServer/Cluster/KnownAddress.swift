import Synchronization
import Transport

/// The address of a node, or none, and the way to it.
final class KnownAddress: Sendable {
  private struct State {
    var address: NodeAddress?
    /// The node that passes requests on to the one at `address`, which is not reached directly.
    var detour: NodeAddress?
  }

  private let state = Mutex(State())

  /// The address.
  var address: NodeAddress? { state.withLock { $0.address } }

  /// The node on a detour to the address.
  var detour: NodeAddress? { state.withLock { $0.detour } }

  /// The target of a relay.
  var target: RelayTarget {
    state.withLock { state in
      guard let address = state.address else { return .none }
      return state.detour.map(RelayTarget.detour) ?? .node(address)
    }
  }

  /// Sets the address, or `nil` if none is known. A detour to another one ends.
  func set(_ known: NodeAddress?) {
    state.withLock { state in
      if state.address != known { state = State(address: known) }
    }
  }

  /// Begins or ends a detour to an address. Returns whether that changed something. Of no effect if another address is known now.
  func setDetour(_ detour: NodeAddress?, to address: NodeAddress) -> Bool {
    state.withLock { state in
      guard state.address == address, state.detour != detour else { return false }
      state.detour = detour
      return true
    }
  }
}
