package import Accounts

extension AccountsService {
  /// Returns the identities that an emulator's accounts have at a provider, at most
  /// ``ProviderLimits/listedAccountsMax``, for the page on which a developer chooses one. Cost: reads all accounts.
  ///
  /// - Throws: `PERMISSION_DENIED` in production; `StorageError` if the server fails.
  package func providerAccounts(_ providerID: String) throws -> [User.LinkedProvider] {
    try requireEmulator()
    var found: [User.LinkedProvider] = []
    var last: String?
    while true {
      let users = try accounts.users.users(after: last, limit: 1000)
      for user in users {
        found += user.providers.filter { $0.providerID.utf8.elementsEqual(providerID.utf8) }
      }
      guard found.count < ProviderLimits.listedAccountsMax, let next = users.last?.uid else { break }
      last = next
    }
    return Array(found.prefix(ProviderLimits.listedAccountsMax))
  }
}
