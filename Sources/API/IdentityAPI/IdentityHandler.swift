package import GatewayCore
import Accounts
import DatabaseService
package import IdentityService
package import Transport
import WireFormat

/// Serves accounts over HTTP: the Identity Toolkit and Secure Token APIs of auth-api.md. Their paths may begin with
/// the host names that clients add in emulator mode, or not.
///
/// A request of an end user contains an API key, which may be any non-empty text, and identifies the user by an ID
/// token in its body. A request of an administrator contains a bearer token. The event loop only parses requests:
/// account operations wait for the disk and password hashing for the processor, so they run on queues.
package final class IdentityHandler: Sendable {
  private let service: AccountsService
  private let authenticator: Authenticator

  /// The largest body of an end user's request, in bytes.
  static let userBytesMax = 256 << 10
  /// The largest body of an administrator's request, in bytes.
  static let adminBytesMax = 32 << 20

  package init(_ service: AccountsService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Handles a request for a path that ``IdentityRoute`` knows.
  package func handle(
    _ route: IdentityRoute, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder
  ) {
    do {
      guard let call = route.call.handler(request.method) else { throw AccountError(.notFound) }
      let parameters = try QueryParameters(query)
      let isAdmin = try admit(route, parameters, request)
      let bytesMax = isAdmin ? Self.adminBytesMax : Self.userBytesMax
      guard request.body.count <= bytesMax else { return responder.sendTooLarge(bytesMax: bytesMax) }
      let fields = try IdentityRequest(request, parameters)
      try check(route, fields, isAdmin: isAdmin)
      let caller = caller(of: fields, isAdmin: isAdmin, request.clientAddress)
      let service = service
      let isTaken = service.submit(call.workload(of: fields)) {
        let outcome = Result { try call.respond(to: fields, service, caller) }
        responder.onLoop { Self.send(outcome, responder) }
      }
      guard isTaken else {
        throw AccountError(.tooManyAttempts, "The server is busy with other sign-ins. Try again in a moment.")
      }
    } catch {
      Self.send(.failure(error), responder)
    }
  }

  // MARK: Authorization

  /// Authorizes the caller. Returns whether it is an administrator.
  ///
  /// - Throws: `AccountError` if the caller may not make the request at all (auth-api.md, section 2).
  private func admit(
    _ route: IdentityRoute, _ parameters: QueryParameters, _ request: borrowing HTTPRequest
  ) throws -> Bool {
    if let header = request.header("authorization"), Authenticator.isBearer(header) {
      do throws(Status) {
        if case .admin = try authenticator.caller(of: request) { return true }
      } catch {
        throw AccountError(.unauthenticated, error.message)
      }
      throw AccountError(.unauthenticated, "The token belongs to a user. This request needs an administrator's token.")
    }
    if route.isEmulatorOnly {
      guard service.accounts.mode == .emulator else { throw AccountError(.permissionDenied) }
      return false
    }
    guard !route.isForAdmins else { throw AccountError(.unauthenticated) }
    let header = request.header("x-goog-api-key")
    guard parameters.value("key")?.isEmpty == false || header?.isEmpty == false else {
      throw AccountError(.permissionDenied, "The request is missing a valid API key.")
    }
    return false
  }

  private func check(_ route: IdentityRoute, _ fields: IdentityRequest, isAdmin: Bool) throws {
    let target = fields["targetProjectId"]?.text
    if !isAdmin, target != nil {
      throw AccountError(
        .insufficientPermission, "Only authenticated requests can specify target_project_id.")
    }
    // An emulator has one set of users for all projects that a test suite names.
    guard service.accounts.mode == .production, let project = route.project ?? target else { return }
    guard project.utf8.elementsEqual(service.accounts.project.id.utf8) else {
      throw AccountError(.permissionDenied, "This server serves only project \(service.accounts.project.id).")
    }
  }

  /// The caller of a request. Links in emails open the configured page, or the page that this server has for tests.
  private func caller(of request: IdentityRequest, isAdmin: Bool, _ address: String?) -> AccountsCaller {
    let page = service.options.actionURL ?? "http://\(request.host)/emulator/action"
    let key = request.parameters.value("key") ?? "fake-api-key"
    return AccountsCaller(isAdmin ? .admin : .user, address: address) { kind, code, continueURL in
      var link = "\(page)\(page.contains("?") ? "&" : "?")mode=\(kind.mode)&lang=en&oobCode=\(code)"
      link += "&apiKey=\(PercentEncoding.encode(key.utf8))"
      if let continueURL { link += "&continueUrl=\(PercentEncoding.encode(continueURL.utf8))" }
      return link
    }
  }

  // MARK: Responses

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
      if failure.httpStatus == 500 { responder.exchange.logFailure("\(error)") }
      responder.sendJSON(failure.json, status: failure.httpStatus, cacheControl: "no-store")
    }
  }
}

extension IdentityRoute.Call {
  func handler(_ method: HTTPMethod) -> IdentityCall? {
    let (calls, methods): (IdentityCall, [HTTPMethod]) =
      switch self {
      case .signUp: (.signUp, [.post])
      case .signInWithPassword: (.signInWithPassword, [.post])
      case .signInWithCustomToken: (.signInWithCustomToken, [.post])
      case .signInWithIdp: (.signInWithIdp, [.post])
      case .signInWithEmailLink: (.signInWithEmailLink, [.post])
      case .signInWithPhoneNumber: (.signInWithPhoneNumber, [.post])
      case .sendVerificationCode: (.sendVerificationCode, [.post])
      case .lookup: (.lookup, [.post])
      case .update: (.update, [.post])
      case .delete: (.delete, [.post])
      case .createAuthUri: (.createAuthURI, [.post])
      case .sendOobCode: (.sendOobCode, [.post])
      case .resetPassword: (.resetPassword, [.post])
      case .batchGet: (.batchGet, [.get, .post])
      case .batchCreate: (.batchCreate, [.post])
      case .batchDelete: (.batchDelete, [.post])
      case .query: (.query, [.post])
      case .createSessionCookie: (.createSessionCookie, [.post])
      case .projectConfig: (.projectConfig, [.get, .post])
      case .config: (method == .get ? .config : .changeConfig, [.get, .patch])
      case .recaptchaParams: (.recaptchaParameters, [.get])
      case .recaptchaConfig: (.recaptchaConfig, [.get])
      case .passwordPolicy: (.passwordPolicy, [.get])
      case .token: (.token, [.post])
      case .emulatorAccounts: (.emulatorAccounts, [.delete])
      case .emulatorConfig: (method == .get ? .emulatorConfig : .changeEmulatorConfig, [.get, .patch])
      case .emulatorOobCodes: (.emulatorOobCodes, [.get])
      case .emulatorVerificationCodes: (.emulatorVerificationCodes, [.get])
      case .emulatorAction: (.emulatorAction, [.get])
      case .unimplemented: (.unimplemented, [.get, .head, .post, .put, .patch, .delete])
      }
    return methods.contains(where: { $0 == method }) ? calls : nil
  }
}
