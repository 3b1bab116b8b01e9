import GatewayCore
import Accounts
import DocumentModel
import WireFormat

/// One request to the Identity Toolkit API: its caller and fields, and the functions that handle it.
///
/// It runs on a thread that may block. Extensions in other files handle the kinds of requests.
struct IdentityRequest: Sendable {
  let toolkit: IdentityToolkit
  let isAdmin: Bool
  /// The fields of the body.
  let fields: JSONTree
  /// The parameters of the URL.
  let parameters: QueryParameters
  /// Whether the method is GET or HEAD.
  let isRead: Bool
  /// Whether the method is DELETE.
  let isDelete: Bool
  /// The client's address, for the throttle; `nil` for this machine.
  let address: String?
  /// The origin that the client uses for the server, such as `http://127.0.0.1:8080`.
  let origin: String

  var accounts: AccountStore { toolkit.accounts }
  var settings: AccountsSettings { toolkit.currentSettings }

  /// The response to a request.
  struct Response: Sendable {
    var status = 200
    var body: [UInt8]
    /// The URL to redirect the client to.
    var location: String?
  }

  /// Runs the request.
  ///
  /// - Throws: `AccountError`, `TokenError` or `StorageError`.
  func run(_ call: IdentityRoute.Call) throws -> Response {
    if fields["tenantId"]?.text?.isEmpty == false { throw AccountError(.unsupportedTenantOperation) }
    return switch call {
    case .signUp: try signUp()
    case .signInWithPassword: try signInWithPassword()
    case .signInWithCustomToken: try signInWithCustomToken()
    case .signInWithIdp: try signInWithIdp()
    case .signInWithEmailLink: try signInWithEmailLink()
    case .signInWithPhoneNumber: try signInWithPhoneNumber()
    case .sendVerificationCode: try sendVerificationCode()
    case .lookup: try lookup()
    case .update: try update()
    case .delete: try delete()
    case .createAuthUri: try createAuthUri()
    case .sendOobCode: try sendOobCode()
    case .resetPassword: try resetPassword()
    case .batchGet: try batchGet()
    case .batchCreate: try batchCreate()
    case .batchDelete: try batchDelete()
    case .query: try query()
    case .createSessionCookie: try createSessionCookie()
    case .token: try token()
    case .projectConfig: projectConfig()
    case .config, .emulatorConfig: try config(isForEmulator: call == .emulatorConfig)
    case .recaptchaParams, .recaptchaConfig, .passwordPolicy: fixedResponse(call)
    case .emulatorAccounts: try emulatorAccounts()
    case .emulatorOobCodes: try emulatorOobCodes()
    case .emulatorVerificationCodes: emulatorVerificationCodes()
    case .emulatorAction: try emulatorAction()
    case .unimplemented: throw AccountError(.notImplemented, "This server does not support this part of the API.")
    }
  }

  // MARK: Helpers

  /// Creates a response with the member `kind`; `append` writes the other members.
  func response(_ kind: StaticString?, _ append: (inout JSONWriter) throws -> Void) rethrows -> Response {
    var json = JSONWriter(.compact)
    json.beginObject()
    if let kind {
      json.key("kind")
      json.string("identitytoolkit#\(kind)")
    }
    try append(&json)
    json.endObject()
    return Response(body: json.bytes)
  }

  /// The string in a field, or `nil` if it is missing or empty.
  func text(_ field: StaticString) -> String? {
    guard let text = fields[field]?.text, !text.isEmpty else { return nil }
    return text
  }

  /// The email address in a field, in the form in which it is stored; `nil` if the field is missing or empty.
  func email(_ field: StaticString = "email") throws -> String? { try text(field).map(UserFields.email) }

  /// Returns the user of the ID token in the body.
  ///
  /// - Throws: `MISSING_ID_TOKEN` if the body contains none, or an error of `AccountStore.owner(ofIDToken:)`.
  func owner() throws -> (user: User, token: VerifiedToken) {
    guard let idToken = text("idToken") else { throw AccountError(.missingIDToken) }
    return try accounts.owner(ofIDToken: idToken)
  }

  /// Rejects sensitive changes if the user's sign-in is not recent.
  ///
  /// - Throws: `CREDENTIAL_TOO_OLD_LOGIN_AGAIN` if it is not.
  func requireRecent(_ token: VerifiedToken) throws {
    guard accounts.mode == .production, !isAdmin else { return }
    guard accounts.nowSeconds - token.authTimeSeconds <= Self.recentSeconds else {
      throw AccountError(.credentialTooOld)
    }
  }

  /// The age up to which a sign-in counts as recent, in seconds.
  private static let recentSeconds: Int64 = 300

  /// Checks and hashes a new password.
  func hash(_ password: String) throws -> PasswordHash {
    try toolkit.passwords.hash(try UserFields.newPassword(password))
  }

  /// Logs an event with its user, actor and client address; `detail` adds more fields.
  func audit(_ kind: AccountEvent.Kind, _ uid: String? = nil, _ detail: (inout AccountEvent) -> Void = { _ in }) {
    var event = AccountEvent(kind, uid: uid, by: isAdmin ? .admin : .user, from: address)
    detail(&event)
    accounts.audit(event)
  }

  /// Logs an event of a user who signed in with `method`.
  func audit(_ kind: AccountEvent.Kind, _ uid: String, by method: String) { audit(kind, uid) { $0.method = method } }
}

extension JSONWriter {
  /// Appends the tokens of a sign-in as members.
  mutating func members(_ outcome: SignInOutcome) {
    key("idToken")
    string(outcome.idToken)
    key("refreshToken")
    string(outcome.refreshToken)
    key("expiresIn")
    string("\(AccountStore.idTokenSeconds)")
  }

  /// Appends a string member, even if it is empty.
  mutating func text(_ name: StaticString, _ value: String) {
    key(name)
    string(value)
  }

  /// Appends a Boolean member, even if it is `false`.
  mutating func boolean(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }
}
