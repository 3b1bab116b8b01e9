import GatewayCore
import Transport

/// Tells a node that does not reach the owner whether this one does: `POST /detour`. The response is the address of the owner to
/// which this node relays, as text. A node that does not reach the owner itself refuses the request.
final class DetourHandler: RequestHandler {
  /// The path of the requests.
  static let path = "/detour"

  private let owner: @Sendable () -> NodeAddress?

  /// Creates a handler. `owner` returns the address of the owner, if this node reaches it.
  init(_ owner: @escaping @Sendable () -> NodeAddress?) { self.owner = owner }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { exchange.refuseAsNotOwner() }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    guard let owner = owner() else {
      exchange.refuseAsNotOwner()
      return nil
    }
    exchange.respond(
      status: 200, headers: { _ in }, compressible: false, body: { $0.append(contentsOf: owner.description.utf8) })
    return nil
  }
}
