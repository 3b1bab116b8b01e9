package import Accounts

extension AccountsService {
  /// Changes an account. Fields that are `nil` stay as they are.
  package struct Update: Sendable {
    /// A mailed code. If present, the change that it allows is made instead of all others.
    package var code: String?
    /// The token of the user whose account to change.
    package var idToken: String?
    /// The account to change. An end user can name only the own account.
    package var uid: String?
    package var email: String?
    package var password: String?
    /// The new name. An empty text removes the name.
    package var displayName: String?
    /// The new URL of the picture. An empty text removes the picture.
    package var photoURL: String?
    /// The attributes to remove, by name or by number.
    package var deletedAttributes: [String]?
    /// The providers to unlink.
    package var deletedProviders: [String]?
    /// The changes that only administrators may make, or `nil` if the request makes no such change.
    package var administration: Administration?

    /// Changes that only administrators may make.
    package struct Administration: Sendable {
      package var phoneNumber: String?
      /// Custom claims: a JSON object as text. An empty text removes them.
      package var customAttributes: String?
      package var isEmailVerified: Bool?
      package var isDisabled: Bool?
      /// Tokens issued before this time are revoked, in seconds since 1970.
      package var validSince: Int64?
      /// In milliseconds since 1970.
      package var createdAt: Int64?
      /// In milliseconds since 1970.
      package var lastLoginAt: Int64?
      /// An identity to link.
      package var link: Link?
      /// The number of second factors, which this server does not support.
      package var secondFactorCount = 0

      package init() {}
    }

    /// An identity to link to an account.
    package enum Link: Sendable {
      case provider(User.LinkedProvider)
      case phoneNumber(String)
      /// An entry without the ID of a provider or of the user.
      case invalid
    }

    /// Creates a change of a user's own account, or of any account if an administrator makes it.
    package init(idToken: String? = nil, uid: String? = nil) {
      self.idToken = idToken
      self.uid = uid
    }
  }

  /// A changed account.
  package struct Updated: Sendable {
    package var user: User
    /// The new session, if the change has ended all sessions and the user's own token authorized it.
    package var session: SignInOutcome?
  }

  /// Changes an account. If the user's own token authorizes a new password or address, a new session begins.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func update(_ request: Update, by caller: AccountsCaller) throws -> Updated {
    if let code = request.code { return Updated(user: try applyCode(code, by: caller)) }
    if caller.isAdmin, let uid = request.uid { return try change(uid, request, token: nil, by: caller) }
    guard let idToken = request.idToken else {
      throw AccountError(caller.isAdmin ? .missingLocalID : .missingIDToken)
    }
    let (user, token) = try owner(of: idToken)
    if !caller.isAdmin {
      guard request.administration == nil else { throw AccountError(.insufficientPermission) }
      if let uid = request.uid, !uid.utf8.elementsEqual(user.uid.utf8) {
        throw AccountError(.unexpectedParameter, "User ID")
      }
    }
    return try change(user.uid, request, token: token, by: caller)
  }

  private func change(
    _ uid: String, _ request: Update, token: VerifiedToken?, by caller: AccountsCaller
  ) throws -> Updated {
    let email = try request.email.map(UserFields.email)
    if email != nil || request.password != nil {
      guard caller.isAdmin || currentSettings.allowsPassword else { throw AccountError(.operationNotAllowed) }
    }
    let newHash = try request.password.map { try hash($0) }
    let changeProfile = try request.profileChange(now: accounts.nowMilliseconds)
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
        if newHash != nil || isMoved(user) || request.takesAwayPassword || after.isAnonymous {
          try requireRecent(token, caller)
        }
      }
      if let email { recovery = try makeRecovery(of: user, movedTo: email, in: users, caller) }
      return uid
    }
    func change(_ user: inout User) throws {
      if let email, isMoved(user) { user.move(to: email, isVerified: false, now: now) }
      if let newHash { user.setPassword(newHash, now: now) }
      try changeProfile(&user)
    }
    let endsSessions = try newHash != nil || accounts.users.user(uid).map(isMoved) ?? false
    let updated: Updated
    if endsSessions, let token {
      let outcome = try accounts.signIn(
        provider: token.provider == "custom" ? "custom" : "password", find: prepare, change: change)
      updated = Updated(user: outcome.user, session: outcome)
    } else {
      updated = Updated(user: try accounts.users.write { users in try users.update(try prepare(users), change) })
    }
    send(recovery: recovery, caller)
    audit(.changed, uid, by: caller) { $0.fields = request.fieldNames }
    return updated
  }
}

