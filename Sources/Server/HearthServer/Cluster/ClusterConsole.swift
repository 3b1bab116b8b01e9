import Transport

/// Passes the requests that a node of a cluster receives at the address of its console to the project's stack if this node
/// owns the cluster, and otherwise to the owner: it has the sessions of the operators.
final class ClusterConsole: RequestHandler {
  private let door: ClusterDoor
  private let relay: Relay

  /// Creates a console. `relay` says that its requests are for the console.
  init(_ door: ClusterDoor, _ relay: Relay) {
    self.door = door
    self.relay = relay
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let handler = exchange.chosen ?? choose()
    exchange.chosen = handler
    handler.handle(request, exchange)
  }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let handler = choose()
    exchange.chosen = handler
    return handler.openBody(of: request, exchange)
  }

  private func choose() -> any RequestHandler { door.console ?? relay }
}
