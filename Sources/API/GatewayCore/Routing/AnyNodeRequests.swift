package import Transport

/// Tells which requests any node of a cluster can handle, by their heads. It needs no service.
package struct AnyNodeRequests: Sendable {
  /// The form in which the body of such a request arrives.
  package enum Form: Sendable {
    case whole
    /// Piece by piece.
    case stream
  }

  private let router: Router
  private let forms: [Form?]

  /// Creates a table of routes, in the order in which a server tries them. A request that matches none is the owner's.
  package init(_ heads: [RouteHead]) {
    router = Router(heads)
    forms = heads.map { head in head.node == .owner ? nil : head.isStreamed ? .stream : .whole }
  }

  /// Returns the form of a request that any node can handle, or `nil` for one that the owner must handle. Cost: that of
  /// finding its route.
  package func form(of request: borrowing HTTPRequest) -> Form? {
    let match = router.match(request)
    guard let number = match.number, !match.isWrongMethod else { return nil }
    return forms[number]
  }
}
