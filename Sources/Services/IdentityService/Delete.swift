import Accounts

extension AccountsService {
  /// Deletes an account: that of an ID token, or any if an administrator asks.
  package struct Delete: Sendable {
    package var idToken: String?
    /// The account to delete. For administrators.
    package var uid: String?

    package init(idToken: String? = nil, uid: String? = nil) {
      self.idToken = idToken
      self.uid = uid
    }
  }

  /// Deletes an account.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func delete(_ request: Delete, by caller: AccountsCaller) throws {
    let uid: String
    if caller.isAdmin, let id = request.uid, !id.isEmpty {
      uid = id
    } else {
      guard request.uid == nil else { throw AccountError(.insufficientPermission) }
      guard let idToken = request.idToken else {
        throw AccountError(caller.isAdmin ? .missingLocalID : .missingIDToken)
      }
      let (user, token) = try owner(of: idToken)
      guard currentSettings.allowsDeletion else { throw AccountError(.adminOnlyOperation) }
      if !user.isAnonymous { try requireRecent(token, caller) }
      uid = user.uid
    }
    guard try accounts.remove([uid]).isEmpty == false else { throw AccountError(.userNotFound) }
    audit(.deleted, uid, by: caller)
  }
}
