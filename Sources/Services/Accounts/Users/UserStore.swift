package import KeyValue

/// The users of a project, in the accounts' store.
///
/// Every change is one write transaction that checks what must be unique, so that two sign-ups for one address cannot
/// both succeed. Reads are snapshots. A write waits for the disk: never make one on an event loop.
package final class UserStore: Sendable {
  let store: any KeyValueStore
  /// What checks of tokens look at; kept in step with the users.
  let states: UserStates

  /// Takes a store, in which there may be users already.
  package init(store: any KeyValueStore, states: UserStates) {
    self.store = store
    self.states = states
  }

  // MARK: Reading

  /// The user of that id, or `nil`.
  /// - Throws: `StorageError`.
  package func user(_ uid: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(uid) }
  }

  /// The user of that e-mail address, which is in lower case; or `nil`.
  package func user(email: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(at: AccountsKey(.emails).ending(email).bytes) }
  }

  /// The user of that telephone number, or `nil`.
  package func user(phoneNumber: String) throws -> User? {
    try read { (view) throws(StorageError) in try view.user(at: AccountsKey(.phoneNumbers).ending(phoneNumber).bytes) }
  }

  /// The user of that id at another provider, or `nil`.
  package func user(providerID: String, rawID: String) throws -> User? {
    try read { (view) throws(StorageError) in
      try view.user(at: AccountsKey.identity(providerID, rawID))
    }
  }

  /// The next users in the order of their ids, behind `uid`. Cost: one scan of `limit` entries.
  package func users(behind uid: String?, limit: Int) throws -> [User] {
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

  /// Changes users in one transaction; what `body` throws undoes it all.
  /// - Throws: ``AccountError`` and `StorageError`.
  package func write<R>(_ body: (UserTransaction) throws -> R) throws -> R {
    var outcome: Result<R, any Error>?
    var touchesStates = false
    do throws(StorageError) {
      try store.write { (transaction) throws(StorageError) in
        let users = UserTransaction(transaction, states)
        do {
          outcome = .success(try body(users))
        } catch {
          outcome = .failure(error)
          throw StorageError.rolledBack
        }
        touchesStates = users.touchesStates
      }
    } catch {
      // Where the closure gave up, the reason is in the outcome.
      if error != .rolledBack { throw error }
    }
    if touchesStates { states.changed() }
    guard let outcome else { throw StorageError.rolledBack }
    return try outcome.get()
  }

  /// Adds a user.
  /// - Throws: `DUPLICATE_LOCAL_ID`, `EMAIL_EXISTS`, `PHONE_NUMBER_EXISTS`, `FEDERATED_USER_ID_ALREADY_LINKED`.
  package func insert(_ user: User) throws {
    try write { try $0.insert(user) }
  }

  /// Changes a user and returns the new record. `change` may be given up by throwing.
  /// - Throws: `USER_NOT_FOUND`, and as ``insert(_:)``.
  package func update(_ uid: String, _ change: (inout User) throws -> Void) throws -> User {
    try write { try $0.update(uid, change) }
  }

  /// Removes a user; returns who it was, `nil` where there was nobody.
  /// - Parameter now: in milliseconds since 1970.
  package func remove(_ uid: String, now: Int64) throws -> User? {
    try write { try $0.remove(uid, now: now) }
  }

  /// Removes all users and their sessions; codes that were sent stay. Cost: every entry is touched.
  package func removeAll() throws(StorageError) {
    try store.write { (transaction) throws(StorageError) in
      for table in [
        AccountsTable.refreshTokens, .refreshTokensOfUser, .userStates, .users, .emails, .phoneNumbers, .identities,
      ] {
        try transaction.removeAll(AccountsKey(table))
      }
    }
    states.changed()
  }

  /// Makes an id that nobody has: 28 letters and digits.
  package static func makeUID() -> String { RandomBytes.alphanumeric(28) }

  func read<R>(_ body: (UserView) throws(StorageError) -> R) throws(StorageError) -> R {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try body(UserView(snapshot: snapshot))
  }
}
