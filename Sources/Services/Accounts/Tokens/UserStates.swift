import DocumentModel
package import KeyValue
import Synchronization

/// What stands against the tokens of a user.
package struct UserState: Equatable, Sendable {
  /// Tokens issued before this are revoked, in seconds since 1970.
  package var validSinceSeconds: Int64 = 0
  /// Whether the user may not sign in.
  package var isDisabled = false
  /// When the user was deleted, in seconds since 1970: kept until the last token is expired.
  package var deletedSeconds: Int64?

  /// Creates a state; by default nothing stands against a user.
  package init(validSinceSeconds: Int64 = 0, isDisabled: Bool = false, deletedSeconds: Int64? = nil) {
    self.validSinceSeconds = validSinceSeconds
    self.isDisabled = isDisabled
    self.deletedSeconds = deletedSeconds
  }

  /// Checks a token by the second it was issued.
  /// - Throws: ``TokenError/userDeleted``, ``TokenError/userDisabled``, ``TokenError/revoked``.
  package func check(issuedSeconds: Int64) throws(TokenError) {
    guard deletedSeconds == nil else { throw .userDeleted }
    guard !isDisabled else { throw .userDisabled }
    guard issuedSeconds >= validSinceSeconds else { throw .revoked }
  }

  fileprivate var row: MapValue {
    var row = MapValue([("validSince", .integer(validSinceSeconds)), ("disabled", .boolean(isDisabled))])
    if let deletedSeconds { row["deleted"] = .integer(deletedSeconds) }
    return row
  }

  fileprivate init(row: MapValue) {
    self.init(
      validSinceSeconds: row.integer("validSince") ?? 0, isDisabled: row["disabled"] == .boolean(true),
      deletedSeconds: row.integer("deleted"))
  }
}

/// The states of users, one small row each: what a check of a token asks beside its signature.
///
/// Whoever changes a user writes the state in the same transaction and calls ``changed()`` once that is committed.
package final class UserStates: Sendable {
  private let store: any KeyValueStore
  private let number = Atomic<UInt64>(0)

  init(store: any KeyValueStore) { self.store = store }

  /// Grows with every change of a state: what was found at the same number still holds. Cost: one load.
  package var changes: UInt64 { number.load(ordering: .acquiring) }

  /// Tells those who remember verified tokens that a state has changed. Cost: they look each user up once more.
  package func changed() { number.add(1, ordering: .acquiringAndReleasing) }

  /// The state of a user. Cost: one point read.
  /// - Throws: ``StorageError``.
  package func state(of uid: String) throws(StorageError) -> UserState {
    guard let row = try store.read(Self.key(uid)) else { return UserState() }
    guard let map = MapValue(json: row) else {
      throw .corruption(path: "the store of accounts", detail: "the state of a user is no JSON object")
    }
    return UserState(row: map)
  }

  /// Writes the state of a user; where nothing stands against the user, no row remains.
  /// - Throws: ``StorageError``.
  package func put(_ state: UserState, of uid: String, in txn: any KeyValueTransaction) throws(StorageError) {
    if state == UserState() {
      try txn.remove(Self.key(uid))
    } else {
      try txn.put(Self.key(uid), state.row.json)
    }
  }

  /// Writes the state of a user in a transaction of its own, and tells of it.
  /// - Throws: ``StorageError``.
  package func set(_ state: UserState, of uid: String) throws(StorageError) {
    try store.write { (txn) throws(StorageError) in try put(state, of: uid, in: txn) }
    changed()
  }

  private static func key(_ uid: String) -> [UInt8] { AccountsKey(.userStates).ending(uid).bytes }
}
