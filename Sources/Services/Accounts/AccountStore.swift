package import Basics
import CSodium
package import DocumentModel
package import KeyValue

/// The accounts of a project: stores users, issues tokens and verifies them.
///
/// A server has one. It has a key-value store of its own, separate from the documents.
package final class AccountStore: Sendable {
  package let project: AccountsProject
  package let mode: ServerMode
  package let store: any KeyValueStore
  /// The current time, in microseconds since 1970.
  package let now: @Sendable () -> Int64
  /// Called with each event, on any thread.
  package let audit: @Sendable (AccountEvent) -> Void
  package let signingKeys: SigningKeys
  package let refreshTokens: RefreshTokens
  package let serviceKeys: ServiceKeys
  /// The operators of the console of a production server.
  package let operators: Operators
  package let userStates: UserStates
  package let users: UserStore
  /// Other identity providers that issue accepted tokens. Empty until one is added.
  package let trustedIssuers: TrustedIssuers
  /// The limits of wrong passwords by place.
  package let places: PlaceThrottles
  /// The changes that can invalidate tokens.
  package let revocations = TokenRevocations()

  /// Opens the accounts in a store. Cost: reads a few rows. Signing keys are created on first use. `quota` limits the
  /// number of users. Several projects of a server share `places`.
  /// - Throws: ``StorageError`` if the store fails; `unsupportedFormat` if a newer version wrote the store.
  package init(
    store: any KeyValueStore, project: AccountsProject, mode: ServerMode, now: @escaping @Sendable () -> Int64,
    audit: @escaping @Sendable (AccountEvent) -> Void = { _ in }, quota: Quota? = nil, places: PlaceThrottles? = nil
  ) throws(StorageError) {
    // Random bytes come from the system either way; this call selects the fastest code for the processor.
    _ = sodium_init()
    self.store = store
    self.project = project
    self.mode = mode
    self.now = now
    self.audit = audit
    self.places = places ?? PlaceThrottles(now: now)
    try Self.checkFormat(of: store)
    signingKeys = try SigningKeys(store: store, revocations: revocations, now: now)
    serviceKeys = try ServiceKeys(store: store, project: project, revocations: revocations, now: now)
    operators = try Operators(store: store, now: now)
    refreshTokens = RefreshTokens(store: store)
    userStates = UserStates(store: store, revocations: revocations)
    trustedIssuers = TrustedIssuers(revocations: revocations)
    users = try UserStore(
      store: store, states: userStates, quota: quota ?? Quota(.accounts, of: project.id), now: now)
  }

  /// Whether a store has everything that ``init(store:project:mode:now:audit:quota:places:)`` writes to an empty one.
  /// - Throws: ``StorageError`` if the read fails.
  package static func isInitialized(_ store: any KeyValueStore) throws(StorageError) -> Bool {
    guard try store.read(AccountsKey(.meta).ending("format").bytes) != nil else { return false }
    return try ServiceKeys.hasSecret(store)
  }

  /// Reads again what this object keeps of a store to which another process wrote. Remembered results of verifications are
  /// not used any more. The observers of ``revocations`` are not told of any user: the caller has the streams checked
  /// that are open. Cost: reads the rows of all keys.
  /// - Throws: ``StorageError`` if the store fails. The remembered results are not used then either.
  package func reload() throws(StorageError) {
    defer { revocations.note(.users([])) }
    try signingKeys.reload()
    try serviceKeys.reload()
  }

  /// The current time, in seconds since 1970.
  package var nowSeconds: Int64 { now() / 1_000_000 }

  /// The storage layout that this version writes.
  private static let format = "1"

  private static func checkFormat(of store: any KeyValueStore) throws(StorageError) {
    let key = AccountsKey(.meta).ending("format").bytes
    if let stored = try store.read(key) {
      let text = String(decoding: stored, as: UTF8.self)
      guard text == format else {
        throw .unsupportedFormat(path: "the account store", found: text, supported: format)
      }
    } else {
      try store.write { (txn) throws(StorageError) in try txn.put(key, Array(format.utf8)) }
    }
  }
}
