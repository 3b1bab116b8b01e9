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
    notePlace(of: email, caller)
    let known = user.passwordHash
    let replacement = try known.flatMap { try passwords.replacement(of: $0, password) }
    var outcome = try accounts.signIn(provider: "password", find: { _ in user.uid }) { user in
      // The stored password may have changed since it was checked, so compare again. Of two sign-ins at once, the first one
      // replaces an outdated hash.
      if user.passwordHash == known {
        if let replacement { user.passwordHash = replacement }
      } else if !passwords.accepts(password, for: user.passwordHash) {
        throw AccountError(.invalidLoginCredentials)
      }
    }
    outcome.user.email = outcome.user.email ?? email
    audit(.signedIn, user.uid, by: caller, method: "password")
    return outcome
  }

  private func auditFailure(_ user: User?, _ reason: String, _ caller: AccountsCaller) {
    audit(.signInFailed, user?.uid, by: caller, method: "password") { $0.reason = reason }
  }

  // MARK: Password guessing

  /// Rejects an attempt after too many failures: for the account from this place, from this place, or for the account
  /// from places that are not known to belong to its user. Call it before the account is read, so that the response
  /// does not reveal whether the account exists.
  ///
  /// A known place is never rejected for the failures of others, so an attacker cannot lock a user out there. An
  /// unknown one gets few attempts while the account is under attack, and none if the attack is large.
  private func checkAttempts(_ email: String, _ caller: AccountsCaller) throws {
    guard accounts.mode == .production else { return }
    let subject = Self.subject(email, caller)
    if let place = caller.place, !throttle.allows(.place, place) {
      throw rejection("too many wrong passwords from this address", of: nil, logged: place, caller)
    }
    guard throttle.allows(.accountFromPlace, subject) else {
      throw rejection("too many wrong passwords for this account from this address", of: email, logged: subject, caller)
    }
    guard throttle.isUnderAttack(email), !isKnown(email, caller) else { return }
    guard throttle.allows(.strangers, email), throttle.allows(.stranger, subject) else {
      throw rejection(
        "too many wrong passwords for this account from unknown addresses", of: email, logged: email, caller)
    }
  }

  /// Logs a rejected attempt, at most once a minute for the subject `logged`, and returns the error.
  private func rejection(
    _ reason: String, of email: String?, logged subject: String, _ caller: AccountsCaller
  ) -> AccountError {
    if throttle.allows(.logLine, subject) {
      throttle.count(.logLine, subject)
      audit(.signInFailed, nil, by: caller, method: "password") { event in
        event.email = email
        event.reason = reason
      }
    }
    return AccountError(
      .tooManyAttempts,
      "Access to this account has been temporarily disabled due to many failed login attempts. "
        + "You can immediately restore it by resetting your password or you can try again later.")
  }

  private func countFailure(_ email: String, _ caller: AccountsCaller) {
    guard accounts.mode == .production else { return }
    let subject = Self.subject(email, caller)
    throttle.count(.accountFromPlace, subject)
    if let place = caller.place { throttle.count(.place, place) }
    guard !isKnown(email, caller) else { return }
    throttle.count(.strangers, email)
    throttle.count(.stranger, subject)
  }

  private func isKnown(_ email: String, _ caller: AccountsCaller) -> Bool {
    knownPlaces.contains(caller.place ?? "", of: email)
  }

  /// Records that the user of an account has proved who they are, at the place of the caller.
  func notePlace(of email: String, _ caller: AccountsCaller) {
    guard accounts.mode == .production, !caller.isAdmin else { return }
    let subject = Self.subject(email, caller)
    throttle.reset(.accountFromPlace, subject)
    throttle.reset(.stranger, subject)
    knownPlaces.note(caller.place ?? "", of: email)
  }

  private static func subject(_ email: String, _ caller: AccountsCaller) -> String {
    email + " " + (caller.place ?? "")
  }
}
