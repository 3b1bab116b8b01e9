import Accounts
import WireFormat

/// Changes to an account: by its user, by an administrator, or with a code from an email.
extension IdentityRequest {
  func update() throws -> Response {
    if let code = text("oobCode") { return try spend(code) }
    if isAdmin, let uid = text("localId") { return try change(uid, token: nil) }
    guard text("idToken") != nil else { throw AccountError(isAdmin ? .missingLocalID : .missingIDToken) }
    let (user, token) = try owner()
    if !isAdmin {
      for field in Self.adminFields where fields[field] != nil { throw AccountError(.insufficientPermission) }
      if let id = text("localId"), !id.utf8.elementsEqual(user.uid.utf8) {
        throw AccountError(.unexpectedParameter, "User ID")
      }
    }
    return try change(user.uid, token: token)
  }

  /// The fields that only administrators may change.
  private static let adminFields: [StaticString] = [
    "customAttributes", "disableUser", "emailVerified", "validSince", "phoneNumber", "createdAt", "lastLoginAt",
    "linkProviderUserInfo", "mfa",
  ]

  /// Changes a user. If the user's own token authorizes a new password or address, a new session begins.
  private func change(_ uid: String, token: VerifiedToken?) throws -> Response {
    let email = try email()
    let password = text("password")
    if email != nil || password != nil {
      guard isAdmin || settings.allowsPassword else { throw AccountError(.operationNotAllowed) }
    }
    let newHash = try password.map { try hash($0) }
    let changeProfile = try changeOfProfile()
    let now = accounts.nowMilliseconds
    func isMoved(_ user: User) -> Bool { email.map { !user.hasEmail($0) } ?? false }
    var recovery: ActionCode?
    /// Runs in the transaction of the change, before it.
    func prepare(_ users: UserTransaction) throws -> String {
      guard let user = try users.user(uid) else { throw AccountError(.userNotFound) }
      if let token, !user.isAnonymous {
        // An account without any sign-in method is like a guest's: any holder of a token could add one.
        var after = user
        try changeProfile(&after)
        if newHash != nil || isMoved(user) || takesAwayPassword || after.isAnonymous { try requireRecent(token) }
      }
      if let email { recovery = try self.recovery(of: user, movedTo: email, in: users) }
      return uid
    }
    func change(_ user: inout User) throws {
      if let email, isMoved(user) { user.move(to: email, isVerified: false, now: now) }
      if let newHash { user.setPassword(newHash, now: now) }
      try changeProfile(&user)
    }
    let endsSessions = try newHash != nil || accounts.users.user(uid).map(isMoved) ?? false
    guard endsSessions, let token else {
      let user = try accounts.users.write { users in try users.update(try prepare(users), change) }
      send(recovery: recovery)
      audit(.changed, uid) { $0.fields = names(of: fields) }
      return response("SetAccountInfoResponse") { append(user, to: &$0) }
    }
    let outcome = try accounts.signIn(
      provider: token.provider == "custom" ? "custom" : "password", find: prepare, change: change)
    send(recovery: recovery)
    audit(.changed, uid) { $0.fields = names(of: fields) }
    return response("SetAccountInfoResponse") { json in
      append(outcome.user, to: &json)
      json.members(outcome)
    }
  }

  /// The attributes to delete, by name or by number.
  private var deletedAttributes: [String] {
    (fields["deleteAttribute"]?.elements ?? []).compactMap { $0.text ?? $0.int64.map { "\($0)" } }
  }

  /// Whether the request deletes the password, the email address that belongs to it, or all providers.
  private var takesAwayPassword: Bool {
    texts("deleteProvider").contains("password")
      || deletedAttributes.contains { ["EMAIL", "1", "PROVIDER", "3", "PASSWORD", "5"].contains($0) }
  }

