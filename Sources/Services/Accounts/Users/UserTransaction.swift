package import KeyValue

/// Changes to users inside one write transaction.
package final class UserTransaction {
  /// The transaction, for what else is to change with the users.
  package let transaction: any KeyValueTransaction
  private let states: UserStates
  /// Whether what checks of tokens look at was changed.
  private(set) var touchesStates = false
  private var view: UserView { UserView(snapshot: transaction) }

  init(_ transaction: any KeyValueTransaction, _ states: UserStates) {
    self.transaction = transaction
    self.states = states
  }

  /// The user of that id, or `nil`.
  package func user(_ uid: String) throws -> User? { try view.user(uid) }

  /// The user of that e-mail address, or `nil`.
  package func user(email: String) throws -> User? { try view.user(at: AccountsKey(.emails).ending(email).bytes) }

  /// The user of that telephone number, or `nil`.
  package func user(phoneNumber: String) throws -> User? {
    try view.user(at: AccountsKey(.phoneNumbers).ending(phoneNumber).bytes)
  }

  /// The user of that id at another provider, or `nil`.
  package func user(providerID: String, rawID: String) throws -> User? {
    try view.user(at: AccountsKey.identity(providerID, rawID))
  }

  /// Adds a user; see ``UserStore/insert(_:)``.
  package func insert(_ user: User) throws {
    guard try view.user(user.uid) == nil else { throw AccountError(.duplicateLocalID) }
    try put(user, replacing: nil)
  }

  /// Changes a user; see ``UserStore/update(_:_:)``.
  @discardableResult
  package func update(_ uid: String, _ change: (inout User) throws -> Void) throws -> User {
    guard let old = try view.user(uid) else { throw AccountError(.userNotFound) }
    var user = old
    try change(&user)
    try put(user, replacing: old)
    return user
  }

  /// Adds a user, or puts the record in the place of the one of the same id; what was revoked stays so.
  package func upsert(_ user: User) throws {
    let old = try view.user(user.uid)
    var user = user
    if let old {
      user.sessionGeneration = old.sessionGeneration + (user.validSince > old.validSince ? 1 : 0)
      user.validSince = max(user.validSince, old.validSince)
    }
    try put(user, replacing: old)
  }

  /// Removes a user, whose tokens and codes end; see ``UserStore/remove(_:now:)``.
  @discardableResult
  package func remove(_ uid: String, now: Int64) throws -> User? {
    guard let user = try view.user(uid) else { return nil }
    for (key, _) in lookups(of: user) { try transaction.remove(key) }
    try transaction.remove(AccountsKey(.users).ending(uid).bytes)
    try removeCodes(of: uid)
    var state = UserState(user)
    state.deletedSeconds = now / 1000
    try states.put(state, of: uid, in: transaction)
    touchesStates = true
    return user
  }

  private func put(_ user: User, replacing old: User?) throws {
    guard user.providers.count <= UserLimits.providersMax else {
      throw AccountError(.invalidArgument, "An account is linked to at most \(UserLimits.providersMax) providers.")
    }
    let lookups = lookups(of: user)
    for (key, code) in lookups {
      if let holder = try view.uid(at: key), !holder.utf8.elementsEqual(user.uid.utf8) { throw AccountError(code) }
    }
    if let old {
      let kept = Set(lookups.map(\.key))
      for (key, _) in self.lookups(of: old) where !kept.contains(key) { try transaction.remove(key) }
    }
    for (key, _) in lookups { try transaction.put(key, Array(user.uid.utf8)) }
    var user = user
    if old == nil, let deleted = try states.state(of: user.uid).deletedSeconds {
      // Whoever gets the id of one who was deleted must not get the tokens too, whenever the account is said to be made.
      user.validSince = max(user.validSince, deleted + 1)
    }
    try transaction.put(AccountsKey(.users).ending(user.uid).bytes, user.stored())
    try putState(of: user)
  }

  /// Keeps what checks of tokens look at in step.
  private func putState(of user: User) throws {
    var state = UserState(user)
    let stored = try states.state(of: user.uid)
    // A new user may have the id of one who was deleted, whose tokens stay dead: a row, once there, says when.
    if stored != UserState() { state.validSinceSeconds = user.validSince }
    guard state != stored else { return }
    try states.put(state, of: user.uid, in: transaction)
    touchesStates = true
  }

  /// The entries that lead to a user, and what is wrong where another has one of them.
  private func lookups(of user: User) -> [(key: [UInt8], taken: AccountError.Code)] {
    var lookups: [(key: [UInt8], taken: AccountError.Code)] = []
    if let email = user.email { lookups.append((AccountsKey(.emails).ending(email).bytes, .emailExists)) }
    if let number = user.phoneNumber {
      lookups.append((AccountsKey(.phoneNumbers).ending(number).bytes, .phoneNumberExists))
    }
    for provider in user.providers {
      lookups.append((AccountsKey.identity(provider.providerID, provider.rawID), .federatedUserIDAlreadyLinked))
    }
    return lookups
  }
}

extension UserState {
  /// What stands against a user's tokens. Nothing does against those of most: none is older than the account.
  init(_ user: User) {
    self.init(
      validSinceSeconds: user.validSince == user.createdAt / 1000 ? 0 : user.validSince, isDisabled: user.isDisabled)
  }
}
