import Accounts
import DatabaseService
import Transport
import WireFormat

/// AccountStore over HTTP: the Identity Toolkit and Secure Token APIs of auth-api.md, under the host names that clients put
/// before their paths in emulator mode, and plain.
///
/// An end user's call comes with an API key, any that is not empty, and tells of the user by an ID token in its body. An
/// administrator's comes with a bearer token. Nothing is done on the event loop but to read the request: accounts wait
/// for the disk, passwords for the processor.
final class IdentityHandler: Sendable {
  private let toolkit: IdentityToolkit
  private let authenticator: Authenticator

  /// The largest body of an end user's call, in bytes.
  static let userBytesMax = 256 << 10
  /// The largest body of an administrator's call, in bytes.
  static let adminBytesMax = 32 << 20

  init(_ toolkit: IdentityToolkit, _ authenticator: Authenticator) {
    self.toolkit = toolkit
    self.authenticator = authenticator
  }

  /// Answers a request for a path that ``IdentityRoute`` knows.
  func handle(
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
        throw AccountError(.tooManyAttempts, "The server has too many sign-ins to do. Try again in a moment.")
      }
    } catch {
      Self.send(.failure(error), responder)
    }
  }

  // MARK: Who calls

  /// Whether an administrator calls.
  /// - Throws: what is answered to one who may not call at all (auth-api.md, section 2).
  private func admit(
    _ route: IdentityRoute, _ parameters: QueryParameters, _ request: borrowing HTTPRequest
  ) throws -> Bool {
    if let header = request.header("authorization"), Authenticator.isBearer(header) {
      do throws(Status) {
        if case .admin = try authenticator.caller(of: request) { return true }
      } catch {
        throw AccountError(.unauthenticated, error.message)
      }
      throw AccountError(.unauthenticated, "The token is a user's; this call takes an administrator's.")
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

  private func check(_ route: IdentityRoute, _ fields: AccountsJSON, isAdmin: Bool) throws {
    // The codes that were sent are worth a look in every mode, for administrators; what only tests do is not.
    if toolkit.accounts.mode == .production, [.emulatorAccounts, .emulatorAction].contains(route.call) {
      throw AccountError(.permissionDenied)
    }
    let target = fields["targetProjectId"]?.text
    if !isAdmin, target != nil {
      throw AccountError(
        .insufficientPermission, "Only authenticated requests can specify target_project_id.")
    }
    // An emulator has one set of users for whatever project a test suite names.
    guard toolkit.accounts.mode == .production, let project = route.project ?? target else { return }
    guard project.utf8.elementsEqual(toolkit.accounts.project.id.utf8) else {
      throw AccountError(.permissionDenied, "This server has the accounts of project \(toolkit.accounts.project.id).")
    }
  }

  /// Where the client believes the server to be.
  private static func origin(of request: borrowing HTTPRequest) -> String {
    let host = request.header("host").map { Array($0) } ?? []
    let isName = !host.isEmpty && host.count <= 255 && host.allSatisfy { byte in
      (0x30...0x3A).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || [0x2D, 0x2E, 0x5B, 0x5D, 0x5F].contains(byte)
    }
    return "http://\(isName ? String(decoding: host, as: UTF8.self) : "localhost")"
  }

  // MARK: What is asked

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

  /// The fields of a body: JSON, or a form. A body that begins as JSON does is JSON, whatever its header says.
  private static func fields(of request: borrowing HTTPRequest) throws -> AccountsJSON {
    let body = request.body
    guard let first = body.first(where: { $0 > 0x20 }) else { return .object([]) }
    let isForm = request.header("content-type").map {
      $0.starts(with: "application/x-www-form-urlencoded".utf8)
    } ?? false
    guard first != UInt8(ascii: "{"), isForm else {
      let tree = try AccountsJSON(parsing: Array(body))
      guard tree.members != nil else { throw WireError.invalidJSON("Root element must be a message.") }
      return tree
    }
    let parameters = try QueryParameters(body)
    return .object(parameters.all.map { AccountsJSON.Member(name: $0.name, value: .string($0.value)) })
  }

  private func queue(for call: IdentityRoute.Call, _ fields: AccountsJSON) -> BoundedQueue {
    switch call {
    case .batchCreate, .batchDelete, .batchGet, .query: toolkit.batchQueue
    case .signInWithPassword: toolkit.passwordQueue
    case .signUp, .update: fields["password"] == nil ? toolkit.callQueue : toolkit.passwordQueue
    case .resetPassword: fields["newPassword"] == nil ? toolkit.callQueue : toolkit.passwordQueue
    case .emulatorAction: toolkit.passwordQueue
    default: toolkit.callQueue
    }
  }

  // MARK: Answers

  private static func send(_ outcome: Result<IdentityRequest.Answer, any Error>, _ responder: Responder) {
    switch outcome {
    case .success(let answer):
      if let location = answer.location {
        responder.sendRedirect(to: location, status: answer.status)
      } else {
        // Tokens and people's data are for one pair of eyes.
        responder.sendJSON(answer.body, status: answer.status, cacheControl: "no-store")
      }
    case .failure(let error):
      let failure = IdentityFailure(error)
      if failure.httpStatus == 500 { responder.exchange.tellFailure("\(error)") }
      responder.sendJSON(failure.json, status: failure.httpStatus, cacheControl: "no-store")
    }
  }
}
