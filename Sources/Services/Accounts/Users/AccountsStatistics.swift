package import KeyValue

/// The number of accounts of a project, and the size of their store.
package struct AccountsStatistics: Equatable, Sendable {
  package let project: String
  package let accounts: Int
  /// The bytes in use in the file, with sessions and keys.
  package let usedBytes: Int

  /// Creates statistics from numbers.
  package init(project: String, accounts: Int, usedBytes: Int) {
    (self.project, self.accounts, self.usedBytes) = (project, accounts, usedBytes)
  }

  /// Counts the accounts in a store. Cost: reads the key of every account.
  /// - Throws: ``StorageError`` if the read fails.
  package init(project: String, _ store: any KeyValueStore) throws(StorageError) {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    let accounts = try snapshot.count(AccountsKey(.users))
    self.init(project: project, accounts: accounts, usedBytes: try store.statistics().usedBytes)
  }
}
