package import DatabaseService
package import GatewayCore
package import Transport

/// Serves feeds over plain HTTP: `GET …/documents/{path}:listen`, `POST …:listen` and `GET …/documents:changes`,
/// extensions of Hearth. ``RESTHandler`` has the functions that start them.
///
/// A browser's `EventSource` cannot send header fields, so a token may also be in the query.
package final class ChangeFeedHandler: API {
  package let authenticator: Authenticator
  private let rest: RESTHandler

  /// Creates a handler for the feeds of a service.
  package init(_ rest: RESTHandler) {
    self.rest = rest
    authenticator = rest.authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<ChangeFeedHandler>] {
    let path = "{path...}:listen"
    return [
      Route([.get, .post], DocumentsPath.patterns(path), kind: .rest, access: .caller, node: .any) {
        handler, request, routed in
        try handler.rest.listen(handler.rest.call(request, routed), request)
      },
      Route(.get, DocumentsPath.changesPatterns, kind: .rest, access: .caller, node: .any) { handler, request, routed in
        try handler.rest.changes(handler.rest.call(request, routed), request)
      },
    ]
  }

  /// Returns the caller by the header `authorization`, or by a token in the query.
  ///
  /// - Throws: `UNAUTHENTICATED` if the credentials are not valid.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    return try authenticator.caller(of: request, token: parameters.value("accessToken") ?? parameters.value("auth"))
  }

  /// Responds with an error as ``RESTHandler`` does.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    rest.refuse(error, request, responder)
  }
}
