package import Accounts
import DocumentModel

extension AccountsService {
  /// Signs a user in with an email address and a password.
  package struct SignInWithPassword: Sendable {
    package var email: String?
    package var password: String?

    package init(email: String?, password: String?) {
      self.email = email
      self.password = password
    }
  }

  /// Signs a user in with an email address and a password. If the settings hide addresses, an unknown address and a
  /// wrong password cannot be distinguished, neither by the error nor by the time. An outdated hash is replaced.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithPassword(_ request: SignInWithPassword, by caller: AccountsCaller) throws -> SignInOutcome {
    let settings = currentSettings
    guard settings.allowsPassword else { throw AccountError(.passwordLoginDisabled) }
    guard let given = request.email else { throw AccountError(.missingEmail) }
    let email = try UserFields.email(given)
    guard let password = request.password else { throw AccountError(.missingPassword) }
    try checkAttempts(email, caller)
    let user = try accounts.users.user(email: email)
    if !settings.hidesEmails {
      // Check in the documented order. If addresses are hidden, all failures return the same error after the same
      // time.
      guard let user else { throw AccountError(.emailNotFound) }
      guard !user.isDisabled else { throw AccountError(.userDisabled) }
    }
    guard passwords.accepts(password, for: user?.passwordHash), let user else {
      countFailure(email, caller)
      auditFailure(user, user == nil ? "unknown email address" : "wrong password", caller)
      throw AccountError(settings.hidesEmails ? .invalidLoginCredentials : .invalidPassword)
    }
    guard !user.isDisabled else {
      auditFailure(user, "disabled", caller)
      throw AccountError(.userDisabled)
    }
    throttle.reset(.accountFromAddress, Self.subject(email, caller))
    let known = user.passwordHash
    let replacement = try known.flatMap { try passwords.replacement(of: $0, password) }
    var outcome = try accounts.signIn(provider: "password", find: { _ in user.uid }) { user in
      // The stored password may have changed since it was checked, so compare again.
      guard user.passwordHash == known else { throw AccountError(.invalidLoginCredentials) }
      if let replacement { user.passwordHash = replacement }
    }
    outcome.user.email = outcome.user.email ?? email
    audit(.signedIn, user.uid, by: caller, method: "password")
    return outcome
  }

  private func auditFailure(_ user: User?, _ reason: String, _ caller: AccountsCaller) {
    audit(.signInFailed, user?.uid, by: caller, method: "password") { $0.reason = reason }
  }

  // MARK: Password guessing

  /// Rejects an attempt after too many failures: for the account from this address, for the account, or from this
  /// address. Call it before the account is read, so that the response does not reveal whether the account exists.
  private func checkAttempts(_ email: String, _ caller: AccountsCaller) throws {
    guard accounts.mode == .production else { return }
    guard throttle.allows(.account, email), throttle.allows(.accountFromAddress, Self.subject(email, caller)),
      caller.address.map({ throttle.allows(.address, $0) }) ?? true
    else {
      throw AccountError(
        .tooManyAttempts,
        "Access to this account has been temporarily disabled due to many failed login attempts. "
          + "You can immediately restore it by resetting your password or you can try again later.")
    }
  }

  private func countFailure(_ email: String, _ caller: AccountsCaller) {
    guard accounts.mode == .production else { return }
    throttle.count(.account, email)
    throttle.count(.accountFromAddress, Self.subject(email, caller))
    if let address = caller.address { throttle.count(.address, address) }
  }

  private static func subject(_ email: String, _ caller: AccountsCaller) -> String {
    email + " " + (caller.address ?? "")
  }
}
