package import Accounts
import DocumentModel

/// The caller of a call to ``AccountsService``.
package struct AccountsCaller: Sendable {
  /// An end user, who proves an identity by an ID token in the request; an administrator; or a test suite that
  /// controls an emulator, which otherwise has the rights of an end user.
  package var role: AccountEvent.Actor
  /// The client's address; `nil` for this machine.
  package var address: String?
  /// Returns the link for an email, for the kind of its code, the code, and the URL to open afterwards.
  package var makeLink: @Sendable (ActionCode.Kind, _ code: String, _ continueURL: String?) -> String

  /// Whether responses contain no hashes of passwords. Operators of the console need none.
  package var hidesHashes = false

  /// Creates a caller. Without `makeLink`, emails contain the code itself.
  package init(
    _ role: AccountEvent.Actor, address: String? = nil,
    makeLink: @escaping @Sendable (ActionCode.Kind, String, String?) -> String = { _, code, _ in code }
  ) {
    self.role = role
    self.address = address
    self.makeLink = makeLink
  }

  /// The place that the throttle counts; `nil` for this machine.
  var place: String? { address.map(KnownPlaces.place) }

  var isAdmin: Bool { role == .admin }

  /// Returns a user as responses to the caller show it.
  func shown(_ user: User) -> User {
    guard hidesHashes, user.passwordHash != nil else { return user }
    var user = user
    user.passwordHash = .redacted
    return user
  }

  /// Rejects callers other than administrators.
  func requireAdmin() throws(AccountError) {
    guard isAdmin else { throw AccountError(.unauthenticated) }
  }
}

extension AccountsService {
  /// Returns the user of an ID token.
  ///
  /// - Throws: `MISSING_ID_TOKEN` if the request has no token, or an error of `AccountStore.owner(ofIDToken:)`.
  func owner(of idToken: String?) throws -> (user: User, token: VerifiedToken) {
    guard let idToken else { throw AccountError(.missingIDToken) }
    return try accounts.owner(ofIDToken: idToken)
  }

  /// Rejects sensitive changes if the user's sign-in is not recent.
  ///
  /// - Throws: `CREDENTIAL_TOO_OLD_LOGIN_AGAIN` if it is not.
  func requireRecent(_ token: VerifiedToken, _ caller: AccountsCaller) throws {
    guard accounts.mode == .production, !caller.isAdmin else { return }
    guard accounts.nowSeconds - token.authTimeSeconds <= Self.recentSeconds else {
      throw AccountError(.credentialTooOld)
    }
  }

  /// The age up to which a sign-in counts as recent, in seconds.
  private static let recentSeconds: Int64 = 300

  /// Rejects calls that exist only for test suites.
  func requireEmulator() throws(AccountError) {
    guard accounts.mode == .emulator else { throw AccountError(.permissionDenied) }
  }

  /// Checks and hashes a new password.
  func hash(_ password: String) throws -> PasswordHash { try passwords.hash(try UserFields.newPassword(password)) }

  /// Logs an event with its user, caller and client address; `detail` adds more fields.
  func audit(
    _ kind: AccountEvent.Kind, _ uid: String? = nil, by caller: AccountsCaller, method: String? = nil,
    _ detail: (inout AccountEvent) -> Void = { _ in }
  ) {
    var event = AccountEvent(kind, uid: uid, by: caller.role, from: caller.address)
    event.method = method
    detail(&event)
    accounts.audit(event)
  }
}
