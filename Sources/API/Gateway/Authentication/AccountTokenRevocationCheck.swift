import Accounts
import RulesEngine
import Synchronization
import WireFormat

/// What may end the token of a user early: whether anything did is asked again and again by the streams that were opened
/// with it.
final class AccountTokenRevocationCheck: TokenRevocationCheck {
  private let accounts: AccountStore
  private let token: [UInt8]
  /// ``AccountStore/changes`` when the token was last found good.
  private let seen: Atomic<UInt64>

  /// Keeps a token that was found good when so many changes had been.
  init(_ token: [UInt8], in accounts: AccountStore, changes: UInt64) {
    self.accounts = accounts
    self.token = token
    seen = Atomic(changes)
  }

  /// Checks the token once more where anything has changed: that costs a signature check. Of one whose time is over,
  /// which is for others to say, what stands against its user still counts.
  var revocationReason: String? {
    // The number of before: what changes while the token is checked must not be missed.
    let changes = accounts.changes
    guard changes != seen.load(ordering: .acquiring) else { return nil }
    do throws(TokenError) {
      _ = try token.withRawBytes { (token) throws(TokenError) in
        do throws(TokenError) { _ = try accounts.verifyBearer(token) } catch {
          guard case .expired = error else { throw error }
          try accounts.checkUser(ofExpired: token)
        }
      }
    } catch {
      // What storage says names files of the server.
      if case .storage = error { return "its user cannot be looked up" }
      return error.description
    }
    seen.store(changes, ordering: .releasing)
    return nil
  }
}
