import Replication
import Synchronization
import Transport

/// The address of a node, or none, and the way to it.
final class KnownAddress: Sendable {
  /// A node that passes requests on to the address, which is not reached directly.
  private struct Detour {
    let node: NodeAddress
    /// The time at which the node confirmed that it reaches the address, in microseconds.
    let confirmed: Int64
  }

  private struct State {
    var address: NodeAddress?
    var detour: Detour?
  }

  /// The time after the last confirmation of a detour at which another node may take its place, in microseconds.
  private static let trusted: Int64 = 3_000_000
  /// The time after the last confirmation at which a detour ends, in microseconds.
  private static let lasting: Int64 = 10_000_000

  private let state = Mutex(State())
  private let now: @Sendable () -> Int64

  /// Creates an object without an address. `now` returns the time in microseconds.
  init(now: @escaping @Sendable () -> Int64 = BootTime.now) { self.now = now }

  /// The address.
  var address: NodeAddress? { state.withLock { $0.address } }

  /// The node on a detour to the address.
  var detour: NodeAddress? { state.withLock { $0.detour?.node } }

  /// The target of a relay.
  var target: RelayTarget {
    state.withLock { state in
      guard let address = state.address else { return .none }
      return state.detour.map { .detour($0.node) } ?? .node(address)
    }
  }

  /// Sets the address, or `nil` if none is known. A detour to another one ends.
  func set(_ known: NodeAddress?) {
    state.withLock { state in
      if state.address != known { state = State(address: known) }
    }
  }

  /// Notes that a node reaches an address. Returns whether a detour by this node begins now.
  func confirmDetour(_ node: NodeAddress, to address: NodeAddress) -> Bool {
    let time = now()
    return state.withLock { state in
      let detour = state.detour
      let isFree = detour.map { $0.node == node || time - $0.confirmed > Self.trusted } ?? true
      guard state.address == address, isFree else { return false }
      state.detour = Detour(node: node, confirmed: time)
      return detour?.node != node
    }
  }

  /// Ends a detour, with `isOverdue` only one that was not confirmed for long. Returns whether one ended.
  func endDetour(isOverdue: Bool = false) -> Bool {
    let time = now()
    return state.withLock { state in
      guard let detour = state.detour else { return false }
      if isOverdue, time - detour.confirmed <= Self.lasting { return false }
      state.detour = nil
      return true
    }
  }

  /// Whether a detour was confirmed in the last seconds.
  var hasTrustedDetour: Bool {
    let time = now()
    return state.withLock { state in state.detour.map { time - $0.confirmed <= 2 * Self.trusted } ?? false }
  }
}
