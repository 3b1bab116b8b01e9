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
  let owner: Mutex<NodeServer?>
  let address: NodeAddress

  init(
    loops: Int = 1, usesManualClock: Bool = false, relayKey: NodeKey = key, repetition: RequestRepetition = .never,
    isForConsole: Bool = false, configure: (inout TransportConfiguration) -> Void = { _ in },
    via proxyPort: ((NodeAddress) throws -> Int)? = nil, handler: any RequestHandler
  ) throws {
    func settings(_ configuration: inout TransportConfiguration) {
      if !usesManualClock { configuration.clock = nil }
      configure(&configuration)
    }
    var limits = TransportConfiguration()
    limits.loops = loops
    settings(&limits)
    direct = try TestServer(loops: loops, configure: settings, handler: handler)
    let peer = try NodeServer(key: Self.key, host: "127.0.0.1", port: 0, limits: limits, handler: handler)
    address = try peer.start()
    owner = Mutex(peer)
    var reached = address
    if let proxyPort { reached.port = try proxyPort(address) }
    let shared = Shared(RelayTarget.node(reached))
    var relaying = RelayConfiguration(limits: limits)
    relaying.repetition = { _ in repetition }
    relaying.isForConsole = isForConsole
    relay = try Relay(key: relayKey, configuration: relaying) { shared.value.withLock { $0 } }
    front = try TestServer(loops: loops, configure: settings, handler: relay)
    current = shared
  }

  deinit {
    front.server.stop(graceSeconds: 0)
    owner.withLock { $0 }?.stop(graceSeconds: 0)
    for other in others.withLock({ $0 }) { other.stop(graceSeconds: 0) }
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

  /// Starts another node. Returns its address; it runs until the pair ends.
  func startNode(_ handler: any RequestHandler) throws -> NodeAddress {
    var limits = TransportConfiguration()
    limits.loops = 1
    let peer = try NodeServer(key: Self.key, host: "127.0.0.1", port: 0, limits: limits, handler: handler)
    let address = try peer.start()
    others.withLock { $0.append(peer) }
    return address
  }

  private let others = Mutex<[NodeServer]>([])

  /// Ends the owner at once, as if its process had died: no request finishes.
  func killOwner() {
    let peer = owner.withLock { owner in
      defer { owner = nil }
      return owner
    }
    peer?.stop(graceSeconds: 0)
  }

  static func key(_ byte: UInt8) -> NodeKey {
    guard let key = NodeKey([UInt8](repeating: byte, count: NodeKey.byteCount)) else {
      preconditionFailure("the key has its length")
    }
    return key
  }
}
