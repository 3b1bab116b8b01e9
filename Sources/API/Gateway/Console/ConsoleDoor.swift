import ConsoleAPI
import DatabaseService
package import GatewayCore
package import Transport

/// The address of the console of a production server. It serves the console's page and the requests that operators make
/// there, and nothing else.
///
/// The console has an address of its own because a browser isolates pages by origin. On the address of the apps, a
/// hosted app, or a service worker that it registers, could replace the page or read its session.
package final class ConsoleDoor: RequestHandler {
  private let page: RequestDispatcher
  private let requests: any RequestHandler
  private let address: String
  private let name: String?
  private let usesTLS: Bool

  /// Creates a door. `page` serves the page, `requests` everything else. Browsers open the console under the host
  /// `address` on which the server listens, under `name`, and under addresses and names that no site of the Internet can
  /// have. `usesTLS` says whether they reach it by TLS without a proxy.
  package init(
    page: RequestDispatcher, requests: any RequestHandler, address: String, name: String?, usesTLS: Bool
  ) {
    self.page = page
    self.requests = requests
    self.address = address
    self.name = name
    self.usesTLS = usesTLS
  }

  /// Handles a request. Responds at once or later, on the loop of the connection.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    if let refusal = refusal(of: request) { return Self.send(refusal, exchange) }
    if request.target.elementsEqual("/".utf8) {
      return Responder(exchange, request).sendRedirect(to: ConsolePages.path, status: 302)
    }
    if Self.isPage(request) { return page.handle(request, exchange) }
    guard isConfidential(request) else {
      return Responder(exchange, request).sendError(
        Status(
          .failedPrecondition,
          "Nobody can use the console over plain HTTP from another machine. Use TLS, or a tunnel such as ssh -L."))
    }
    requests.handle(request, exchange)
  }

  /// Opens the body of a request that an API reads piece by piece.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    // Without a body, the whole request is refused by `handle`.
    guard refusal(of: request) == nil, !Self.isPage(request), isConfidential(request) else { return nil }
    return requests.openBody(of: request, exchange)
  }

  private struct Refusal {
    let status: Int
    let text: StaticString
  }

  private func refusal(of request: borrowing HTTPRequest) -> Refusal? {
    // A site can let its name lead to this machine, and would then be the origin of the page.
    guard request.isFromOwnPage(hostName: name ?? address, proxyName: name) else {
      return Refusal(
        status: 421,
        text:
          "Open the console under localhost, a numeric address, a name without dots, or the name in --console-host.\n")
    }
    // No page of another origin uses these requests, so none needs permission by CORS.
    guard request.method != .options else { return Refusal(status: 403, text: "Forbidden\n") }
    guard !Self.isPage(request) else { return nil }
    if let site = request.header("sec-fetch-site"), !site.elementsEqual("same-origin".utf8) {
      return Refusal(status: 403, text: "Only the console's own page can make this request.\n")
    }
    // The console uses `fetch`, so a request for a script, style sheet, frame or image is not from it.
    if let use = request.header("sec-fetch-dest"), !use.elementsEqual("empty".utf8) {
      return Refusal(status: 403, text: "Only the console's own script can make this request.\n")
    }
    return nil
  }

  /// Whether the password or the token in a request crosses no network in clear text.
  private func isConfidential(_ request: borrowing HTTPRequest) -> Bool {
    usesTLS || request.clientAddress == nil || (request.isFromProxy && request.isForwardedTLS)
  }

  /// Whether a request is for the page of the console or its files.
  private static func isPage(_ request: borrowing HTTPRequest) -> Bool {
    let path = request.target.pathAndQuery.path
    return path.elementsEqual("/".utf8) || path.elementsEqual("/_/console".utf8)
      || path.starts(with: "/_/console/".utf8)
  }

  private static func send(_ refusal: Refusal, _ exchange: Exchange) {
    exchange.respond(
      status: refusal.status,
      headers: { headers in
        headers.add("Content-Type", "text/plain; charset=utf-8")
        headers.add("Cache-Control", "no-store")
        headers.add("X-Content-Type-Options", "nosniff")
      },
      body: { body in
        body.append(
          contentsOf: UnsafeBufferPointer(start: refusal.text.utf8Start, count: refusal.text.utf8CodeUnitCount))
      })
  }
}
