import DatabaseService
package import Transport

/// The node of a cluster that handles a request.
package enum RouteNode: Sendable {
  /// The owner of the project: requests that write, and those whose state is in the owner's process.
  case owner
  /// The node that received the request, when it has what the owner had acknowledged: requests that read documents.
  case any
}

/// One row of the route table: the requests that one function of an API handles.
package struct Route<Target: API>: Sendable {
  /// A function that handles a request whose whole body has arrived.
  package typealias Handle = @Sendable (Target, borrowing HTTPRequest, RoutedCall) throws -> Void
  /// A function that returns the receiver of a body, which arrives piece by piece. It returns `nil` after it has
  /// responded.
  package typealias Open = @Sendable (Target, borrowing HTTPRequest, RoutedCall) throws -> (any BodySink)?
  /// A condition on the query or the headers of a request.
  package typealias Condition = @Sendable (borrowing HTTPRequest) -> Bool

  enum Work: Sendable {
    case handle(Handle)
    case open(Open)
  }

  let methods: HTTPMethods
  let paths: [RoutePattern]
  let kind: RequestKind
  let access: RouteAccess
  let repetition: RequestRepetition
  let node: RouteNode
  let condition: Condition?
  let work: Work

  /// Whether the route is for tools and test suites, which need no credentials on an emulator.
  var isForTools: Bool { access == .emulator || access == .administratorOrEmulator || kind == .control }

  /// Creates a row for requests whose body is read as a whole. `paths` are the spellings of the path; see
  /// ``RoutePattern``.
  package init(
    _ methods: HTTPMethods, _ paths: [String], kind: RequestKind, access: RouteAccess,
    repetition: RequestRepetition = .never, node: RouteNode = .owner, when condition: Condition? = nil,
    handle: @escaping Handle
  ) {
    self.init(methods, paths, kind, access, repetition, node, condition, .handle(handle))
  }

  /// Creates a row for requests whose body is read piece by piece.
  package static func streamed(
    _ methods: HTTPMethods, _ paths: [String], kind: RequestKind, access: RouteAccess, node: RouteNode = .owner,
    when condition: Condition? = nil, open: @escaping Open
  ) -> Route {
    Route(methods, paths, kind, access, .never, node, condition, .open(open))
  }

  private init(
    _ methods: HTTPMethods, _ paths: [String], _ kind: RequestKind, _ access: RouteAccess,
    _ repetition: RequestRepetition, _ node: RouteNode, _ condition: Condition?, _ work: Work
  ) {
    self.methods = methods
    self.paths = paths.map { RoutePattern($0) }
    self.kind = kind
    self.access = access
    self.repetition = repetition
    self.node = node
    self.condition = condition
    self.work = work
  }
}

/// A set of request methods.
package struct HTTPMethods: OptionSet, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let get = HTTPMethods(rawValue: 1)
  package static let head = HTTPMethods(rawValue: 2)
  package static let post = HTTPMethods(rawValue: 4)
  package static let put = HTTPMethods(rawValue: 8)
  package static let patch = HTTPMethods(rawValue: 16)
  package static let delete = HTTPMethods(rawValue: 32)
  private static let rest = HTTPMethods(rawValue: 64)
  /// Every method, also those that the server does not know. The gateway handles `OPTIONS` itself.
  package static let all = HTTPMethods(rawValue: 127)

  /// The set of one method.
  package init(_ method: HTTPMethod) {
    self =
      switch method {
      case .get: .get
      case .head: .head
      case .post: .post
      case .put: .put
      case .patch: .patch
      case .delete: .delete
      case .options, .other: .rest
      }
  }

  /// The names of the methods, for people: `GET, HEAD`, or `*` for every method.
  package var text: String {
    if self == .all { return "*" }
    let names: [(HTTPMethods, String)] = [
      (.get, "GET"), (.head, "HEAD"), (.post, "POST"), (.put, "PUT"), (.patch, "PATCH"), (.delete, "DELETE"),
    ]
    return names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}
