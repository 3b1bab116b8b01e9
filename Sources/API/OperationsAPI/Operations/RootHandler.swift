import DatabaseService
package import GatewayCore
import Transport

/// Responds with `Ok` at `/`, as the official emulator does: test suites wait for it.
package final class RootHandler: API {
  package let authenticator: Authenticator

  /// Creates a handler.
  package init(_ authenticator: Authenticator) { self.authenticator = authenticator }

  /// The requests that the API handles.
  package static var routes: [Route<RootHandler>] {
    [
      Route([.get, .head], ["/"], kind: .operations, access: .everyone) { _, _, call in
        call.responder.sendText(200, "Ok\n")
      }
    ]
  }
}
