import DocumentModel
package import KeyValue

/// The facts that can invalidate tokens of a user.
package struct UserState: Equatable, Sendable {
  /// Tokens issued before this time are revoked, in seconds since 1970.
  package var validSinceSeconds: Int64 = 0
  package var isDisabled = false
  /// The time of the user's deletion, in seconds since 1970. Kept until the last token has expired.
  package var deletedSeconds: Int64?
  /// The session generation of the deleted user. Meaningless without ``deletedSeconds``.
  package var deletedGeneration: Int64 = 0

  /// Creates a state. The default state invalidates no token.
  package init(validSinceSeconds: Int64 = 0, isDisabled: Bool = false, deletedSeconds: Int64? = nil) {
    self.validSinceSeconds = validSinceSeconds
    self.isDisabled = isDisabled
    self.deletedSeconds = deletedSeconds
  }

  /// Checks a token by its time of issue, in seconds since 1970.
  /// - Throws: ``TokenError/userDeleted``, ``TokenError/userDisabled`` or ``TokenError/revoked`` if the state
  ///   invalidates it.
  package func check(issuedSeconds: Int64) throws(TokenError) {
    guard deletedSeconds == nil else { throw .userDeleted }
    guard !isDisabled else { throw .userDisabled }
    guard issuedSeconds >= validSinceSeconds else { throw .revoked }
  }

  fileprivate var row: MapValue {
    var row = MapValue([("validSince", .integer(validSinceSeconds)), ("disabled", .boolean(isDisabled))])
    if let deletedSeconds {
      row["deleted"] = .integer(deletedSeconds)
      row["generation"] = .integer(deletedGeneration)
    }
    return row
  }

  fileprivate init(row: MapValue) {
    self.init(
      validSinceSeconds: row.integer("validSince") ?? 0, isDisabled: row["disabled"] == .boolean(true),
      deletedSeconds: row.integer("deleted"))
    deletedGeneration = row.integer("generation") ?? 0
  }
}

/// The states of users, one small row each. Verifying a token reads the state in addition to checking the
/// signature.
///
/// A caller that changes a user writes the state in the same transaction, and calls ``changed(_:)`` after the commit.
package final class UserStates: Sendable {
  private let store: any KeyValueStore
  private let revocations: TokenRevocations

  init(store: any KeyValueStore, revocations: TokenRevocations) {
    self.store = store
    self.revocations = revocations
  }

  /// Invalidates remembered verification results after the states of users have changed. Cost: the state of each user
  /// is read once more.
  package func changed(_ concerned: TokenRevocations.Concerned) { revocations.note(concerned) }

  /// Returns the state of a user. Cost: one point read.
  /// - Throws: ``StorageError`` if the read fails; `corruption` if the row is not valid.
  package func state(of uid: String) throws(StorageError) -> UserState {
    guard let row = try store.read(Self.key(uid)) else { return UserState() }
    guard let map = MapValue(json: row) else {
      throw .corruption(path: "the account store", detail: "the state of a user is not a JSON object")
    }
    return UserState(row: map)
  }

  /// Writes the state of a user. Removes the row if the state is the default.
  /// - Throws: ``StorageError`` if the write fails.
  package func put(_ state: UserState, of uid: String, in txn: any KeyValueTransaction) throws(StorageError) {
    if state == UserState() {
      try txn.remove(Self.key(uid))
    } else {
      try txn.put(Self.key(uid), state.row.json)
    }
  }

  /// Writes the state of a user in a transaction of its own, and calls ``changed(_:)``.
  /// - Throws: ``StorageError`` if the write fails.
  package func set(_ state: UserState, of uid: String) throws(StorageError) {
    try store.write { (txn) throws(StorageError) in try put(state, of: uid, in: txn) }
    changed(.users([uid]))
  }

  private static func key(_ uid: String) -> [UInt8] { AccountsKey(.userStates).ending(uid).bytes }
}
