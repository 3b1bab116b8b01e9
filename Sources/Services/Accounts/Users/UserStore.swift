package import Basics
package import KeyValue

/// The users of a project, in the account store.
///
/// Every change is one write transaction that checks uniqueness, so two concurrent sign-ups with one address cannot
/// both succeed. Reads use snapshots. A write waits for the disk: do not write on an event loop.
package final class UserStore: Sendable {
  let store: any KeyValueStore
  /// The states that token checks read. Every change of a user updates them in the same transaction.
  let states: UserStates
  /// The current time, in microseconds since 1970.
  private let now: @Sendable () -> Int64
  /// The limit of the number of users.
  private let quota: Quota

  /// Creates the user store over a key-value store, which may already contain users.
  ///
  /// Cost: one lookup. Counts the users if an older release wrote the store.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    store: any KeyValueStore, states: UserStates, quota: Quota, now: @escaping @Sendable () -> Int64
  ) throws(StorageError) {
    self.store = store
    self.states = states
    self.quota = quota
    self.now = now
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    quota.set(try UserCount.read(snapshot))
  }

  // MARK: Reading

  /// Returns the user with an ID, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(_ uid: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(uid) }
  }

  /// Returns the user with an e-mail address, which must be in lower case, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(email: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(at: AccountsKey(.emails).ending(email).bytes) }
  }

  /// Returns the user with a telephone number, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(phoneNumber: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(at: AccountsKey(.phoneNumbers).ending(phoneNumber).bytes) }
  }

  /// Returns the user with an ID at another provider, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(providerID: String, rawID: String) throws -> User? {
    try read { (view) throws(StorageError) in
      try view.user(at: AccountsKey.identity(providerID, rawID))
    }
  }

  /// Returns at most `limit` users in the order of their IDs, after `uid`. Cost: one scan of `limit` entries.
  /// - Throws: ``StorageError`` if the read fails.
  package func users(after uid: String?, limit: Int) throws -> [User] {
    try read { (view) throws(StorageError) in
      let table = AccountsKey(.users)
      var key = table.ending(uid ?? "").bytes
      if uid != nil { key.append(0) }
      let end = table.end
      var found: [User] = []
      let cursor = try view.snapshot.makeCursor()
      var isAt = try cursor.seek(atOrAfter: key)
      while isAt, found.count < limit, cursor.key.lexicographicallyPrecedes(end) {
        found.append(try view.decode(Array(cursor.value)))
        isAt = try cursor.next()
      }
      return found
    }
  }

  // MARK: Changing

  /// Changes users in one transaction. If `body` throws, the transaction is rolled back.
  /// - Throws: ``StorageError`` if the write fails, or the error of `body`.
  package func write<R>(_ body: (UserTransaction) throws -> R) throws -> R {
    var outcome: Result<R, any Error>?
    var changedStates: Set<String> = []
    var count: Int?
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        let users = UserTransaction(transaction, states, quota, nowSeconds: now() / 1_000_000)
        do {
          outcome = .success(try body(users))
        } catch {
          outcome = .failure(error)
          throw StorageError.rolledBack
        }
        changedStates = users.changedStates
        count = users.count
      }
      // Two writers may get here in either order. The next change corrects the amount, and each check uses the store.
      if let count { quota.set(count) }
    } catch {
      // If the closure threw, its error is in `outcome`.
      if error != .rolledBack { throw error }
    }
    if !changedStates.isEmpty { states.changed(.users(changedStates)) }
    guard let outcome else { throw StorageError.rolledBack }
    return try outcome.get()
  }

  /// Adds a user.
  /// - Throws: ``AccountError`` `DUPLICATE_LOCAL_ID`, `EMAIL_EXISTS`, `PHONE_NUMBER_EXISTS` or
  ///   `FEDERATED_USER_ID_ALREADY_LINKED` if the user conflicts with another; `QuotaError` if the project has too many;
  ///   ``StorageError`` if the write fails.
  package func insert(_ user: User) throws {
    try write { try $0.insert(user) }
  }

  /// Changes a user and returns the new record. If `change` throws, nothing is changed.
  /// - Throws: ``AccountError`` `USER_NOT_FOUND` if the user does not exist; otherwise as ``insert(_:)``.
  package func update(_ uid: String, _ change: (inout User) throws -> Void) throws -> User {
    try write { try $0.update(uid, change) }
  }

  /// Removes a user. Returns the removed record, or `nil` if the user did not exist.
  /// - Parameter now: in milliseconds since 1970.
  /// - Throws: ``StorageError`` if the write fails.
  package func remove(_ uid: String, now: Int64) throws -> User? {
    try write { try $0.remove(uid, now: now) }
  }

  /// Removes all users and their sessions. Mailed codes remain. Cost: deletes every entry.
  /// - Throws: ``StorageError`` if the write fails.
  package func removeAll() throws(StorageError) {
    try store.write { (transaction) throws(StorageError) in
      for table in [
        AccountsTable.refreshTokens, .refreshTokensOfUser, .userStates, .users, .emails, .phoneNumbers, .identities,
      ] {
        try transaction.removeAll(AccountsKey(table))
      }
      try UserCount.store(0, transaction)
    }
    quota.set(0)
    states.changed(.everyone)
  }

  /// Returns a new random ID: 28 letters and digits.
  package static func makeUID() -> String { RandomBytes.alphanumeric(28) }

  /// The number of users.
  /// - Throws: ``StorageError`` if the read fails.
  package func count() throws(StorageError) -> Int {
    try read { (view) throws(StorageError) in try UserCount.read(view.snapshot) }
  }

  func read<R>(_ body: (UserView) throws(StorageError) -> R) throws(StorageError) -> R {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try body(UserView(snapshot: snapshot))
  }
}
