package import Accounts

extension AccountsService {
  /// Sets a new password with a mailed code, or only checks a code of any kind.
  package struct ResetPassword: Sendable {
    package var code: String?
    /// Without it, the code is only checked.
    package var newPassword: String?

    package init(code: String?, newPassword: String? = nil) {
      self.code = code
      self.newPassword = newPassword
    }
  }

  /// Sets a new password with a mailed code, or only checks a code. Returns the code.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func resetPassword(_ request: ResetPassword, by caller: AccountsCaller) throws -> ActionCode {
    guard let code = request.code else { throw AccountError(.missingOobCode) }
    let now = accounts.nowMilliseconds
    let checked = try accounts.users.actionCode(code, now: now)
    guard let password = request.newPassword else { return checked }
    guard checked.kind == .resetPassword else { throw AccountError(.invalidOobCode) }
    let hash = try hash(password)
    let (found, uid) = try accounts.users.write { users in
      let found = try users.spend(code, now: now)
      guard found.kind == .resetPassword, let uid = found.uid else { throw AccountError(.invalidOobCode) }
      try users.removeCodes(of: uid, .resetPassword)
      try users.update(uid) { user in
        user.takeOver(now: now)
        user.setPassword(hash, now: now)
      }
      return (found, uid)
    }
    // The holder of the code reads the mails of the account's user. Earlier places may have used a stolen password.
    throttle.reset(.strangers, found.email)
    knownPlaces.forget(found.email)
    notePlace(of: found.email, caller)
    audit(.changed, uid, by: caller, method: "emailCode") { $0.fields = ["password"] }
    return found
  }
}
