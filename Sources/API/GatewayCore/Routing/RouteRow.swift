/// A row of the route table without its function, for documentation and tests.
package struct RouteRow: Sendable {
  /// The type that handles the requests.
  package let api: String
  package let methods: HTTPMethods
  /// The spellings of the path; see ``RoutePattern``.
  package let paths: [String]
  package let kind: RequestKind
  package let access: RouteAccess
  /// Whether the row also has a condition on the query or the headers.
  package let hasCondition: Bool
}

extension API {
  /// The routes of the API, as rows of the table.
  package static var rows: [RouteRow] {
    routes.map { route in
      RouteRow(
        api: "\(Self.self)", methods: route.methods, paths: route.paths.map(\.text), kind: route.kind,
        access: route.access, hasCondition: route.condition != nil)
    }
  }
}
