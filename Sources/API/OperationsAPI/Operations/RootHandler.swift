import DatabaseService
package import GatewayCore
import Transport

/// Responds with `Ok` at `/`, as the official emulator does: test suites wait for it. At the port of the hub, responds
/// with the address of the hub.
package final class RootHandler: API {
  package let authenticator: Authenticator
  private let operations: OperationsService

  /// Creates a handler.
  package init(_ operations: OperationsService, _ authenticator: Authenticator) {
    self.operations = operations
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<RootHandler>] {
    [
      Route([.get, .head], ["/"], kind: .operations, access: .everyone) { handler, request, call in
        let operations = handler.operations
        guard let port = operations.hub.ownPort, request.header("host")?.port == port,
          let body = operations.hub.locator(version: operations.version)
        else { return call.responder.sendText(200, "Ok\n") }
        call.responder.sendJSON(body)
      }
    ]
  }
}

extension UnsafeRawBufferPointer {
  /// The port of a `Host` header, or `nil` if it names none.
  fileprivate var port: Int? {
    guard let colon = lastIndex(of: UInt8(ascii: ":")) else { return nil }
    return Int(String(decoding: self[(colon + 1)...], as: UTF8.self))
  }
}
