package import Accounts

extension AccountsService {
  /// Reads a page of all accounts. For administrators.
  package struct BatchGet: Sendable {
    /// The size of the page, 1 to 1,000; 20 by default.
    package var limit: Int?
    /// The token of the previous page: the uid of its last user.
    package var pageToken: String?

    package init(limit: Int? = nil, pageToken: String? = nil) {
      self.limit = limit
      self.pageToken = pageToken
    }
  }

  /// A page of users.
  package struct UserPage: Sendable {
    package var users: [User]
    /// The token of the next page, or `nil` after the last page.
    package var nextPageToken: String?
  }

  /// Returns a page of all accounts, in the order of their uids.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func batchGet(_ request: BatchGet, by caller: AccountsCaller) throws -> UserPage {
    try caller.requireAdmin()
    let limit = request.limit ?? 20
    guard (1...1000).contains(limit) else { throw AccountError(.invalidPageSelection) }
    let users = try accounts.users.users(after: request.pageToken, limit: limit)
    return UserPage(users: users.map(caller.shown), nextPageToken: users.count == limit ? users.last?.uid : nil)
  }
}
