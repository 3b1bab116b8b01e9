package import Accounts
import RulesEngine
import Synchronization
import WireFormat

/// Checks whether a token was revoked before its expiry. Streams opened with the token check it repeatedly.
package final class AccountTokenRevocationCheck: TokenRevocationCheck {
  private let accounts: AccountStore
  private let token: [UInt8]
  /// The value of ``AccountStore/changes`` when the token was last valid.
  private let seen: Atomic<UInt64>

  /// Creates a check for a token that was valid when ``AccountStore/changes`` was `changes`.
  package init(_ token: [UInt8], in accounts: AccountStore, changes: UInt64) {
    self.accounts = accounts
    self.token = token
    seen = Atomic(changes)
  }

  /// The reason why the token was revoked, or `nil` if it is still valid. If accounts have changed since the last
  /// check, it verifies the token again, which costs a signature check. It ignores the token's expiry, which the
  /// streams of users check.
  package var revocationReason: String? {
    // Read the counter first: a change during the check must not be missed.
    let changes = accounts.changes
    guard changes != seen.load(ordering: .acquiring) else { return nil }
    do throws(TokenError) {
      _ = try token.withRawBytes { (token) throws(TokenError) in
        do throws(TokenError) { _ = try accounts.verifyBearer(token) } catch {
          guard case .expired = error else { throw error }
          try accounts.checkHolder(ofExpired: token)
        }
      }
    } catch {
      // The error's description contains server paths, which clients must not see.
      if case .storage = error { return "the server could not read the user's account" }
      return error.description
    }
    seen.store(changes, ordering: .releasing)
    return nil
  }

  /// The ID of the service key that the token belongs to, or `nil` if it belongs to none. Cost: parses the token.
  package var keyID: String? { token.withUnsafeBytes { accounts.serviceKeys.keyID(ofVerified: $0) } }
}
