import Accounts
import DocumentModel
import KeyValue
import LMDBEngine
import TestSupport

/// Accounts in memory, with a clock that stands still until a test advances it.
final class TestAccounts: Sendable {
  let clock: SteppedTime
  let store: any KeyValueStore
  let accounts: AccountStore

  init(
    _ mode: ServerMode = .production, project: String = "demo", store: (any KeyValueStore)? = nil,
    clock: SteppedTime = SteppedTime()
  ) throws {
    self.clock = clock
    let store = try store ?? LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    self.store = store
    accounts = try AccountStore(store: store, project: AccountsProject(project), mode: mode) { clock.now }
  }

  /// Opens the same store again, as after a restart.
  func reopened() throws -> TestAccounts { try TestAccounts(accounts.mode, store: store, clock: clock) }

  var user: SignedInUser {
    var user = SignedInUser(uid: "ann", provider: "password", authTimeSeconds: accounts.nowSeconds)
    user.email = "ann@example.com"
    return user
  }

  func verify(_ token: String) throws -> VerifiedToken {
    try Array(token.utf8).withUnsafeBytes { try accounts.verifyIDToken($0) }
  }

  /// Returns the reason why a token is rejected, or `nil` if it is accepted.
  func refusal(_ token: [UInt8]) -> TokenError? {
    token.withUnsafeBytes { bytes in
      do throws(TokenError) {
        _ = try accounts.verifyIDToken(bytes)
        return nil
      } catch { return error }
    }
  }

  func refusal(_ token: String) -> TokenError? { refusal(Array(token.utf8)) }
}
