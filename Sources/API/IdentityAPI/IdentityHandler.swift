import Accounts
package import DatabaseService
import DocumentModel
package import GatewayCore
package import IdentityService
package import Transport
import WireFormat

/// Serves accounts over HTTP: the Identity Toolkit and Secure Token APIs of auth-api.md. Their paths may begin with
/// the host names that clients add in emulator mode, or not.
///
/// A request of an end user contains an API key, which may be any non-empty text, and identifies the user by an ID
/// token in its body. A request of an administrator contains a bearer token. The event loop only parses requests:
/// account operations wait for the disk and password hashing for the processor, so they run on queues.
package final class IdentityHandler: API {
  package let authenticator: Authenticator
  private let service: AccountsService

  /// The largest body of an end user's request, in bytes.
  static let userBytesMax = 256 << 10
  /// The largest body of an administrator's request, in bytes.
  static let adminBytesMax = 32 << 20

  /// Creates a handler for the accounts of a service.
  package init(_ service: AccountsService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Returns the caller of a request (auth-api.md, section 2).
  ///
  /// - Throws: `AccountError` if the caller may not make the request at all, or `Status` if the query is malformed.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    var caller = Caller.unauthenticated
    if request.header("authorization").map(Authenticator.isBearer) ?? request.isFromAdminSocket {
      do throws(Status) { caller = try authenticator.caller(of: request) } catch {
        throw AccountError(.unauthenticated, error.message)
      }
      guard caller.isAdmin else {
        throw AccountError(
          .unauthenticated, "The token belongs to a user. This request needs an administrator's token.")
      }
    }
    switch access {
    case .everyone: break
    case .emulator: guard authenticator.isForEmulator else { throw AccountError(.permissionDenied) }
    case .administratorOrEmulator:
      guard caller.isAdmin || authenticator.isForEmulator else { throw AccountError(.permissionDenied) }
    case .administrator: guard caller.isAdmin else { throw AccountError(.unauthenticated) }
    case .caller:
      let header = request.header("x-goog-api-key")
      guard caller.isAdmin || parameters.value("key")?.isEmpty == false || header?.isEmpty == false else {
        throw AccountError(.permissionDenied, "The request is missing a valid API key.")
      }
    }
    return caller
  }

  /// Makes a call on one of the service's queues, and responds.
  ///
  /// - Parameter namesProject: whether the first captured part of the path is a project.
  func handle(
    _ call: IdentityCall, _ request: borrowing HTTPRequest, _ routed: RoutedCall, namesProject: Bool
  ) throws {
    let (responder, isAdmin) = (routed.responder, routed.caller.isAdmin)
    let bytesMax = isAdmin ? Self.adminBytesMax : Self.userBytesMax
    guard request.body.count <= bytesMax else { return responder.sendTooLarge(bytesMax: bytesMax) }
    let fields = try IdentityRequest(request)
    try check(project: namesProject ? routed.part(0, of: request) : nil, fields, isAdmin: isAdmin)
    let isOperator = routed.caller.operatorSession != nil
    let caller = caller(of: fields, isAdmin: isAdmin, isOperator: isOperator, request.clientAddress)
    let service = service
    let isTaken = service.submit(call.workload(of: fields)) {
      let outcome = Result { try call.respond(to: fields, service, caller) }
      responder.onLoop { Self.send(outcome, responder) }
    }
    guard isTaken else {
      throw AccountError(.tooManyAttempts, "The server is busy with other sign-ins. Try again in a moment.")
    }
  }

  /// Checks that a request is for the project of this server. An emulator has one set of users for all projects that
  /// a test suite names.
  private func check(project part: UnsafeRawBufferPointer?, _ fields: IdentityRequest, isAdmin: Bool) throws {
    let target = fields["targetProjectId"]?.text
    if !isAdmin, target != nil {
      throw AccountError(
        .insufficientPermission, "Only authenticated requests can specify target_project_id.")
    }
    let named = part.map { part in (try? RoutedCall.decoded(part)) ?? String(decoding: part, as: UTF8.self) }
    guard service.accounts.mode == .production, let project = named ?? target else { return }
    guard project.utf8.elementsEqual(service.accounts.project.id.utf8) else {
      throw AccountError(.permissionDenied, "This server serves only project \(service.accounts.project.id).")
    }
  }

  /// The caller of a request. Links in emails open the configured page, or the page that this server has for tests.
  private func caller(
    of request: IdentityRequest, isAdmin: Bool, isOperator: Bool, _ address: String?
  ) -> AccountsCaller {
    let page = service.options.actionURL ?? "http://\(request.host)/emulator/action"
    let key = request.parameters.value("key") ?? "fake-api-key"
    var caller = AccountsCaller(isAdmin ? .admin : .user, address: address) { kind, code, continueURL in
      var link = "\(page)\(page.contains("?") ? "&" : "?")mode=\(kind.mode)&lang=en&oobCode=\(code)"
      link += "&apiKey=\(PercentEncoding.encode(key.utf8))"
      if let continueURL { link += "&continueUrl=\(PercentEncoding.encode(continueURL.utf8))" }
      return link
    }
    caller.hidesHashes = isOperator
    return caller
  }

  // MARK: Responses

  /// Responds with an error, in the form of the Identity Toolkit API.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    if case RouteError.wrongMethod = error { return Self.send(.failure(AccountError(.notFound)), responder) }
    if let status = error as? Status, status.code == .permissionDenied {
      return Self.send(.failure(AccountError(.permissionDenied, status.message)), responder)
    }
    if let status = error as? Status, status.code == .resourceExhausted {
      return Self.send(.failure(AccountError(.tooManyAttempts, status.message)), responder)
    }
    Self.send(.failure(error), responder)
  }

  private static func send(_ outcome: Result<IdentityCall.Response, any Error>, _ responder: Responder) {
    switch outcome {
    case .success(let response):
      if let location = response.location {
        responder.sendRedirect(to: location, status: 303)
      } else {
        // The body contains tokens and personal data, which no cache may store.
        responder.sendJSON(response.body, cacheControl: "no-store")
      }
    case .failure(let error):
      let failure = IdentityFailure(error)
      if failure.isFault { responder.exchange.logFailure("\(error)", status: failure.httpStatus) }
      responder.sendJSON(failure.json, status: failure.httpStatus, cacheControl: "no-store")
    }
  }
}
