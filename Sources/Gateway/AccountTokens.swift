package import Accounts
package import DatabaseService
import DocumentModel
import Glibc
import RulesEngine
import Synchronization

/// The tokens of production: signed, and checked. What was found is remembered, since clients send the same token with
/// every request.
///
/// A remembered token is believed until it expires; and as soon as anything changes that may end one early (a user
/// disabled, a session revoked, a key withdrawn), every token is checked once more.
package final class AccountTokens: TokenVerifier {
  private struct Known {
    var token: [UInt8]
    var caller: Caller
    var expirySeconds: Int64
    /// ``Accounts/changes`` when it was checked.
    var changes: UInt64
  }

  /// Some of the remembered tokens, behind one lock.
  private final class Shard: Sendable {
    let known = Mutex<[Known?]>(Array(repeating: nil, count: AccountTokens.knownPerShard))
  }

  private let accounts: Accounts
  private let shards = (0..<AccountTokens.shardCount).map { _ in Shard() }

  /// Loops seldom meet at one lock of these. Powers of two.
  private static let shardCount = 16
  /// How many tokens are remembered behind each; they push each other out.
  private static let knownPerShard = 256
  /// Longer tokens are checked every time. With their claims, the remembered take 32 MiB at most.
  private static let knownBytesMax = 4 << 10

  /// Creates a verifier that has seen no token yet.
  package init(_ accounts: Accounts) { self.accounts = accounts }

  /// The caller that a token stands for. Cost: a look at the token once it is known, a tenth of a microsecond; a
  /// signature check before, some twenty.
  /// - Throws: `UNAUTHENTICATED`, with the reason.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    let changes = accounts.changes
    let (shard, slot) = place(of: token)
    let found = shard.known.withLock { known -> Known? in
      guard let entry = known[slot], entry.changes == changes, Self.areEqual(entry.token, token) else { return nil }
      return entry
    }
    if let found, found.expirySeconds > accounts.nowSeconds { return found.caller }
    let (caller, expiry) = try Self.caller(bearing: token, in: accounts)
    if token.count <= Self.knownBytesMax {
      // The number of before: what changed while the token was checked must not be missed.
      let entry = Known(token: Array(token), caller: caller, expirySeconds: expiry, changes: changes)
      shard.known.withLock { $0[slot] = entry }
    }
    return caller
  }

  /// Checks a token of which nothing is remembered; also says when it ends, in seconds since 1970.
  static func caller(
    bearing token: UnsafeRawBufferPointer, in accounts: Accounts
  ) throws(Status) -> (caller: Caller, expirySeconds: Int64) {
    do throws(TokenError) {
      switch try accounts.verifyBearer(token) {
      case .admin(let expiry): return (.admin, expiry)
      case .user(let token):
        let seconds = token.expirySeconds
        let expiry = seconds < .max / 1_000_000 ? seconds * 1_000_000 : nil
        let auth = RulesAuth(uid: token.uid, claims: token.claims, expiry: expiry)
        return (.user(auth), token.expirySeconds)
      }
    } catch { throw Status(error) }
  }

  /// Where a token is remembered. Its end is that of a signature: as good as random.
  private func place(of token: UnsafeRawBufferPointer) -> (shard: Shard, slot: Int) {
    var end: (UInt64, UInt64) = (0, UInt64(token.count))
    withUnsafeMutableBytes(of: &end) { end in
      end.copyMemory(from: UnsafeRawBufferPointer(rebasing: token.suffix(16)))
    }
    var hash = (end.0 ^ end.1 &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
    hash ^= hash >> 32
    let number = Int(truncatingIfNeeded: hash)
    return (shards[number & (Self.shardCount - 1)], number >> 8 & (Self.knownPerShard - 1))
  }

  private static func areEqual(_ known: [UInt8], _ token: UnsafeRawBufferPointer) -> Bool {
    known.withUnsafeBytes { known in
      guard known.count == token.count, let a = known.baseAddress, let b = token.baseAddress else { return false }
      return memcmp(a, b, token.count) == 0
    }
  }
}

extension Status {
  /// What a client is told whose token is not accepted.
  init(_ error: TokenError) {
    switch error {
    case .storage(let error): self.init(error, database: nil)
    default: self.init(.unauthenticated, "Missing or invalid authentication: \(error.description).")
    }
  }
}
