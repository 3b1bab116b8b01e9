import Accounts
import DocumentModel
import WireFormat

/// One call of the identity toolkit: who makes it, and what it says. Worked on by a thread that may wait; one file of
/// extensions for each kind of call.
struct IdentityRequest: Sendable {
  let toolkit: IdentityToolkit
  /// Whether an administrator calls.
  let isAdmin: Bool
  /// The body.
  let fields: AccountsJSON
  /// The parameters of the URL.
  let parameters: QueryParameters
  /// Whether the call is one of the read methods of HTTP.
  let isRead: Bool
  /// Whether what the path names is to be removed.
  let isDelete: Bool
  /// Where it comes from, for the throttle; `nil` for this machine itself.
  let address: String?
  /// Where the client believes the server to be, such as `http://127.0.0.1:8080`.
  let origin: String

  var accounts: AccountStore { toolkit.accounts }
  var settings: AccountsSettings { toolkit.currentSettings }

  /// What is answered.
  struct Answer: Sendable {
    var status = 200
    var body: [UInt8]
    /// Where the client is sent on to.
    var location: String?
  }

  /// Does what is asked for.
  /// - Throws: `AccountError`, `TokenError`, `StorageError`.
  func run(_ call: IdentityRoute.Call) throws -> Answer {
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
    case .recaptchaParams, .recaptchaConfig, .passwordPolicy: fixedAnswer(call)
    case .emulatorAccounts: try emulatorAccounts()
    case .emulatorOobCodes: try emulatorOobCodes()
    case .emulatorVerificationCodes: emulatorVerificationCodes()
    case .emulatorAction: try emulatorAction()
    case .unimplemented: throw AccountError(.notImplemented, "This part of the API is not offered.")
    }
  }

  // MARK: What calls share

  /// An answer with a kind, whose other members `append` writes.
  func answer(_ kind: StaticString?, _ append: (inout JSONWriter) throws -> Void) rethrows -> Answer {
    var json = JSONWriter(.compact)
    json.beginObject()
    if let kind {
      json.key("kind")
      json.string("identitytoolkit#\(kind)")
    }
    try append(&json)
    json.endObject()
    return Answer(body: json.bytes)
  }

  /// The text of a field that is not empty.
  func text(_ field: StaticString) -> String? {
    guard let text = fields[field]?.text, !text.isEmpty else { return nil }
    return text
  }

  /// The e-mail address of a field, as it is kept; `nil` where there is none.
  func email(_ field: StaticString = "email") throws -> String? { try text(field).map(UserFields.email) }

  /// Who calls by an ID token in the body.
  /// - Throws: `MISSING_ID_TOKEN`, and as `AccountStore.owner(ofIDToken:)`.
  func owner() throws -> (user: User, token: VerifiedToken) {
    guard let idToken = text("idToken") else { throw AccountError(.missingIDToken) }
    return try accounts.owner(ofIDToken: idToken)
  }

  /// Refuses what is too weighty for one who signed in long ago.
  func requireRecent(_ token: VerifiedToken) throws {
    guard accounts.mode == .production, !isAdmin else { return }
    guard accounts.nowSeconds - token.authTimeSeconds <= Self.recentSeconds else {
      throw AccountError(.credentialTooOld)
    }
  }

  /// How long a sign-in counts as recent, in seconds.
  private static let recentSeconds: Int64 = 300

  /// The hash of a new password.
  func hash(_ password: String) throws -> PasswordHash {
    try toolkit.passwords.hash(try UserFields.newPassword(password))
  }

  /// Tells the log what was done, of whom, by whom; `detail` adds what there is more to say.
  func audit(_ kind: AccountEvent.Kind, _ uid: String? = nil, _ detail: (inout AccountEvent) -> Void = { _ in }) {
    var event = AccountEvent(kind, uid: uid, by: isAdmin ? .admin : .user, from: address)
    detail(&event)
    accounts.audit(event)
  }

  /// The same of what somebody did who proved in some way who they are.
  func audit(_ kind: AccountEvent.Kind, _ uid: String, by method: String) { audit(kind, uid) { $0.method = method } }
}

extension JSONWriter {
  /// Appends the tokens of a sign-in, as members.
  mutating func members(_ outcome: SignInOutcome) {
    key("idToken")
    string(outcome.idToken)
    key("refreshToken")
    string(outcome.refreshToken)
    key("expiresIn")
    string("\(AccountStore.idTokenSeconds)")
  }

  /// Appends a member that is there even where it is empty.
  mutating func text(_ name: StaticString, _ value: String) {
    key(name)
    string(value)
  }

  /// Appends a flag that is there even where it is `false`.
  mutating func truth(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }
}
