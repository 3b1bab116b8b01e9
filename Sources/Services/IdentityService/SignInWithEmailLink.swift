package import Accounts

extension AccountsService {
  /// Signs a user in with a mailed code.
  package struct SignInWithEmailLink: Sendable {
    package var email: String?
    package var code: String?
    /// The account to which the address moves. `nil` signs in the account that has the address.
    package var idToken: String?

    package init(email: String?, code: String?, idToken: String? = nil) {
      self.email = email
      self.code = code
      self.idToken = idToken
    }
  }

  /// Signs a user in with a mailed code. The first sign-in creates the account.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithEmailLink(_ request: SignInWithEmailLink, by caller: AccountsCaller) throws -> SignInOutcome {
    guard currentSettings.allowsEmailLink else { throw AccountError(.operationNotAllowed) }
    guard let email = try request.email.map(UserFields.email) else { throw AccountError(.missingEmail) }
    guard let code = request.code else { throw AccountError(.missingOobCode) }
    let linked = try request.idToken.map { try accounts.owner(ofIDToken: $0) }
    let allowsSignUp = currentSettings.allowsSignUp
    let now = accounts.nowMilliseconds
    var isNew = false
    var recovery: ActionCode?
    var outcome = try accounts.signIn(provider: "password") { users in
      let found = try users.spend(code, now: now)
      guard found.kind == .emailSignIn else { throw AccountError(.invalidOobCode) }
      guard found.email.utf8.elementsEqual(email.utf8) else {
        throw AccountError(.invalidEmail, "The email provided does not match the sign-in email address.")
      }
      if let linked {
        guard let user = try users.user(linked.user.uid) else { throw AccountError(.userNotFound) }
        if !user.isAnonymous, !user.hasEmail(email) { try requireRecent(linked.token, caller) }
        recovery = try makeRecovery(of: user, movedTo: email, in: users, caller)
        return user.uid
      }
      if let user = try users.user(email: email) { return user.uid }
      guard allowsSignUp else { throw AccountError(.adminOnlyOperation) }
      let user = User(uid: UserStore.makeUID(), createdAt: now)
      try users.insert(user)
      isNew = true
      return user.uid
    } change: { user in
      if user.hasEmail(email) {
        user.takeOver(now: now)
      } else if user.email != nil {
        user.move(to: email, isVerified: true, now: now)
      }
      user.email = email
      user.isEmailVerified = true
      user.hasEmailLinkSignIn = true
    }
    outcome.isNew = isNew
    notePlace(of: email, caller)
    send(recovery: recovery, caller)
    audit(isNew ? .created : .signedIn, outcome.user.uid, by: caller, method: "emailLink")
    return outcome
  }
}
