import Accounts
import DocumentModel
import WireFormat

/// Sign-in with a password, a custom token or a refresh token.
extension IdentityRequest {
  func signInWithPassword() throws -> Response {
    let settings = settings
    guard settings.allowsPassword else { throw AccountError(.passwordLoginDisabled) }
    guard let given = text("email") else { throw AccountError(.missingEmail) }
    let email = try UserFields.email(given)
    guard let password = text("password") else { throw AccountError(.missingPassword) }
    try checkAttempts(email)
    let user = try accounts.users.user(email: email)
    if !settings.hidesEmails {
      // Check in the documented order. If addresses are hidden, all failures return the same error after the same
      // time.
      guard let user else { throw AccountError(.emailNotFound) }
      guard !user.isDisabled else { throw AccountError(.userDisabled) }
    }
    guard toolkit.passwords.accepts(password, for: user?.passwordHash), let user else {
      countFailure(email)
      auditFailure(user, user == nil ? "unknown email address" : "wrong password")
      throw AccountError(settings.hidesEmails ? .invalidLoginCredentials : .invalidPassword)
    }
    guard !user.isDisabled else {
      auditFailure(user, "disabled")
      throw AccountError(.userDisabled)
    }
    forgiveFailures(email)
    let known = user.passwordHash
    let replacement = try known.flatMap { try toolkit.passwords.replacement(of: $0, password) }
    let outcome = try accounts.signIn(provider: "password", find: { _ in user.uid }) { user in
      // The stored password may have changed since it was checked, so compare again.
      guard user.passwordHash == known else { throw AccountError(.invalidLoginCredentials) }
      if let replacement { user.passwordHash = replacement }
    }
    audit(.signedIn, user.uid, by: "password")
    return response("VerifyPasswordResponse") { json in
      json.text("localId", outcome.user.uid)
      json.text("email", outcome.user.email ?? email)
      json.text("displayName", outcome.user.displayName ?? "")
      json.member("profilePicture", outcome.user.photoURL)
      json.boolean("registered", true)
      json.members(outcome)
    }
  }

  func signInWithCustomToken() throws -> Response {
    guard var text = text("token") else { throw AccountError(.missingCustomToken) }
    let token: CustomToken
    do {
      token = try text.withUTF8 { text in
        Result { () throws(TokenError) in try accounts.verifyCustomToken(UnsafeRawBufferPointer(text)) }
      }.get()
    } catch TokenError.storage(let error) {
      throw error
    } catch TokenError.wrongAudience {
      throw AccountError(.credentialMismatch)
    } catch {
      throw AccountError(.invalidCustomToken, "\(error)")
    }
    guard token.tenant == nil else { throw AccountError(.unsupportedTenantOperation) }
    let uid = try UserFields.uid(token.uid)
    let now = accounts.nowMilliseconds
    var isNew = false
    let outcome = try accounts.signIn(provider: "custom", sessionClaims: token.claims) { users in
      if try users.user(uid) == nil {
        isNew = true
        try users.insert(User(uid: uid, createdAt: now))
      }
      return uid
    } change: { user in
      user.isCustomAuth = true
    }
    audit(isNew ? .created : .signedIn, uid, by: "custom")
    return response("VerifyCustomTokenResponse") { json in
      json.boolean("isNewUser", isNew)
      json.members(outcome)
    }
  }

  /// Returns a new ID token for a refresh token. Only this response has member names in snake_case.
  func token() throws -> Response {
    guard let grant = text("grantType") else { throw AccountError(.missingGrantType) }
    guard grant == "refresh_token" else { throw AccountError(.invalidGrantType) }
    guard let token = text("refreshToken") else { throw AccountError(.missingRefreshToken) }
    let outcome = try accounts.refresh(token)
    return response(nil) { json in
      json.text("id_token", outcome.idToken)
      json.text("access_token", outcome.idToken)
      json.text("refresh_token", outcome.refreshToken)
      json.text("expires_in", "\(AccountStore.idTokenSeconds)")
      json.text("token_type", "Bearer")
      json.text("user_id", outcome.user.uid)
      json.text("project_id", projectNumber)
    }
  }

  func createSessionCookie() throws -> Response {
    let (_, token) = try owner()
    let seconds = fields["validDuration"]?.int64 ?? AccountStore.sessionCookieSeconds.upperBound
    guard AccountStore.sessionCookieSeconds.contains(seconds) else { throw AccountError(.invalidDuration) }
    let cookie = try accounts.mintSessionCookie(from: token, seconds: seconds)
    audit(.cookieIssued, token.uid)
    return response(nil) { $0.text("sessionCookie", cookie) }
  }

  // MARK: Password guessing

  private func auditFailure(_ user: User?, _ reason: String) {
    audit(.signInFailed, user?.uid) { event in
      event.method = "password"
      event.reason = reason
    }
  }

  /// Rejects an attempt after too many failures: for the account from this address, for the account, or from this
  /// address. Call it before the account is read, so that the response does not reveal whether the account exists.
  private func checkAttempts(_ email: String) throws {
    guard accounts.mode == .production else { return }
    let throttle = toolkit.throttle
    guard throttle.allows(.account, email), throttle.allows(.accountFromAddress, email + " " + (address ?? "")),
      address.map({ throttle.allows(.address, $0) }) ?? true
    else {
      throw AccountError(
        .tooManyAttempts,
        "Access to this account has been temporarily disabled due to many failed login attempts. "
          + "You can immediately restore it by resetting your password or you can try again later.")
    }
  }

  private func countFailure(_ email: String) {
    guard accounts.mode == .production else { return }
    toolkit.throttle.count(.account, email)
    toolkit.throttle.count(.accountFromAddress, email + " " + (address ?? ""))
    if let address { toolkit.throttle.count(.address, address) }
  }

  private func forgiveFailures(_ email: String) {
    toolkit.throttle.reset(.accountFromAddress, email + " " + (address ?? ""))
  }
}
