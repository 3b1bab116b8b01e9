package import Accounts

extension AccountsService {
  /// Signs a user in with a code for a phone number.
  package struct SignInWithPhoneNumber: Sendable {
    package var sessionInfo: String?
    package var code: String?
    /// The account to which the phone number moves. `nil` signs in the account that has the phone number.
    package var idToken: String?

    package init(sessionInfo: String?, code: String?, idToken: String? = nil) {
      self.sessionInfo = sessionInfo
      self.code = code
      self.idToken = idToken
    }
  }

  /// Signs a user in with a code for a phone number, in emulator mode. The first sign-in creates the account.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithPhoneNumber(
    _ request: SignInWithPhoneNumber, by caller: AccountsCaller
  ) throws -> SignInOutcome {
    try requirePhoneSignIn()
    guard let session = request.sessionInfo else { throw AccountError(.invalidSessionInfo) }
    guard let code = request.code else { throw AccountError(.invalidCode) }
    let linked = try request.idToken.map { try accounts.owner(ofIDToken: $0).user.uid }
    let number = try phoneCodes.take(session, code: code).get()
    let now = accounts.nowMilliseconds
    var isNew = false
    var outcome = try accounts.signIn(provider: "phone") { users in
      if let linked { return linked }
      if let user = try users.user(phoneNumber: number) { return user.uid }
      isNew = true
      let user = User(uid: UserStore.makeUID(), createdAt: now)
      try users.insert(user)
      return user.uid
    } change: { user in
      user.phoneNumber = number
    }
    outcome.isNew = isNew
    audit(isNew ? .created : .signedIn, outcome.user.uid, by: caller, method: "phone")
    return outcome
  }
}
