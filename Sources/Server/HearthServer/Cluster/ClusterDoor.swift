import Gateway
import GatewayCore
import Synchronization
import Transport

/// Passes the requests that a node of a cluster receives to the project's stack if this node owns the cluster, and otherwise
/// to the owner. Health checks are answered by each node itself.
final class ClusterDoor: RequestHandler {
  private let relay: Relay
  private let operations: RequestDispatcher
  private let owned = Mutex<OwnerRequests?>(nil)

  /// Creates a door that relays everything but `operations`: `/healthz` and `/readyz`.
  init(_ relay: Relay, operations: RequestDispatcher) {
    self.relay = relay
    self.operations = operations
  }

  /// Sets the handler of requests while this node owns the cluster, or `nil` if another node does.
  func serve(_ requests: OwnerRequests?) { owned.withLock { $0 = requests } }

  /// Whether requests are served here.
  var isOwner: Bool { owned.withLock { $0 != nil } }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let handler = exchange.chosen ?? choose(request)
    exchange.chosen = handler
    handler.handle(request, exchange)
  }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let handler = choose(request)
    exchange.chosen = handler
    return handler.openBody(of: request, exchange)
  }

  private func choose(_ request: borrowing HTTPRequest) -> any RequestHandler {
    if !request.isRelayed, Self.isOperation(request) { return operations }
    // A relay refuses requests that another node relayed: their node must look for the owner again.
    return owned.withLock { $0 } ?? relay
  }

  private static func isOperation(_ request: borrowing HTTPRequest) -> Bool {
    let path = request.target.pathAndQuery.path
    return path.elementsEqual("/healthz".utf8) || path.elementsEqual("/readyz".utf8)
  }
}
