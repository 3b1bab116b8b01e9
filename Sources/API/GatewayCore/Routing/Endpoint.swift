import Basics
import DatabaseService
package import Transport

/// The part of a route by which a ``Router`` finds it.
package protocol RoutedEndpoint: Sendable {
  var methods: HTTPMethods { get }
  var paths: [RoutePattern] { get }
  /// Whether the route has a condition besides path and method.
  var hasCondition: Bool { get }
  /// Whether a request satisfies the route's condition.
  func isWanted(_ request: borrowing HTTPRequest) -> Bool
}

/// A route of an API that is ready to serve: it authenticates a request and calls the route's handler.
package protocol Endpoint: RoutedEndpoint {
  /// The name of the API, for documentation.
  var api: String { get }
  var kind: RequestKind { get }
  var access: RouteAccess { get }
  /// Whether the body is read piece by piece.
  var isStreamed: Bool { get }
  /// Handles a request whose whole body has arrived.
  func handle(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder)
  /// Returns the receiver of the body, or `nil` after a response.
  func open(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder) -> (any BodySink)?
}

extension API {
  /// The routes of the API, bound to this object.
  package var endpoints: [any Endpoint] { Self.routes.map { BoundRoute(route: $0, target: self) } }
}

/// A route and the object whose function handles its requests.
private struct BoundRoute<Target: API>: Endpoint {
  let route: Route<Target>
  let target: Target

  var api: String { "\(Target.self)" }

  var methods: HTTPMethods { route.methods }
  var paths: [RoutePattern] { route.paths }
  var kind: RequestKind { route.kind }
  var access: RouteAccess { route.access }
  var isStreamed: Bool { if case .open = route.work { true } else { false } }
  var hasCondition: Bool { route.condition != nil }

  func isWanted(_ request: borrowing HTTPRequest) -> Bool { route.condition?(request) ?? true }

  func handle(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder) {
    do {
      switch route.work {
      case .handle(let handle): try handle(target, request, try admit(request, match, responder))
      case .open:
        // A body that is read piece by piece may be empty, and then it is complete already.
        guard let sink = open(request, match, responder) else { return }
        sink.received(request.body)
        sink.ended()
      }
    } catch { target.refuse(error, request, responder.delaying(error)) }
  }

  func open(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder) -> (any BodySink)? {
    guard case .open(let open) = route.work else { return nil }
    do { return try open(target, request, try admit(request, match, responder)) } catch {
      target.refuse(error, request, responder.delaying(error))
      return nil
    }
  }

  /// Authenticates the caller of a request.
  private func admit(
    _ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder
  ) throws -> RoutedCall {
    guard !match.isWrongMethod else { throw RouteError.wrongMethod }
    guard route.access != .everyone else { return RoutedCall(.unauthenticated, match, responder) }
    let caller = try target.authenticate(request, route.access)
    let authenticator = target.authenticator
    try route.access.require(caller, authenticator)
    if let limiter = authenticator.limiter, route.kind != .operations { try limiter.admit(caller, request) }
    if let quota = authenticator.requestQuota, quota.isLimited, route.kind != .operations {
      try quota.admit(request)
    }
    if authenticator.isForEmulator, caller.isAdmin || route.isForTools,
      request.isFromForeignPage(hostName: authenticator.hostName)
    {
      throw Status(
        .permissionDenied,
        "A page of another origin cannot administer this emulator. Open the page on localhost, and use the emulator "
          + "under localhost, a numeric address, a name without dots, or the name in --host.")
    }
    return RoutedCall(caller, match, responder)
  }
}