  /// Returns a closure that applies all fields other than email and password.
  private func changeOfProfile() throws -> (inout User) throws -> Void {
    let displayName = try fields["displayName"]?.text.map { try UserFields.text($0, "displayName") }
    let photoURL = try fields["photoUrl"]?.text.map { try UserFields.text($0, "photoUrl") }
    let phoneNumber = try text("phoneNumber").map(UserFields.phoneNumber)
    let claims = try fields["customAttributes"]?.text.map { try UserFields.customClaims($0) }
    let link = fields["linkProviderUserInfo"]
    let deleted = texts("deleteProvider")
    let attributes = deletedAttributes
    guard fields["mfa"]?["enrollments"]?.elements.isEmpty ?? true else {
      throw AccountError(.notImplemented, "This server does not support second factors.")
    }
    let fields = fields
    let now = accounts.nowMilliseconds
    return { user in
      // Delete first, so that one request can also set a new value.
      for provider in deleted { user.unlink(provider) }
      for attribute in attributes {
        switch attribute {
        case "EMAIL", "1":
          user.email = nil
          user.isEmailVerified = false
        case "DISPLAY_NAME", "2": user.displayName = nil
        case "PROVIDER", "3": user.providers = []
        case "PHOTO_URL", "4": user.photoURL = nil
        case "PASSWORD", "5": user.passwordHash = nil
        default: break
        }
      }
      if let displayName { user.displayName = displayName.isEmpty ? nil : displayName }
      if let photoURL { user.photoURL = photoURL.isEmpty ? nil : photoURL }
      if let phoneNumber { user.phoneNumber = phoneNumber }
      if let claims { user.customAttributes = claims }
      if let flag = fields["emailVerified"]?.flag { user.isEmailVerified = flag }
      if let flag = fields["disableUser"]?.flag { user.isDisabled = flag }
      if let seconds = fields["validSince"]?.int64 {
        // A `validSince` that does not decrease also ends the sessions of the same second.
        if seconds >= user.validSince { user.endSessions(now: now) }
        user.validSince = seconds
      }
      if let time = fields["createdAt"]?.int64 { user.createdAt = min(time, now) }
      if let time = fields["lastLoginAt"]?.int64 { user.lastLoginAt = time }
      if let link {
        if link["providerId"]?.text == "phone", let number = link["phoneNumber"]?.text ?? link["rawId"]?.text {
          user.phoneNumber = try UserFields.phoneNumber(number)
        } else if let provider = User.LinkedProvider(link) {
          user.link(provider)
        } else {
          throw AccountError(.invalidProviderID)
        }
      }
    }
  }

  /// The names of the fields in the request, for the log, which must not contain their values.
  private func names(of fields: JSONTree) -> [String] {
    let known: [StaticString] = [
      "email", "password", "displayName", "photoUrl", "phoneNumber", "customAttributes", "emailVerified",
      "disableUser", "validSince", "deleteAttribute", "deleteProvider", "linkProviderUserInfo",
    ]
    return known.filter { fields[$0] != nil }.map(\.description)
  }

  /// Applies the change that a code from an email allows.
  private func spend(_ code: String) throws -> Response {
    let now = accounts.nowMilliseconds
    var recovery: ActionCode?
    let user = try accounts.users.write { users in
      let code = try users.spend(code, now: now)
      guard let uid = code.uid, let user = try users.user(uid) else { throw AccountError(.invalidOobCode) }
      if code.kind == .verifyAndChangeEmail, let email = code.newEmail {
        recovery = try self.recovery(of: user, movedTo: email, in: users)
      }
      return try users.update(uid) { user in
        switch code.kind {
        case .verifyEmail: user.isEmailVerified = true
        case .verifyAndChangeEmail:
          guard let email = code.newEmail else { throw AccountError(.invalidOobCode) }
          user.move(to: email, isVerified: true, now: now)
        case .recoverEmail: user.move(to: code.email, isVerified: true, now: now)
        case .resetPassword, .emailSignIn: throw AccountError(.invalidOobCode)
        }
      }
    }
    send(recovery: recovery)
    audit(.changed, user.uid, by: "emailCode")
    return response("SetAccountInfoResponse") { append(user, to: &$0) }
  }

  private func append(_ user: User, to json: inout JSONWriter) {
    json.text("localId", user.uid)
    json.member("email", user.email)
    json.boolean("emailVerified", user.isEmailVerified)
    json.member("displayName", user.displayName)
    json.member("photoUrl", user.photoURL)
    if user.passwordHash != nil { json.text("passwordHash", User.redactedHash) }
    user.appendProviders(to: &json)
  }
}
