package import Transport

/// Tells which requests may be sent again, by their heads. It needs no service, so a node can ask it that serves nothing
/// itself.
package struct RepeatableRequests: Sendable {
  private let router: Router
  private let repetitions: [RequestRepetition]

  /// Creates a table of routes, in the order in which a server tries them. A request that matches none is never repeated.
  package init(_ heads: [RouteHead]) {
    router = Router(heads)
    repetitions = heads.map(\.repetition)
  }

  /// Returns whether a request may be sent again. Needs only its head. Cost: that of finding its route.
  package func repetition(of request: borrowing HTTPRequest) -> RequestRepetition {
    let match = router.match(request)
    guard let number = match.number, !match.isWrongMethod else { return .never }
    return repetitions[number]
  }
}

extension API {
  /// The routes of the API, without an object that handles their requests.
  package static var heads: [RouteHead] { routes.map { RouteHead($0) } }
}

/// The conditions of a route, without its handler.
package struct RouteHead: RoutedEndpoint {
  package let methods: HTTPMethods
  package let paths: [RoutePattern]
  let repetition: RequestRepetition
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
