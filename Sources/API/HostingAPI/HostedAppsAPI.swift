import DatabaseService
package import GatewayCore
package import Hosting
package import Transport

/// Serves web apps at all paths that no other API has.
///
/// The routes of the APIs come first. The paths below ``reserved`` belong to them too, even if no route matches, so
/// that a mistake in a URL of the API gets the API's response and not a page of the app.
package final class HostedAppsAPI: API {
  package let authenticator: Authenticator
  private let sites: SiteResponder

  /// Creates an API for sites, which may change later.
  package init(_ sites: HostedSites, _ authenticator: Authenticator) {
    self.sites = SiteResponder(sites)
    self.authenticator = authenticator
  }

  /// The requests that the API handles: those of every path that no route of another API has.
  package static var routes: [Route<HostedAppsAPI>] {
    [
      Route([.get, .head], ["/{path...}"], kind: .hosting, access: .everyone, when: { isForSites($0) }) {
        api, request, call in
        api.sites.respond(request.target.pathAndQuery.path, request, call.responder)
      }
    ]
  }

  /// Responds to a request for `/` with the page of the app. Returns `false` if the request's host has no site.
  package func respondToRoot(_ request: borrowing HTTPRequest, _ responder: Responder) -> Bool {
    guard sites.hasSite(for: request) else { return false }
    responder.exchange.setKind(.hosting)
    sites.respond(request.target.pathAndQuery.path, request, responder)
    return true
  }

  /// The starts of paths that belong to other APIs. A path matches if it continues with a slash or a colon, or ends.
  package static let reserved: [StaticString] = [
    "/v1", "/v1beta1", "/v1beta2", "/v2", "/v2alpha", "/v0", "/__", "/emulator", "/emulators", "/hearth", "/healthz",
    "/readyz", "/metrics", "/identitytoolkit", "/identitytoolkit.googleapis.com", "/securetoken.googleapis.com",
    "/www.googleapis.com", "/oauth2.googleapis.com", "/firestore.googleapis.com", "/storage.googleapis.com",
    "/google.firestore.v1.Firestore", "/grpc.health.v1.Health", "/storage/v1", "/upload/storage", "/download/storage",
    "/batch/storage", "/robot/v1", "/service_accounts/v1", "/internal", "/functions",
  ]

  /// Whether a path belongs to the apps.
  private static func isForSites(_ request: borrowing HTTPRequest) -> Bool {
    let path = request.target.pathAndQuery.path
    return !reserved.contains { start in
      guard let rest = path.dropping(start) else { return false }
      return rest.isEmpty || rest[0] == UInt8(ascii: "/") || rest[0] == UInt8(ascii: ":")
    }
  }
}
