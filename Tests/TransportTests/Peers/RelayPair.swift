import Synchronization
import TestSupport

@testable import Transport

/// An owner with a port for its peers, a node in front of it that relays everything, and the same handler on a server of
/// its own.
final class RelayPair: Sendable {
  static let key = key(1)

  let direct: TestServer
  let front: TestServer
  let relay: Relay
  let owner: Mutex<PeerServer?>
  let address: NodeAddress

  init(
    loops: Int = 1, idsHappenOnce: Bool = false, configure: (inout TransportConfiguration) -> Void = { _ in },
    via proxyPort: ((NodeAddress) throws -> Int)? = nil, handler: any RequestHandler
  ) throws {
    func settings(_ configuration: inout TransportConfiguration) {
      configuration.clock = nil
      configure(&configuration)
    }
    var limits = TransportConfiguration()
    limits.loops = loops
    settings(&limits)
    direct = try TestServer(loops: loops, configure: settings, handler: handler)
    let peer = try PeerServer(key: Self.key, host: "127.0.0.1", port: 0, limits: limits, handler: handler)
    address = try peer.start()
    owner = Mutex(peer)
    var reached = address
    if let proxyPort { reached.port = try proxyPort(address) }
    let shared = Shared(RelayTarget.node(reached))
    var configuration = RelayConfiguration(limits: limits)
    configuration.idsHappenOnce = idsHappenOnce
    relay = try Relay(key: Self.key, configuration: configuration) { shared.value.withLock { $0 } }
    front = try TestServer(loops: loops, configure: settings, handler: relay)
    current = shared
  }

  deinit {
    front.server.stop(graceSeconds: 0)
    owner.withLock { $0 }?.stop(graceSeconds: 0)
  }

  private final class Shared: Sendable {
    let value: Mutex<RelayTarget>
    init(_ value: RelayTarget) { self.value = Mutex(value) }
  }

  private let current: Shared

  /// Changes the target and tells the relay.
  func setTarget(_ target: RelayTarget) {
    current.value.withLock { $0 = target }
    relay.targetChanged()
  }

  /// Ends the owner at once, as if its process had died: no request finishes.
  func killOwner() {
    let peer = owner.withLock { owner in
      defer { owner = nil }
      return owner
    }
    peer?.stop(graceSeconds: 0)
  }

  static func key(_ byte: UInt8) -> ClusterKey {
    guard let key = ClusterKey([UInt8](repeating: byte, count: ClusterKey.byteCount)) else {
      preconditionFailure("the key has its length")
    }
    return key
  }
}
