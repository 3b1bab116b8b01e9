package import Accounts
import DocumentModel

/// The parts that several calls with mailed codes share, and the calls of test suites that read the codes.
extension AccountsService {
  /// Creates a code with its link, without storing it.
  func makeCode(
    _ kind: ActionCode.Kind, uid: String?, email: String, newEmail: String?, continueURL: String? = nil,
    _ caller: AccountsCaller
  ) -> ActionCode {
    let code = ActionCode.make()
    return ActionCode(
      code: code, kind: kind, uid: uid, email: email, newEmail: newEmail,
      link: caller.makeLink(kind, code, continueURL), createdAt: accounts.nowMilliseconds)
  }

  /// Creates and stores a code with which users can recover an account after another party changes its email
  /// address. Call it in the transaction of the change; after the commit, ``send(recovery:_:)`` sends the code to the
  /// old address.
  ///
  /// Returns `nil` if the address stays the same, if an administrator changes it, or if the old address was not
  /// verified: an email to it could reach a stranger.
  ///
  /// - Throws: `RESET_PASSWORD_EXCEED_LIMIT` if the old address received too many emails; a storage error if a
  ///   write fails.
  func makeRecovery(
    of user: User, movedTo newEmail: String, in users: UserTransaction, _ caller: AccountsCaller
  ) throws -> ActionCode? {
    guard !caller.isAdmin, let email = user.email, user.isEmailVerified, !user.hasEmail(newEmail) else { return nil }
    try countMail(email, caller)
    let code = makeCode(.recoverEmail, uid: user.uid, email: email, newEmail: newEmail, caller)
    try users.put(code)
    return code
  }

  /// Sends the code of ``makeRecovery(of:movedTo:in:_:)``. The change is already committed, so a failure is only
  /// logged.
  func send(recovery code: ActionCode?, _ caller: AccountsCaller) {
    guard let code, let mail else { return }
    do throws(AccountError) { try mail.send(code) } catch {
      audit(.codeFailed, by: caller) { event in
        event.email = code.email
        event.purpose = code.kind.rawValue
        event.reason = error.message
      }
    }
  }

  /// Limits the number of emails per recipient and per place of the client.
  func countMail(_ email: String, _ caller: AccountsCaller) throws {
    guard accounts.mode == .production, !caller.isAdmin else { return }
    guard throttle.allows(.mail, email) else { throw AccountError(.resetPasswordExceedLimit) }
    throttle.count(.mail, email)
    guard let place = caller.place else { return }
    guard throttle.allows(.mailsFromPlace, place) else { throw AccountError(.resetPasswordExceedLimit) }
    throttle.count(.mailsFromPlace, place)
  }

  // MARK: Test suites

  /// Returns the unused codes that were mailed, oldest first. For administrators, and for test suites in emulator
  /// mode.
  ///
  /// - Throws: `PERMISSION_DENIED` for other callers; `StorageError` if the read fails.
  package func mailedCodes(by caller: AccountsCaller) throws -> [ActionCode] {
    if !caller.isAdmin { try requireEmulator() }
    return try accounts.users.actionCodes(limit: 10_000)
  }

  /// Does what the page that the link of an email leads to would do. Only in emulator mode.
  package struct FollowLink: Sendable {
    package var code: String?
    package var newPassword: String?
    package var continueURL: String?

    package init(code: String?, newPassword: String? = nil, continueURL: String? = nil) {
      self.code = code
      self.newPassword = newPassword
      self.continueURL = continueURL
    }
  }

  /// Uses a mailed code, except one for a sign-in, which the app itself completes. Returns the code, and the URL to
  /// open next.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func followLink(
    _ request: FollowLink, by caller: AccountsCaller
  ) throws -> (code: ActionCode, continueURL: String?) {
    try requireEmulator()
    guard let code = request.code else { throw AccountError(.missingOobCode) }
    let found = try accounts.users.actionCode(code, now: accounts.nowMilliseconds)
    switch found.kind {
    case .resetPassword:
      guard let password = request.newPassword else { throw AccountError(.missingPassword) }
      _ = try resetPassword(ResetPassword(code: code, newPassword: password), by: caller)
    case .verifyEmail, .recoverEmail, .verifyAndChangeEmail: _ = try applyCode(code, by: caller)
    case .emailSignIn: break
    }
    return (found, try request.continueURL.map { try checkContinueURL($0, caller) })
  }

  /// Deletes all accounts. Only in emulator mode.
  ///
  /// - Throws: `PERMISSION_DENIED` in production mode; `StorageError` if the write fails.
  package func deleteAll(by caller: AccountsCaller) throws {
    try requireEmulator()
    try accounts.users.removeAll()
    accounts.audit(AccountEvent(.emptied, by: .testSuite, from: caller.address))
  }
}

extension User {
  /// Records that the caller has proved to own the address.
  ///
  /// If the address was not verified before, another party may have created the account in the hope that its owner
  /// would use it later. Therefore all earlier sign-in methods and sessions are removed.
  mutating func takeOver(now: Int64) {
    if !isEmailVerified {
      endSessions(now: now)
      providers = []
      phoneNumber = nil
      passwordHash = nil
      passwordUpdatedAt = nil
    }
    isEmailVerified = true
  }
}
