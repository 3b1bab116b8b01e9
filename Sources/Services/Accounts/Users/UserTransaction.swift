import Basics
package import KeyValue

/// Changes to users in one write transaction.
package final class UserTransaction {
  /// The underlying transaction, for related changes.
  package let transaction: any KeyValueTransaction
  private let states: UserStates
  private let nowSeconds: Int64
  /// The users whose state that token checks read was changed.
  private(set) var changedStates: Set<String> = []
  private var view: UserView { UserView(snapshot: transaction) }
  private let quota: Quota
  /// The number of users after this transaction, or `nil` if it does not change.
  private(set) var count: Int?

  init(_ transaction: any KeyValueTransaction, _ states: UserStates, _ quota: Quota, nowSeconds: Int64) {
    self.transaction = transaction
    self.states = states
    self.quota = quota
    self.nowSeconds = nowSeconds
  }

  /// Returns the user with an ID, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(_ uid: String) throws -> User? { try view.user(uid) }

  /// Returns the user with an e-mail address, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(email: String) throws -> User? { try view.user(at: AccountsKey(.emails).ending(email).bytes) }

  /// Returns the user with a telephone number, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(phoneNumber: String) throws -> User? {
    try view.user(at: AccountsKey(.phoneNumbers).ending(phoneNumber).bytes)
  }

  /// Returns the user with an ID at another provider, or `nil` if it does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func user(providerID: String, rawID: String) throws -> User? {
    try view.user(at: AccountsKey.identity(providerID, rawID))
  }

  /// Adds a user; see ``UserStore/insert(_:)``.
  /// - Throws: as ``UserStore/insert(_:)``.
  package func insert(_ user: User) throws {
    guard try view.user(user.uid) == nil else { throw AccountError(.duplicateLocalID) }
    try put(user, replacing: nil)
  }

  /// Changes a user; see ``UserStore/update(_:_:)``.
  /// - Throws: as ``UserStore/update(_:_:)``.
  @discardableResult
  package func update(_ uid: String, _ change: (inout User) throws -> Void) throws -> User {
    guard let old = try view.user(uid) else { throw AccountError(.userNotFound) }
    var user = old
    try change(&user)
    try put(user, replacing: old)
    return user
  }

  /// Adds a user, or replaces the record with the same ID. Revoked tokens stay revoked.
  /// - Throws: ``AccountError`` if an e-mail address, telephone number or identity belongs to another user, or the
  ///   user has too many providers; ``StorageError`` if the write fails.
  package func upsert(_ user: User) throws {
    let old = try view.user(user.uid)
    var user = user
    if let old {
      user.sessionGeneration = old.sessionGeneration + (user.validSince > old.validSince ? 1 : 0)
      user.validSince = max(user.validSince, old.validSince)
    }
    try put(user, replacing: old)
  }

  /// Removes a user and invalidates its tokens and codes; see ``UserStore/remove(_:now:)``.
  /// - Throws: ``StorageError`` if the write fails.
  @discardableResult
  package func remove(_ uid: String, now: Int64) throws -> User? {
    guard let user = try view.user(uid) else { return nil }
    try changeCount(by: -1)
    for (key, _) in lookups(of: user) { try transaction.remove(key) }
    try transaction.remove(AccountsKey(.users).ending(uid).bytes)
    try removeCodes(of: uid)
    var state = UserState(user)
    state.deletedSeconds = now / 1000
    state.deletedGeneration = user.sessionGeneration
    try states.put(state, of: uid, in: transaction)
    changedStates.insert(uid)
    return user
  }

  private func put(_ user: User, replacing old: User?) throws {
    guard user.providers.count <= UserLimits.providersMax else {
      throw AccountError(
        .invalidArgument, "An account can be linked to at most \(UserLimits.providersMax) providers.")
    }
    let lookups = lookups(of: user)
    for (key, code) in lookups {
      if let holder = try view.uid(at: key), !holder.utf8.elementsEqual(user.uid.utf8) { throw AccountError(code) }
    }
    if old == nil { try changeCount(by: 1) }
    if let old {
      let kept = Set(lookups.map(\.key))
      for (key, _) in self.lookups(of: old) where !kept.contains(key) { try transaction.remove(key) }
    }
    for (key, _) in lookups { try transaction.put(key, Array(user.uid.utf8)) }
    var user = user
    if old == nil { try separate(&user, from: try states.state(of: user.uid)) }
    try transaction.put(AccountsKey(.users).ending(user.uid).bytes, user.stored())
    try putState(of: user)
  }

  /// Changes the number of users. Call it before the change.
  /// - Throws: `QuotaError` if the project has too many.
  private func changeCount(by change: Int) throws {
    let count = try UserCount.read(transaction)
    try quota.check(growthFrom: count, to: count + change)
    try UserCount.store(count + change, transaction)
    self.count = count + change
  }

  /// Makes sure that a new user with the ID of a deleted one does not inherit its sessions, whatever creation time the
  /// record claims.
  ///
  /// As in Identity Toolkit, `validSince` is at most the second of the creation, so that the tokens of the new user are
  /// valid at once. If the deletion was in the same second, ID tokens from that second stay valid for both users. The
  /// generation still separates their refresh tokens.
  private func separate(_ user: inout User, from state: UserState) throws {
    guard let deleted = state.deletedSeconds else { return }
    user.validSince = max(user.validSince, nowSeconds > deleted ? deleted + 1 : deleted)
    user.sessionGeneration = state.deletedGeneration + 1
  }

  /// Updates the state that token checks read.
  private func putState(of user: User) throws {
    var state = UserState(user)
    let stored = try states.state(of: user.uid)
    // The new user may have the ID of a deleted one, whose tokens stay invalid: an existing row keeps the time.
    if stored != UserState() { state.validSinceSeconds = user.validSince }
    guard state != stored else { return }
    try states.put(state, of: user.uid, in: transaction)
    changedStates.insert(user.uid)
  }

  /// Returns the lookup entries of a user, each with the error to throw if it belongs to another user.
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
  /// Creates the state of a user. It is the default state for most users, because no token is older than the
  /// account.
  init(_ user: User) {
    self.init(
      validSinceSeconds: user.validSince == user.createdAt / 1000 ? 0 : user.validSince, isDisabled: user.isDisabled)
  }
}
