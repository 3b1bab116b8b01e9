import Accounts
import GatewayCore
import IdentityService
import WireFormat

/// The calls that begin or continue a session.
extension IdentityCall {
  static let signUp = IdentityCall(
    kind: "SignupNewUserResponse", work: .passwordIf("password"),
    { fields in
      var request = AccountsService.SignUp(email: fields.text("email"), password: fields.text("password"))
      request.idToken = fields.text("idToken")
      request.displayName = fields.text("displayName")
      // A value of another type is still an attempt to choose the uid.
      request.uid = fields["localId"].map { $0.text ?? "" }
      request.phoneNumber = fields.text("phoneNumber")
      request.photoURL = fields.text("photoUrl")
      request.isEmailVerified = fields.flag("emailVerified") ?? false
      request.isDisabled = fields.flag("disabled") ?? false
      request.secondFactorCount = fields["mfaInfo"]?.elements.count
      return request
    }, AccountsService.signUp
  ) { response, json in
    json.text("localId", response.user.uid)
    json.member("email", response.user.email)
    json.member("displayName", response.user.displayName)
    if let session = response.session { json.members(session) }
  }

  static let signInWithPassword = IdentityCall(
    kind: "VerifyPasswordResponse", work: .password,
    { AccountsService.SignInWithPassword(email: $0.text("email"), password: $0.text("password")) },
    AccountsService.signInWithPassword
  ) { outcome, json in
    json.text("localId", outcome.user.uid)
    json.text("email", outcome.user.email ?? "")
    json.text("displayName", outcome.user.displayName ?? "")
    json.member("profilePicture", outcome.user.photoURL)
    json.boolean("registered", true)
    json.members(outcome)
  }

  static let signInWithCustomToken = IdentityCall(
    kind: "VerifyCustomTokenResponse",
    { AccountsService.SignInWithCustomToken(token: $0.text("token")) }, AccountsService.signInWithCustomToken
  ) { outcome, json in
    json.boolean("isNewUser", outcome.isNew)
    json.members(outcome)
  }

  static let signInWithEmailLink = IdentityCall(
    kind: "EmailLinkSigninResponse",
    {
      AccountsService.SignInWithEmailLink(
        email: $0.text("email"), code: $0.text("oobCode"), idToken: $0.text("idToken"))
    }, AccountsService.signInWithEmailLink
  ) { outcome, json in
    json.text("localId", outcome.user.uid)
    json.text("email", outcome.user.email ?? "")
    json.boolean("isNewUser", outcome.isNew)
    json.members(outcome)
  }

  static let sendVerificationCode = IdentityCall(
    { AccountsService.SendVerificationCode(phoneNumber: $0.text("phoneNumber")) },
    AccountsService.sendVerificationCode
  ) { code, json in json.text("sessionInfo", code.sessionInfo) }

  static let signInWithPhoneNumber = IdentityCall(
    {
      AccountsService.SignInWithPhoneNumber(
        sessionInfo: $0.text("sessionInfo"), code: $0.text("code"), idToken: $0.text("idToken"))
    }, AccountsService.signInWithPhoneNumber
  ) { outcome, json in
    json.text("localId", outcome.user.uid)
    json.text("phoneNumber", outcome.user.phoneNumber ?? "")
    json.boolean("isNewUser", outcome.isNew)
    json.members(outcome)
  }

  static let signInWithIdp = IdentityCall(
    kind: "VerifyAssertionResponse", work: .providerIfNamed, idpRequest, AccountsService.signInWithIdp
  ) {
    response, json in
    switch response {
    case .signedIn(let outcome, let identity):
      json.text("localId", outcome.user.uid)
      json.member("email", outcome.user.email)
      json.boolean("emailVerified", outcome.user.isEmailVerified)
      json.boolean("isNewUser", outcome.isNew)
      append(identity, to: &json)
      json.members(outcome)
    case .needsConfirmation(let user, let identity):
      json.boolean("needConfirmation", true)
      json.text("localId", user.uid)
      json.member("email", user.email)
      json.array("verifiedProvider", user.providerIDs.filter { $0 != "phone" }) { $1.string($0) }
      append(identity, to: &json)
    case .refused(let error, let identity):
      // The code follows from the status in all other calls. Here clients read it besides the identity.
      json.text("errorMessage", error.message)
      json.member("email", identity.provider.email)
      append(identity, to: &json)
    }
  }

  @Sendable private static func idpRequest(_ fields: IdentityRequest) throws -> AccountsService.SignInWithIdp {
    guard let uri = fields.text("requestUri") else { throw AccountError(.missingRequestURI) }
    var form = Array((fields.text("postBody") ?? "").utf8)
    // If the provider redirected the user to a page, the response is in the URL's query.
    if form.isEmpty, let mark = uri.utf8.firstIndex(of: UInt8(ascii: "?")) {
      form = Array(uri.utf8[uri.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") })
    }
    guard let parameters = try? form.withUnsafeBytes({ try QueryParameters($0) }) else {
      throw AccountError(.invalidIdpResponse)
    }
    var request = AccountsService.SignInWithIdp(
      providerID: parameters.value("providerId"), providerToken: parameters.value("idToken"))
    request.accessToken = parameters.value("accessToken")
    request.returned = fields.returned
    request.returnsCredential = fields.flag("returnIdpCredential") ?? false
    request.nonce = parameters.value("nonce")
    request.idToken = fields.text("idToken")
    request.createsAccount = fields.flag("autoCreate") ?? true
    return request
  }

  private static func append(_ identity: AccountsService.Identity, to json: inout JSONWriter) {
    json.text("providerId", identity.provider.providerID)
    json.text("federatedId", identity.provider.federatedID)
    json.member("displayName", identity.claims.text("name"))
    json.member("fullName", identity.claims.text("name"))
    json.member("firstName", identity.claims.text("given_name"))
    json.member("lastName", identity.claims.text("family_name"))
    json.member("photoUrl", identity.claims.text("picture"))
    json.member("oauthIdToken", identity.token)
    json.member("oauthAccessToken", identity.accessToken)
    json.text("rawUserInfo", String(decoding: identity.claims.json, as: UTF8.self))
  }

  /// Returns a new ID token for a refresh token. Only this response has member names in snake_case.
  static let token = IdentityCall { service, caller, fields in
    guard let grant = fields.text("grantType") else { throw AccountError(.missingGrantType) }
    guard grant == "refresh_token" else { throw AccountError(.invalidGrantType) }
    let outcome = try service.refreshToken(.init(refreshToken: fields.text("refreshToken")), by: caller)
    return .object { json in
      json.text("id_token", outcome.idToken)
      json.text("access_token", outcome.idToken)
      json.text("refresh_token", outcome.refreshToken)
      json.text("expires_in", "\(AccountStore.idTokenSeconds)")
      json.text("token_type", "Bearer")
      json.text("user_id", outcome.user.uid)
      json.text("project_id", "\(service.accounts.project.number)")
    }
  }

  static let createSessionCookie = IdentityCall(
    { AccountsService.CreateSessionCookie(idToken: $0.text("idToken"), seconds: $0["validDuration"]?.int64) },
    AccountsService.createSessionCookie
  ) { cookie, json in json.text("sessionCookie", cookie) }
}
