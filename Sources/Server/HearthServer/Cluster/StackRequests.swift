import Gateway
import GatewayCore
import Transport

/// The requests that a node of a cluster serves with a stack: those of clients, or those of operators at the console. Requests
/// under way retain it, and so the project's files stay open until they end.
final class StackRequests: RequestHandler {
  let stack: ProjectStack
  private let requests: RequestDispatcher

  /// Creates the handler of the requests of clients.
  convenience init(_ stack: ProjectStack) { self.init(stack, stack.gateway.requests) }

  private init(_ stack: ProjectStack, _ requests: RequestDispatcher) {
    self.stack = stack
    self.requests = requests
  }

  /// The handler of the requests of operators, or `nil` if the stack has none.
  var console: StackRequests? { stack.gateway.console.map { StackRequests(stack, $0) } }

  /// Whether a handler that was chosen for a request is that of a stack.
  static func isOwned(_ handler: any RequestHandler, by stack: ObjectIdentifier) -> Bool {
    (handler as? StackRequests).map { ObjectIdentifier($0.stack) == stack } ?? false
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { requests.handle(request, exchange) }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    requests.openBody(of: request, exchange)
  }
}
