package import GatewayCore
import Accounts
import Basics
import DatabaseService
import DocumentModel
package import Transport
import WireFormat

/// Serves accounts over HTTP: the Identity Toolkit and Secure Token APIs of auth-api.md. Their paths may begin with
/// the host names that clients add in emulator mode, or not.
///
/// A request of an end user contains an API key, which may be any non-empty text, and identifies the user by an ID
/// token in its body. A request of an administrator contains a bearer token. The event loop only parses requests:
/// account operations wait for the disk and password hashing for the processor, so they run on queues.
package final class IdentityHandler: Sendable {
  private let toolkit: IdentityToolkit
  private let authenticator: Authenticator

  /// The largest body of an end user's request, in bytes.
  static let userBytesMax = 256 << 10
  /// The largest body of an administrator's request, in bytes.
  static let adminBytesMax = 32 << 20

  package init(_ toolkit: IdentityToolkit, _ authenticator: Authenticator) {
    self.toolkit = toolkit
    self.authenticator = authenticator
  }

  /// Handles a request for a path that ``IdentityRoute`` knows.
  package func handle(
    _ route: IdentityRoute, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder
  ) {
    do {
      guard Self.methods(of: route.call).contains(where: { $0 == request.method }) else {
        throw AccountError(.notFound)
      }
      let parameters = try QueryParameters(query)
      let isAdmin = try admit(route, parameters, request)
      let bytesMax = isAdmin ? Self.adminBytesMax : Self.userBytesMax
      guard request.body.count <= bytesMax else { return responder.sendTooLarge(bytesMax: bytesMax) }
      let fields = try Self.fields(of: request)
      try check(route, fields, isAdmin: isAdmin)
      let call = IdentityRequest(
        toolkit: toolkit, isAdmin: isAdmin, fields: fields, parameters: parameters,
        isRead: request.method == .get || request.method == .head, isDelete: request.method == .delete,
        address: request.clientAddress, origin: Self.origin(of: request))
      let isTaken = queue(for: route.call, fields).run {
        let outcome = Result { try call.run(route.call) }
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
        if try authenticator.caller(of: request).isAdmin { return true }
      } catch {
        throw AccountError(.unauthenticated, error.message)
      }
      throw AccountError(.unauthenticated, "The token belongs to a user. This request needs an administrator's token.")
    }
    if route.isEmulatorOnly {
      guard toolkit.accounts.mode == .emulator else { throw AccountError(.permissionDenied) }
      return false
    }
    guard !route.isForAdmins else { throw AccountError(.unauthenticated) }
    let header = request.header("x-goog-api-key")
    guard parameters.value("key")?.isEmpty == false || header?.isEmpty == false else {
      throw AccountError(.permissionDenied, "The request is missing a valid API key.")
    }
    return false
  }

  private func check(_ route: IdentityRoute, _ fields: JSONTree, isAdmin: Bool) throws {
    // Administrators may read the codes that were sent in every mode. The other emulator routes are only for tests.
    if toolkit.accounts.mode == .production, [.emulatorAccounts, .emulatorAction].contains(route.call) {
      throw AccountError(.permissionDenied)
    }
    let target = fields["targetProjectId"]?.text
    if !isAdmin, target != nil {
      throw AccountError(
        .insufficientPermission, "Only authenticated requests can specify target_project_id.")
    }
    // An emulator has one set of users for all projects that a test suite names.
    guard toolkit.accounts.mode == .production, let project = route.project ?? target else { return }
    guard project.utf8.elementsEqual(toolkit.accounts.project.id.utf8) else {
      throw AccountError(.permissionDenied, "This server serves only project \(toolkit.accounts.project.id).")
    }
  }

  /// The origin that the client uses for the server, from the header `Host`.
  private static func origin(of request: borrowing HTTPRequest) -> String {
    let host = request.header("host").map { Array($0) } ?? []
    let isName =
      !host.isEmpty && host.count <= 255
      && host.allSatisfy { byte in
        (0x30...0x3A).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || [0x2D, 0x2E, 0x5B, 0x5D, 0x5F].contains(byte)
      }
    return "http://\(isName ? String(decoding: host, as: UTF8.self) : "localhost")"
  }

  // MARK: Requests

  private static func methods(of call: IdentityRoute.Call) -> [HTTPMethod] {
    switch call {
    case .batchGet, .projectConfig: [.get, .post]
    case .recaptchaParams, .recaptchaConfig, .passwordPolicy, .emulatorOobCodes, .emulatorVerificationCodes,
      .emulatorAction:
      [.get]
    case .config, .emulatorConfig: [.get, .patch]
    case .emulatorAccounts: [.delete]
    case .unimplemented: [.get, .head, .post, .put, .patch, .delete]
    default: [.post]
    }
  }

  /// Parses the fields of a body: JSON or a form. A body that begins with `{` is JSON regardless of its content
  /// type.
  private static func fields(of request: borrowing HTTPRequest) throws -> JSONTree {
    let body = request.body
    guard let first = body.first(where: { $0 > 0x20 }) else { return JSONTree(.object([])) }
    let isForm =
      request.header("content-type").map {
        $0.starts(with: "application/x-www-form-urlencoded".utf8)
      } ?? false
    guard first != UInt8(ascii: "{"), isForm else {
      let tree = try JSONTree(parsing: Array(body))
      guard tree.members != nil else { throw WireError.invalidJSON("Root element must be a message.") }
      return tree
    }
    let parameters = try QueryParameters(body)
    return JSONTree(
      .object(parameters.all.map { JSONTree.Member(name: $0.name, value: JSONTree(.string($0.value))) }))
  }

  private func queue(for call: IdentityRoute.Call, _ fields: JSONTree) -> BoundedWorkers {
    switch call {
    case .batchCreate, .batchDelete, .batchGet, .query: toolkit.batchQueue
    case .signInWithPassword: toolkit.passwordQueue
    case .signUp, .update: fields["password"] == nil ? toolkit.callQueue : toolkit.passwordQueue
    case .resetPassword: fields["newPassword"] == nil ? toolkit.callQueue : toolkit.passwordQueue
    case .emulatorAction: toolkit.passwordQueue
    default: toolkit.callQueue
    }
  }

  // MARK: Responses

  private static func send(_ outcome: Result<IdentityRequest.Response, any Error>, _ responder: Responder) {
    switch outcome {
    case .success(let response):
      if let location = response.location {
        responder.sendRedirect(to: location, status: response.status)
      } else {
        // The body contains tokens and personal data, which no cache may store.
        responder.sendJSON(response.body, status: response.status, cacheControl: "no-store")
      }
    case .failure(let error):
      let failure = IdentityFailure(error)
      if failure.httpStatus == 500 { responder.exchange.logFailure("\(error)") }
      responder.sendJSON(failure.json, status: failure.httpStatus, cacheControl: "no-store")
    }
  }
}
