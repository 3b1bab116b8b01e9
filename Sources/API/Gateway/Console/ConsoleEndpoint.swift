import Accounts
import DatabaseService
import GatewayCore
import Transport

/// An endpoint of an API behind the console of a production server: it checks the role of the operator before the
/// endpoint authenticates and handles the request, and logs requests that can change something.
struct ConsoleEndpoint: Endpoint {
  let inner: any Endpoint
  let role: OperatorRole
  let sessions: OperatorSessions
  let audit: @Sendable (AccountEvent) -> Void

  var api: String { inner.api }
  var methods: HTTPMethods { inner.methods }
  var paths: [RoutePattern] { inner.paths }
  var kind: RequestKind { inner.kind }
  var access: RouteAccess { inner.access }
  var isStreamed: Bool { inner.isStreamed }
  var hasCondition: Bool { inner.hasCondition }

  func isWanted(_ request: borrowing HTTPRequest) -> Bool { inner.isWanted(request) }

  func handle(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder) {
    do throws(Status) { try admit(request) } catch { return responder.sendError(error) }
    inner.handle(request, match, responder)
  }

  func open(_ request: borrowing HTTPRequest, _ match: RouteMatch, _ responder: Responder) -> (any BodySink)? {
    do throws(Status) { try admit(request) } catch {
      responder.sendError(error)
      return nil
    }
    return inner.open(request, match, responder)
  }

  /// Checks that the caller may make the request.
  /// - Throws: `UNAUTHENTICATED` without a session, `PERMISSION_DENIED` if the role does not suffice.
  private func admit(_ request: borrowing HTTPRequest) throws(Status) {
    guard let token = Authenticator.bearerToken(of: request) else {
      throw Status(.unauthenticated, "Sign in to use the console.")
    }
    guard OperatorSessions.isToken(token) else {
      // The token of a user, with which an editor views documents. The endpoint verifies it, and rules decide.
      guard access == .caller, kind == .rest else {
        throw Status(.permissionDenied, "Only operators may make this request.")
      }
      return
    }
    guard let session = sessions.session(token) else { throw .sessionEnded }
    guard session.role >= role else {
      note(session, request, isAdmitted: false)
      throw Status(
        .permissionDenied, "Your role is \(session.role.rawValue). This needs the role \(role.rawValue).")
    }
    if role > .viewer { note(session, request, isAdmitted: true) }
  }

  private func note(_ session: OperatorSession, _ request: borrowing HTTPRequest, isAdmitted: Bool) {
    var event = AccountEvent(.operatorActed, from: request.clientAddress)
    event.operatorName = session.name
    let path = String(decoding: request.target.pathAndQuery.path.prefix(Self.pathBytesMax), as: UTF8.self)
    event.request = "\(HTTPMethods(request.method).text) \(path)"
    if !isAdmitted { event.reason = "refused, because the role is \(session.role.rawValue)" }
    audit(event)
  }

  /// The bytes of a path that the log contains.
  private static let pathBytesMax = 1024
}
