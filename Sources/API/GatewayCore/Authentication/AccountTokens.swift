package import Accounts
package import Callers
package import DatabaseService
import DocumentModel
import Glibc
import RulesEngine
import Synchronization

/// A verifier for the signed tokens of production mode. It caches verified tokens, because clients send the same
/// token with every request.
///
/// A cached token is valid until it expires. After any change that can revoke a token (a user disabled, a session
/// revoked, a key withdrawn), every token is verified once more.
package final class AccountTokens: TokenVerifier {
  private struct Known {
    var hash: UInt64
    var token: [UInt8]
    var caller: Caller
    var expirySeconds: Int64
    /// The value of ``AccountStore/changes`` when the token was verified.
    var changes: UInt64
  }

  /// A part of the cache with its own lock.
  private final class Shard: Sendable {
    let known = Mutex<[Known?]>(Array(repeating: nil, count: AccountTokens.knownPerShard))
    /// Selects the slot of a full set that the next token replaces.
    let turn = Atomic<Int>(0)
  }

  private let accounts: AccountStore
  private let shards = (0..<AccountTokens.shardCount).map { _ in Shard() }

  /// The number of shards, so that loops rarely wait for the same lock. A power of two, like the next two numbers.
  private static let shardCount = 16
  /// The number of tokens in each shard.
  private static let knownPerShard = 256
  /// The number of adjacent slots in which a token may be stored. With only one, about 250 of 1,000 tokens in use
  /// would constantly evict each other.
  private static let places = 8
  /// Longer tokens are not cached. With their claims, the cached tokens take at most 32 MiB.
  private static let knownBytesMax = 4 << 10

  /// Creates a verifier with an empty cache.
  package init(_ accounts: AccountStore) { self.accounts = accounts }

  /// Returns the caller that a token identifies. Costs a tenth of a microsecond if the token is cached, and
  /// otherwise a signature check of some twenty microseconds.
  ///
  /// - Throws: `UNAUTHENTICATED` with the reason if the token is not valid; another ``Status`` if accounts cannot
  ///   be read.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    let changes = accounts.changes
    let hash = Self.hash(of: token)
    let shard = shards[Int(truncatingIfNeeded: hash) & (Self.shardCount - 1)]
    let set = Self.set(of: hash)
    let found = shard.known.withLock { known -> Known? in
      for place in set {
        guard let entry = known[place], entry.hash == hash, Self.areEqual(entry.token, token) else { continue }
        return entry.changes == changes ? entry : nil
      }
      return nil
    }
    if let found, found.expirySeconds > accounts.nowSeconds { return found.caller }
    let bytes = Array(token)
    let (caller, expiry) = try Self.caller(bearing: token, in: accounts) {
      AccountTokenRevocationCheck(bytes, in: accounts, changes: changes)
    }
    if token.count <= Self.knownBytesMax {
      // Use the counter from before the check: a change during the check must not be missed.
      let entry = Known(hash: hash, token: bytes, caller: caller, expirySeconds: expiry, changes: changes)
      let turn = shard.turn.wrappingAdd(1, ordering: .relaxed).newValue & (Self.places - 1)
      shard.known.withLock { known in
        // Reuse this token's slot, else a free or stale slot, else evict round-robin.
        let own = set.first { known[$0].map { $0.hash == hash && Self.areEqual($0.token, token) } ?? false }
        let free = set.first { known[$0].map { $0.changes != changes } ?? true }
        known[own ?? free ?? set.lowerBound + turn] = entry
      }
    }
    return caller
  }

  /// Verifies a token without the cache. Returns its caller and its expiry in seconds since 1970. The caller keeps
  /// the result of `revocationCheck`.
  ///
  /// - Throws: `UNAUTHENTICATED` with the reason if the token is not valid; another ``Status`` if accounts cannot be
  ///   read.
  package static func caller(
    bearing token: UnsafeRawBufferPointer, in accounts: AccountStore,
    revocationCheck: () -> AccountTokenRevocationCheck
  ) throws(Status) -> (caller: Caller, expirySeconds: Int64) {
    do throws(TokenError) {
      switch try accounts.verifyBearer(token) {
      case .admin(let expiry): return (.administrator(revocationCheck: revocationCheck()), expiry)
      case .user(let token):
        let seconds = token.expirySeconds
        let expiry = seconds < .max / 1_000_000 ? seconds * 1_000_000 : nil
        let auth = RulesAuth(uid: token.uid, claims: token.claims, expiry: expiry, revocationCheck: revocationCheck())
        return (.user(auth), token.expirySeconds)
      }
    } catch { throw Status(error) }
  }

  /// A hash of a token. Its last bytes are part of a signature and therefore as good as random.
  private static func hash(of token: UnsafeRawBufferPointer) -> UInt64 {
    var end: (UInt64, UInt64) = (0, UInt64(token.count))
    withUnsafeMutableBytes(of: &end) { end in
      end.copyMemory(from: UnsafeRawBufferPointer(rebasing: token.suffix(16)))
    }
    let hash = (end.0 ^ end.1 &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ hash >> 32
  }

  /// The slots of a shard in which a token may be stored.
  private static func set(of hash: UInt64) -> Range<Int> {
    let first = (Int(truncatingIfNeeded: hash >> 8) & (knownPerShard / places - 1)) * places
    return first..<first + places
  }

  private static func areEqual(_ known: [UInt8], _ token: UnsafeRawBufferPointer) -> Bool {
    known.withUnsafeBytes { known in
      guard known.count == token.count, let a = known.baseAddress, let b = token.baseAddress else { return false }
      return memcmp(a, b, token.count) == 0
    }
  }
}

extension Status {
  /// Creates the status that a client receives if its token is not valid.
  package init(_ error: TokenError) {
    switch error {
    case .storage(let error): self.init(error, database: nil)
    default: self.init(.unauthenticated, "Missing or invalid authentication: \(error.description).")
    }
  }
}
