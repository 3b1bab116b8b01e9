package import Transport

/// Passes each request to its route. It matches a request once, when its head has arrived.
package final class RequestDispatcher: RequestHandler {
  private let router: Router
  /// The routes, in order.
  package let endpoints: [any Endpoint]

  /// Creates a dispatcher for the routes of all APIs, in the order in which they are tried.
  package init(_ endpoints: [any Endpoint]) {
    self.endpoints = endpoints
    router = Router(endpoints)
  }

  /// Handles a request. Responds at once or later, on the loop of the connection.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let responder = Responder(exchange, request)
    guard !request.isForwardedToAdminSocket else {
      return responder.sendText(
        403,
        "The admin socket serves no proxies and no browsers. Send requests to it directly, with the host localhost.\n")
    }
    guard request.method != .options else { return responder.sendPreflight(request) }
    guard let endpoint = endpoint(for: request, exchange) else { return responder.sendText(404, "Not Found\n") }
    endpoint.handle(request, exchange.match, responder)
  }

  /// Opens the body of a request whose route reads it piece by piece.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    guard request.method != .options, !request.isForwardedToAdminSocket,
      let endpoint = endpoint(for: request, exchange), endpoint.isStreamed,
      !exchange.match.isWrongMethod
    else { return nil }
    return endpoint.open(request, exchange.match, Responder(exchange, request))
  }

  private func endpoint(for request: borrowing HTTPRequest, _ exchange: Exchange) -> (any Endpoint)? {
    if !exchange.match.isKnown { exchange.match = router.match(request) }
    guard let number = exchange.match.number else { return nil }
    let endpoint = endpoints[number]
    exchange.setKind(endpoint.kind)
    return endpoint
  }
}
