import Accounts
import DatabaseService
package import DocumentModel
import FirestoreAPI
import GatewayCore
package import OperationsAPI
import Synchronization
package import Transport
import WireFormat

/// Passes each request to the project that it names, before its body is read.
///
/// A request names its project by its host name, its path, its API key, its bucket, the parameter `database` of a
/// channel, or the header fields of gRPC. A request that names two projects is refused. A request that names none
/// belongs to the default project, if the server has one.
package final class ProjectDispatcher: RequestHandler {
  private let table = Mutex(ProjectTable([]))
  /// The requests of operators, which need no project.
  private let operations = Mutex<RequestDispatcher?>(nil)

  /// Creates a dispatcher without projects.
  package init() {}

  /// Replaces the projects. Requests under way stay with theirs. Returns texts about names that several projects have.
  ///
  /// - Parameter standard: the ID of the project of requests that name none.
  package func serve(_ routes: [ProjectRoute], standard: String?) -> [String] {
    let old = table.withLock { $0 }
    let new = ProjectTable(routes, standard: standard, previous: old)
    table.withLock { $0 = new }
    return new.problems
  }

  /// Serves `/healthz`, `/readyz` and `/` to clients that name no project.
  package func serveOperations(_ service: OperationsService, mode: ServerMode) {
    let dispatcher = HTTPGateway.operationsWithoutProject(service, mode: mode)
    operations.withLock { $0 = dispatcher }
  }

  /// Whether a handler, which the dispatcher chose for a request, belongs to the owner of a ``ProjectRoute``.
  package static func isOwned(_ handler: any RequestHandler, by owner: ObjectIdentifier) -> Bool {
    (handler as? ProjectRequests)?.ownerID == owner
  }

  /// Handles a request. Responds at once or later, on the loop of the connection.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let handler = exchange.chosen ?? choose(request, isWhole: true) ?? RefusedRequests(.noProject)
    exchange.chosen = handler
    handler.handle(request, exchange)
  }

  /// Opens the body of a request whose project reads it piece by piece.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    guard let handler = choose(request, isWhole: false) else { return nil }
    exchange.chosen = handler
    return handler.openBody(of: request, exchange)
  }

  /// Returns the handler of a request, or `nil` if the body has to be read first.
  private func choose(_ request: borrowing HTTPRequest, isWhole: Bool) -> (any RequestHandler)? {
    let table = table.withLock { $0 }
    switch table.choose(request) {
    case .handler(let handler): return handler
    case .conflict: return RefusedRequests(.severalProjects)
    case .unknownKey: return RefusedRequests(.unknownKey)
    case .unknownProject: return RefusedRequests(.noProject)
    case .none: break
    }
    let path = request.target.pathAndQuery.path
    // Only the body of a request for an access token names the service account.
    if path.elementsEqual("/token".utf8) || path.elementsEqual("/oauth2.googleapis.com/token".utf8) {
      guard isWhole else { return nil }
      if let handler = Self.serviceAccount(in: request.body, table) { return handler }
    }
    if let standard = table.standard { return standard }
    let isOperation = ["/healthz", "/readyz", "/metrics", "/"].contains { path.elementsEqual($0.utf8) }
    if isOperation || request.method == .options, let operations = operations.withLock({ $0 }) { return operations }
    return RefusedRequests(.noProject)
  }

  /// Returns the project of the service account that issued the assertion in a form (RFC 7523).
  private static func serviceAccount(
    in body: UnsafeRawBufferPointer, _ table: ProjectTable
  ) -> (any RequestHandler)? {
    guard let assertion = (try? QueryParameters(body))?.value("assertion") else { return nil }
    let parts = assertion.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    let json = Array(parts[1]).withUnsafeBytes { text -> [UInt8]? in
      var bytes = [UInt8](repeating: 0, count: Base64.decodedCountMax(text.count))
      let count = bytes.withUnsafeMutableBytes { Base64.decode(text, into: $0) }
      return count.map { Array(bytes[..<$0]) }
    }
    guard let json, let email = MapValue(json: json)?.text("iss") else { return nil }
    return Array(email.utf8).withUnsafeBytes { table.choose(serviceAccount: $0) }
  }
}

/// The requests of a project. Requests under way retain it, and so the project's files stay open until they end.
final class ProjectRequests: RequestHandler {
  private let requests: RequestDispatcher
  private let owner: any AnyObject & Sendable

  var ownerID: ObjectIdentifier { ObjectIdentifier(owner) }

  init(_ requests: RequestDispatcher, owner: any AnyObject & Sendable) {
    self.requests = requests
    self.owner = owner
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { requests.handle(request, exchange) }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    requests.openBody(of: request, exchange)
  }
}

/// Responds to requests that reach no project, in the form that their clients read.
final class RefusedRequests: RequestHandler {
  private let status: Status

  init(_ status: Status) { self.status = status }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let responder = Responder(exchange, request)
    if request.method == .options { return responder.sendPreflight(request) }
    if GRPCRefusal.isCall(request) { return GRPCRefusal.send(status, exchange) }
    responder.sendError(status)
  }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    handle(request, exchange)
    return nil
  }
}

extension Status {
  static let projectUnavailable = Status(
    .unavailable, "The project is not available: its configuration is not valid, or it is being reloaded.")
  static let severalProjects = Status(
    .permissionDenied,
    "The request names several projects. Its host name, path, API key, bucket and header fields must name the same one."
  )
  /// The text of Google's services.
  static let unknownKey = Status(.invalidArgument, "API key not valid. Please pass a valid API key.")
  static let noProject = Status(
    .notFound,
    "The request names no project of this server. Name one by its host name, in the path, or by its API key; with gRPC, "
      + "in the header field google-cloud-resource-prefix.")
}
