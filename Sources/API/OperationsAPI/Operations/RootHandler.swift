import DatabaseService
package import GatewayCore
package import Transport

/// Responds with `Ok` at `/`, as the official emulator does: test suites wait for it. At the port of the hub, responds
/// with the address of the hub. If the server has a web app, responds with its page instead. If it has a console, a
/// browser that opens `/` is sent there.
package final class RootHandler: API {
  package let authenticator: Authenticator
  private let operations: OperationsService
  private let app: AppPage?
  private let console: String?

  /// A function that responds with the page of a web app, or returns `false` if the request is for none.
  package typealias AppPage = @Sendable (borrowing HTTPRequest, Responder) -> Bool

  /// Creates a handler. `console` is the path of the console, or `nil` for a server without one.
  package init(
    _ operations: OperationsService, _ authenticator: Authenticator, app: AppPage? = nil, console: String? = nil
  ) {
    self.operations = operations
    self.authenticator = authenticator
    self.app = app
    self.console = console
  }

  /// The requests that the API handles.
  package static var routes: [Route<RootHandler>] {
    [
      Route([.get, .head], ["/"], kind: .operations, access: .everyone) { handler, request, call in
        let operations = handler.operations
        guard let port = operations.hub.ownPort, request.header("host")?.port == port,
          let body = operations.hub.locator(version: operations.version)
        else {
          if let app = handler.app, app(request, call.responder) { return }
          if let console = handler.console, request.isNavigation {
            return call.responder.sendRedirect(to: console, status: 302)
          }
          return call.responder.sendText(200, "Ok\n")
        }
        call.responder.sendJSON(body)
      }
    ]
  }
}

extension HTTPRequest {
  /// Whether a browser opens the URL as a page. Programs and probes do not ask for HTML.
  fileprivate var isNavigation: Bool {
    guard let accept = header("accept"), String(decoding: accept, as: UTF8.self).contains("text/html") else {
      return false
    }
    return header("sec-fetch-dest")?.elementsEqual("document".utf8) ?? true
  }
}

extension UnsafeRawBufferPointer {
  /// The port of a `Host` header, or `nil` if it names none.
  fileprivate var port: Int? {
    guard let colon = lastIndex(of: UInt8(ascii: ":")) else { return nil }
    return Int(String(decoding: self[(colon + 1)...], as: UTF8.self))
  }
}
