package import DatabaseService
package import Transport

/// An API: a set of routes, the way in which its requests name their caller, and the form of its errors.
///
/// The gateway authenticates each request once, before it calls the handler of the request's route. A handler cannot
/// be reached without a ``RoutedCall``, which contains the caller.
package protocol API: AnyObject, Sendable {
  /// The requests that the API handles. If several routes match a request, the first one handles it.
  static var routes: [Route<Self>] { get }

  /// Identifies the callers of requests.
  var authenticator: Authenticator { get }

  /// Returns the caller of a request. Called once for each request, unless everyone may make it.
  ///
  /// - Throws: an error for ``refuse(_:_:_:)`` if the credentials are not valid, or the API admits no such caller.
  func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller

  /// Responds to a request that was refused before its handler was called, or whose handler threw an error. The
  /// error is that of the handler, of ``authenticate(_:_:)``, or a ``RouteError``.
  func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder)
}

extension API {
  /// Returns the caller by the request's `authorization` header.
  ///
  /// - Throws: `UNAUTHENTICATED` if the credentials are not valid.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    try authenticator.caller(of: request)
  }

  /// Responds with `Not Found` if the API has the path but not the method, and otherwise with the error as JSON.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    if case RouteError.wrongMethod = error { return responder.sendText(404, "Not Found\n") }
    responder.sendError(Status(error, database: nil))
  }
}

/// The callers that can reach a route. The services authorize what a caller may do there.
package enum RouteAccess: String, Sendable {
  /// Every client. The request's credentials are not read.
  case everyone
  /// Every caller. The services decide what the caller may read and write.
  case caller
  /// Administrators.
  case administrator
  /// Test suites: every client of an emulator, and no caller of a production server.
  case emulator
  /// Administrators, and test suites of an emulator.
  case administratorOrEmulator

  /// Checks that the route exists for a caller.
  ///
  /// - Throws: `PERMISSION_DENIED` if it does not.
  func require(_ caller: Caller, _ authenticator: Authenticator) throws(Status) {
    let isAdmitted =
      switch self {
      case .everyone, .caller: true
      case .administrator: caller.isAdmin
      case .emulator: authenticator.isForEmulator
      case .administratorOrEmulator: caller.isAdmin || authenticator.isForEmulator
      }
    guard isAdmitted else { throw Status(.permissionDenied, "Missing or insufficient permissions.") }
  }
}

/// The reason why a request with a known path reaches no handler.
package enum RouteError: Error {
  /// No route with the path has the request's method.
  case wrongMethod
}
