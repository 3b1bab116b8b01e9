package import Accounts

extension AccountsService {
  /// Deletes many accounts. For administrators.
  package struct BatchDelete: Sendable {
    /// The accounts to delete, 1 to 1,000.
    package var uids: [String]
    /// Whether to delete accounts that are not disabled, too.
    package var isForced = false

    package init(uids: [String], isForced: Bool = false) {
      self.uids = uids
      self.isForced = isForced
    }
  }

  /// A part of a batch that failed.
  package struct BatchError: Sendable {
    /// The index in the request.
    package var index: Int
    package var error: AccountError
  }

  /// Deletes many accounts. Returns an error for each that was not deleted. Unknown uids are not errors.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func batchDelete(_ request: BatchDelete, by caller: AccountsCaller) throws -> [BatchError] {
    try caller.requireAdmin()
    guard (1...1000).contains(request.uids.count) else { throw AccountError(.localIDListExceedsLimit) }
    var errors: [BatchError] = []
    var kept = Set<[UInt8]>()
    if !request.isForced {
      for (index, uid) in request.uids.enumerated() {
        guard let user = try accounts.users.user(uid), !user.isDisabled else { continue }
        let error = AccountError(.notDisabled, "Disable the account before batch deletion.")
        errors.append(BatchError(index: index, error: error))
        kept.insert(Array(uid.utf8))
      }
    }
    for uid in try accounts.remove(request.uids.filter { !kept.contains(Array($0.utf8)) }) {
      audit(.deleted, uid, by: caller)
    }
    return errors
  }
}
