import Accounts

extension AccountsService {
  /// Exchanges an ID token for a session cookie, which is valid longer. For administrators.
  package struct CreateSessionCookie: Sendable {
    package var idToken: String?
    /// The lifetime of the cookie, otherwise the longest.
    package var seconds: Int64?

    package init(idToken: String?, seconds: Int64? = nil) {
      self.idToken = idToken
      self.seconds = seconds
    }
  }

  /// Returns a session cookie for the user of an ID token.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func createSessionCookie(_ request: CreateSessionCookie, by caller: AccountsCaller) throws -> String {
    try caller.requireAdmin()
    let (_, token) = try owner(of: request.idToken)
    let seconds = request.seconds ?? AccountStore.sessionCookieSeconds.upperBound
    guard AccountStore.sessionCookieSeconds.contains(seconds) else { throw AccountError(.invalidDuration) }
    let cookie = try accounts.mintSessionCookie(from: token, seconds: seconds)
    audit(.cookieIssued, token.uid, by: caller)
    return cookie
  }
}
