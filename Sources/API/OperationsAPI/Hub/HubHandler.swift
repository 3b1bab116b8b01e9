package import DatabaseService
package import GatewayCore
package import Transport
import WireFormat

/// Serves the requests with which test libraries use the hub of Firebase's Emulator Suite.
///
/// - `GET /emulators` lists the services and their addresses; see ``EmulatorHub``.
/// - `PUT /functions/disableBackgroundTriggers` and `PUT /functions/enableBackgroundTriggers` respond
///   `{"enabled": false}`, because the server runs no functions. A test suite can so disable triggers around a part of
///   its work. The official hub refuses both requests if its emulator of functions does not run.
package final class HubHandler: API {
  package let authenticator: Authenticator
  private let hub: EmulatorHub

  /// Creates a handler.
  package init(_ hub: EmulatorHub, _ authenticator: Authenticator) {
    self.hub = hub
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<HubHandler>] {
    [
      Route(.get, ["/emulators"], kind: .control, access: .emulator) { $2.responder.sendJSON($0.hub.emulators()) },
      Route(
        .put, ["/functions/disableBackgroundTriggers", "/functions/enableBackgroundTriggers"], kind: .control,
        access: .emulator
      ) { _, _, call in
        call.responder.sendJSON(Array(#"{"enabled":false}"#.utf8))
      },
    ]
  }

  /// Returns the caller of a request. The requests need no credentials, so those of other systems are ignored.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) -> Caller {
    (try? authenticator.caller(of: request)) ?? .unauthenticated
  }
}
