import Gateway
import GatewayCore
import Transport

/// The requests that a node of a cluster serves with a stack. Requests under way retain it, and so the project's files stay open
/// until they end.
final class StackRequests: RequestHandler {
  let stack: ProjectStack

  init(_ stack: ProjectStack) { self.stack = stack }

  /// Whether a handler that was chosen for a request is that of a stack.
  static func isOwned(_ handler: any RequestHandler, by stack: ObjectIdentifier) -> Bool {
    (handler as? StackRequests).map { ObjectIdentifier($0.stack) == stack } ?? false
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    stack.gateway.requests.handle(request, exchange)
  }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    stack.gateway.requests.openBody(of: request, exchange)
  }
}
