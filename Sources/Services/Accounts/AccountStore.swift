import CSodium
package import KeyValue

/// Who the people of a project are: the store of accounts, and what makes and checks their tokens.
///
/// One for a server. Everything hangs on the store given, which is the accounts' own: no document lies in it.
package final class AccountStore: Sendable {
  /// Whom the server trusts.
  package enum Mode: Sendable {
    /// For development and tests: tokens are unsigned, and nobody checks one.
    case emulator
    /// For people's data: tokens are signed, and checked.
    case production
  }

  /// Whose people these are.
  package let project: AccountsProject
  /// Whom the server trusts.
  package let mode: Mode
  /// Where everything is kept.
  package let store: any KeyValueStore
  /// Microseconds since 1970.
  package let now: @Sendable () -> Int64
  /// Is told what is done to accounts and keys, on any thread.
  package let audit: @Sendable (AccountEvent) -> Void
  /// The keys that sign ID tokens and session cookies.
  package let signingKeys: SigningKeys
  /// The sessions that continue without signing in again.
  package let refreshTokens: RefreshTokens
  /// The keys of programs that are admins.
  package let serviceKeys: ServiceKeys
  /// What stands against the tokens of users.
  package let userStates: UserStates
  /// The users.
  package let users: UserStore
  /// Identity providers elsewhere whose tokens count too; none until one is added.
  package let trustedIssuers = TrustedIssuers()

  /// Gets ready over a store. Cost: reads a few rows; no key is made before it is needed.
  /// - Throws: ``StorageError``; `unsupportedFormat` where a newer version wrote the store.
  package init(
    store: any KeyValueStore, project: AccountsProject, mode: Mode, now: @escaping @Sendable () -> Int64,
    audit: @escaping @Sendable (AccountEvent) -> Void = { _ in }
  ) throws(StorageError) {
    // Random bytes come from the system either way; this picks the fastest code for the processor.
    _ = sodium_init()
    self.store = store
    self.project = project
    self.mode = mode
    self.now = now
    self.audit = audit
    try Self.checkFormat(of: store)
    signingKeys = try SigningKeys(store: store, now: now)
    serviceKeys = try ServiceKeys(store: store, project: project, now: now)
    refreshTokens = RefreshTokens(store: store)
    userStates = UserStates(store: store)
    users = UserStore(store: store, states: userStates)
  }

  /// Seconds since 1970.
  package var nowSeconds: Int64 { now() / 1_000_000 }

  /// The layout this code writes.
  private static let format = "1"

  private static func checkFormat(of store: any KeyValueStore) throws(StorageError) {
    let key = AccountsKey(.meta).ending("format").bytes
    if let stored = try store.read(key) {
      let text = String(decoding: stored, as: UTF8.self)
      guard text == format else {
        throw .unsupportedFormat(path: "the store of accounts", found: text, supported: format)
      }
    } else {
      try store.write { (txn) throws(StorageError) in try txn.put(key, Array(format.utf8)) }
    }
  }
}
