import Synchronization
import Transport

/// The relays to the nodes that have WebChannel sessions. Any node may get a request for a session of another one.
final class ChannelRelays: Sendable {
  private struct Node {
    let relay: Relay
    let address: KnownAddress
  }

  private let key: NodeKey
  private let configuration: RelayConfiguration
  /// The nodes that were alive once.
  private let nodes = Mutex<[UInt16: Node]>([:])

  init(key: NodeKey, _ configuration: RelayConfiguration) {
    self.key = key
    self.configuration = configuration
  }

  /// Returns the relay to a node, or `nil` if no such node is alive: then nobody has the session, and its client opens a
  /// new one.
  func relay(to node: UInt16) -> Relay? {
    nodes.withLock { nodes in
      guard let node = nodes[node], node.address.address != nil else { return nil }
      return node.relay
    }
  }

  /// Sets the nodes that are alive.
  func update(_ alive: [UInt32: NodeAddress]) {
    nodes.withLock { nodes in
      for (number, node) in nodes where alive[UInt32(number)] == nil { node.address.set(nil) }
      for (number, address) in alive {
        guard let number = UInt16(exactly: number), let node = nodes[number] ?? make(&nodes, number) else { continue }
        guard node.address.address != address else { continue }
        node.address.set(address)
        node.relay.targetChanged()
      }
    }
  }

  /// Makes the relay to a node. Returns `nil` without memory: then the session's requests are refused.
  private func make(_ nodes: inout [UInt16: Node], _ number: UInt16) -> Node? {
    let address = KnownAddress()
    guard let relay = try? Relay(key: key, configuration: configuration, target: { address.target }) else { return nil }
    let node = Node(relay: relay, address: address)
    nodes[number] = node
    return node
  }
}
