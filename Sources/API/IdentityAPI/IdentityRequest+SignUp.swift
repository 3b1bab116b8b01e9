import Accounts
import DocumentModel
import WireFormat

/// Creation of accounts: anonymous ones, users' own, and those that administrators create.
extension IdentityRequest {
  func signUp() throws -> Response {
    if text("idToken") != nil { return try linkPassword() }
    if isAdmin { return try createByAdmin() }
    for field in ["localId", "mfaInfo"] as [StaticString] where fields[field] != nil {
      throw AccountError(.unexpectedParameter, field.description == "localId" ? "User ID" : "MFA")
    }
    let email = try email()
    let password = text("password")
    guard settings.allowsSignUp else { throw AccountError(.adminOnlyOperation) }
    if email == nil, password == nil {
      guard settings.allowsAnonymous else { throw AccountError(.adminOnlyOperation) }
    } else {
      guard settings.allowsPassword else { throw AccountError(.operationNotAllowed) }
    }
    if email == nil, password != nil { throw AccountError(.missingEmail) }
    if email != nil, password == nil { throw AccountError(.missingPassword) }
    try countSignUp()
    var user = User(uid: UserStore.makeUID(), createdAt: accounts.nowMilliseconds)
    user.displayName = try text("displayName").map { try UserFields.text($0, "displayName") }
    if let email, let password {
      user.email = email
      user.setPassword(try hash(password), now: user.createdAt)
    }
    let made = user
    let outcome = try accounts.signIn(provider: email == nil ? "anonymous" : "password") { users in
      try users.insert(made)
      return made.uid
    }
    audit(.created, outcome.user.uid, by: email == nil ? "anonymous" : "password")
    return response("SignupNewUserResponse") { json in
      json.text("localId", outcome.user.uid)
      json.member("email", outcome.user.email)
      json.member("displayName", outcome.user.displayName)
      json.members(outcome)
    }
  }

  /// Adds an email address and a password to the ID token's account. A guest becomes a member with the same uid.
  private func linkPassword() throws -> Response {
    let (user, token) = try owner()
    guard settings.allowsPassword else { throw AccountError(.operationNotAllowed) }
    guard let email = try email() else { throw AccountError(.missingEmail) }
    guard let password = text("password") else { throw AccountError(.missingPassword) }
    // Only a guest account has no sign-in method that the holder of an old token could take over.
    if !user.isAnonymous { try requireRecent(token) }
    let hash = try hash(password)
    let now = accounts.nowMilliseconds
    let name = try text("displayName").map { try UserFields.text($0, "displayName") }
    var recovery: ActionCode?
    let outcome = try accounts.signIn(provider: "password") { users in
      guard let user = try users.user(user.uid) else { throw AccountError(.userNotFound) }
      recovery = try self.recovery(of: user, movedTo: email, in: users)
      return user.uid
    } change: { user in
      if !user.hasEmail(email) { user.move(to: email, isVerified: false, now: now) }
      user.setPassword(hash, now: now)
      if let name { user.displayName = name }
    }
    send(recovery: recovery)
    audit(.linked, user.uid, by: "password")
    return response("SignupNewUserResponse") { json in
      json.text("localId", outcome.user.uid)
      json.member("email", outcome.user.email)
      json.member("displayName", outcome.user.displayName)
      json.members(outcome)
    }
  }

  private func createByAdmin() throws -> Response {
    let uid = try text("localId").map(UserFields.uid) ?? UserStore.makeUID()
    let now = accounts.nowMilliseconds
    var user = User(uid: uid, createdAt: now)
    user.email = try email()
    user.phoneNumber = try text("phoneNumber").map(UserFields.phoneNumber)
    user.displayName = try text("displayName").map { try UserFields.text($0, "displayName") }
    user.photoURL = try text("photoUrl").map { try UserFields.text($0, "photoUrl") }
    user.isEmailVerified = fields["emailVerified"]?.flag ?? false
    user.isDisabled = fields["disabled"]?.flag ?? false
    guard fields["mfaInfo"]?.elements.isEmpty ?? true else {
      throw AccountError(.notImplemented, "This server does not support second factors.")
    }
    if let password = text("password") { user.setPassword(try hash(password), now: now) }
    try accounts.users.insert(user)
    audit(.created, uid)
    return response("SignupNewUserResponse") { json in
      json.text("localId", uid)
      json.member("email", user.email)
      json.member("displayName", user.displayName)
    }
  }

  /// Limits the number of new accounts per client address.
  func countSignUp() throws {
    guard accounts.mode == .production, let address else { return }
    guard toolkit.throttle.allows(.signUp, address) else {
      throw AccountError(.tooManyAttempts, "Too many accounts were created from this address. Try again later.")
    }
    toolkit.throttle.count(.signUp, address)
  }
}
