package import Accounts

extension AccountsService {
  /// Continues a session.
  package struct RefreshToken: Sendable {
    package var refreshToken: String?

    package init(refreshToken: String?) { self.refreshToken = refreshToken }
  }

  /// Returns a new ID token for a refresh token, which stays valid.
  ///
  /// - Throws: `MISSING_REFRESH_TOKEN`, or as `AccountStore.refresh(_:)`.
  package func refreshToken(_ request: RefreshToken, by caller: AccountsCaller) throws -> SignInOutcome {
    guard let token = request.refreshToken else { throw AccountError(.missingRefreshToken) }
    return try accounts.refresh(token)
  }
}
