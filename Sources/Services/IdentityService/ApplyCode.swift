package import Accounts

extension AccountsService {
  /// Applies the change that a mailed code allows: verifies, changes or restores an email address.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func applyCode(_ code: String, by caller: AccountsCaller) throws -> User {
    let now = accounts.nowMilliseconds
    var recovery: ActionCode?
    let user = try accounts.users.write { users in
      let code = try users.spend(code, now: now)
      guard let uid = code.uid, let user = try users.user(uid) else { throw AccountError(.invalidOobCode) }
      if code.kind == .verifyAndChangeEmail, let email = code.newEmail {
        recovery = try makeRecovery(of: user, movedTo: email, in: users, caller)
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
    send(recovery: recovery, caller)
    audit(.changed, user.uid, by: caller, method: "emailCode")
    return user
  }
}
