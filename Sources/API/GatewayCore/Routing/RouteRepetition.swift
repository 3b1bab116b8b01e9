package import Transport

/// Whether a request may be sent again if its response was lost.
package enum RouteRepetition: Sendable {
  /// Never: it could have its effect twice, and the server could not know.
  case never
  /// With the same ``DocumentModel/RequestID``, which lets it have its effect once.
  case withID
  /// Always: it has no effect, or none that a second one adds to.
  case always
}

/// Tells which requests may be sent again, by their heads. It needs no service, so a node can ask it that serves nothing
/// itself.
package struct RepeatableRequests: Sendable {
  private let router: Router
  private let repetitions: [RouteRepetition]

  /// Creates a table of routes, in the order in which a server tries them. A request that matches none is never repeated.
  package init(_ heads: [RouteHead]) {
    router = Router(heads)
    repetitions = heads.map(\.repetition)
  }

  /// Returns whether a request may be sent again. Needs only its head. Cost: that of finding its route.
  package func repetition(of request: borrowing HTTPRequest) -> RouteRepetition {
    let match = router.match(request)
    guard let number = match.number, !match.isWrongMethod else { return .never }
    return repetitions[number]
  }

  /// Whether a request may be sent again with the same ``DocumentModel/RequestID``, and only so.
  package func isRepeatableWithID(_ request: borrowing HTTPRequest) -> Bool { repetition(of: request) == .withID }
}

extension API {
  /// The routes of the API, without an object that handles their requests.
  package static var heads: [RouteHead] { routes.map { RouteHead($0) } }
}

/// The conditions of a route, without its handler.
package struct RouteHead: RoutedEndpoint {
  package let methods: HTTPMethods
  package let paths: [RoutePattern]
  let repetition: RouteRepetition
  let node: RouteNode
  /// Whether the body is read piece by piece.
  let isStreamed: Bool
  private let condition: (@Sendable (borrowing HTTPRequest) -> Bool)?

  init<Target: API>(_ route: Route<Target>) {
    methods = route.methods
    paths = route.paths
    repetition = route.repetition
    node = route.node
    isStreamed = if case .open = route.work { true } else { false }
    condition = route.condition
  }

  /// Whether the route also looks at other parts of the head.
  package var hasCondition: Bool { condition != nil }

  /// Whether the route wants a request with its path.
  package func isWanted(_ request: borrowing HTTPRequest) -> Bool { condition?(request) ?? true }
}
