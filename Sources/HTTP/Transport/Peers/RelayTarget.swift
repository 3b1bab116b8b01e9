/// The address at which a node accepts connections of the others.
package struct NodeAddress: Sendable, Hashable, CustomStringConvertible {
  /// A name or a numeric address.
  package var host: String
  /// From 1 to 65535.
  package var port: Int

  /// Creates an address.
  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// The address as `host:port`, or `[host]:port` if the host has colons.
  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The node to which a ``Relay`` passes requests.
package enum RelayTarget: Sendable, Equatable {
  /// No node is known to own the project now. Requests wait.
  case none
  /// This node owns it. A node that has just become the owner names its own peer address here, so that the requests that
  /// waited in its relay reach its handlers.
  case node(NodeAddress)
  /// Another node owns it that this one does not reach. The node at this address passes requests on to it.
  case detour(NodeAddress)

  /// The address to which requests are sent.
  var address: NodeAddress? {
    switch self {
    case .none: nil
    case .node(let address), .detour(let address): address
    }
  }
}