extension AccountsService.Update {
  /// Whether the request deletes the password, the email address that belongs to it, or all providers.
  fileprivate var takesAwayPassword: Bool {
    deletedProviders?.contains("password") ?? false
      || deletedAttributes?.contains { ["EMAIL", "1", "PROVIDER", "3", "PASSWORD", "5"].contains($0) } ?? false
  }

  /// The names of the fields that the request changes, for the log, which must not contain their values.
  fileprivate var fieldNames: [String] {
    let fields: [(name: String, isSet: Bool)] = [
      ("email", email != nil), ("password", password != nil), ("displayName", displayName != nil),
      ("photoUrl", photoURL != nil), ("phoneNumber", administration?.phoneNumber != nil),
      ("customAttributes", administration?.customAttributes != nil),
      ("emailVerified", administration?.isEmailVerified != nil),
      ("disableUser", administration?.isDisabled != nil), ("validSince", administration?.validSince != nil),
      ("deleteAttribute", deletedAttributes != nil), ("deleteProvider", deletedProviders != nil),
      ("linkProviderUserInfo", administration?.link != nil),
    ]
    return fields.filter(\.isSet).map(\.name)
  }

  /// Returns a closure that applies all fields other than email and password.
  fileprivate func profileChange(now: Int64) throws -> (inout User) throws -> Void {
    if let displayName { _ = try UserFields.text(displayName, "displayName") }
    if let photoURL { _ = try UserFields.text(photoURL, "photoUrl") }
    let phoneNumber = try administration?.phoneNumber.map(UserFields.phoneNumber)
    let claims = try administration?.customAttributes.map { try UserFields.customClaims($0) }
    guard administration?.secondFactorCount ?? 0 == 0 else { throw AccountError.secondFactorsUnsupported }
    return { user in
      // Delete first, so that one request can also set a new value.
      for provider in deletedProviders ?? [] { user.unlink(provider) }
      for attribute in deletedAttributes ?? [] { user.remove(attribute) }
      if let displayName { user.displayName = displayName.isEmpty ? nil : displayName }
      if let photoURL { user.photoURL = photoURL.isEmpty ? nil : photoURL }
      if let phoneNumber { user.phoneNumber = phoneNumber }
      if let claims { user.customAttributes = claims }
      guard let administration else { return }
      if let isVerified = administration.isEmailVerified { user.isEmailVerified = isVerified }
      if let isDisabled = administration.isDisabled { user.isDisabled = isDisabled }
      if let seconds = administration.validSince {
        // A `validSince` that does not decrease also ends the sessions of the same second.
        if seconds >= user.validSince { user.endSessions(now: now) }
        user.validSince = seconds
      }
      if let time = administration.createdAt { user.createdAt = min(time, now) }
      if let time = administration.lastLoginAt { user.lastLoginAt = time }
      switch administration.link {
      case .provider(let provider): user.link(provider)
      case .phoneNumber(let number): user.phoneNumber = try UserFields.phoneNumber(number)
      case .invalid: throw AccountError(.invalidProviderID)
      case nil: break
      }
    }
  }
}

extension User {
  /// Removes an attribute that a request names, by name or by number.
  fileprivate mutating func remove(_ attribute: String) {
    switch attribute {
    case "EMAIL", "1":
      email = nil
      isEmailVerified = false
    case "DISPLAY_NAME", "2": displayName = nil
    case "PROVIDER", "3": providers = []
    case "PHOTO_URL", "4": photoURL = nil
    case "PASSWORD", "5": passwordHash = nil
    default: break
    }
  }
}
