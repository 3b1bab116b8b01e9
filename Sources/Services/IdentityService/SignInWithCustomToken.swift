package import Accounts

extension AccountsService {
  /// Signs a user in with a token that the app's own server has signed.
  package struct SignInWithCustomToken: Sendable {
    package var token: String?

    package init(token: String?) { self.token = token }
  }

  /// Signs a user in with a custom token. The first sign-in creates the account.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithCustomToken(
    _ request: SignInWithCustomToken, by caller: AccountsCaller
  ) throws -> SignInOutcome {
    guard var text = request.token else { throw AccountError(.missingCustomToken) }
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
    var outcome = try accounts.signIn(provider: "custom", sessionClaims: token.claims) { users in
      if try users.user(uid) == nil {
        isNew = true
        try users.insert(User(uid: uid, createdAt: now))
      }
      return uid
    } change: { user in
      user.isCustomAuth = true
    }
    outcome.isNew = isNew
    audit(isNew ? .created : .signedIn, uid, by: caller, method: "custom")
    return outcome
  }
}
