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
    var hash: UInt64
    var token: [UInt8]
    var caller: Caller
    var expirySeconds: Int64
    /// ``AccountStore/changes`` when it was checked.
    var changes: UInt64
  }

  /// Some of the remembered tokens, behind one lock.
  private final class Shard: Sendable {
    let known = Mutex<[Known?]>(Array(repeating: nil, count: AccountTokens.knownPerShard))
    /// Which place of a full set is given to the next token.
    let turn = Atomic<Int>(0)
  }

  private let accounts: AccountStore
  private let shards = (0..<AccountTokens.shardCount).map { _ in Shard() }

  /// Loops seldom meet at one lock of these. Powers of two.
  private static let shardCount = 16
  /// How many tokens are remembered behind each.
  private static let knownPerShard = 256
  /// How many of these places a token may take, one beside the other. With one only, a quarter of a thousand tokens would
  /// push each other out all the time.
  private static let places = 8
  /// Longer tokens are checked every time. With their claims, the remembered take 32 MiB at most.
  private static let knownBytesMax = 4 << 10

  /// Creates a verifier that has seen no token yet.
  package init(_ accounts: AccountStore) { self.accounts = accounts }

  /// The caller that a token stands for. Cost: a look at the token once it is known, a tenth of a microsecond; a
  /// signature check before, some twenty.
  /// - Throws: `UNAUTHENTICATED`, with the reason.
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
      // The number of before: what changed while the token was checked must not be missed.
      let entry = Known(hash: hash, token: bytes, caller: caller, expirySeconds: expiry, changes: changes)
      let turn = shard.turn.wrappingAdd(1, ordering: .relaxed).newValue & (Self.places - 1)
      shard.known.withLock { known in
        // Its own old place, else one that is free or holds what counts no more, else one after the other.
        let own = set.first { known[$0].map { $0.hash == hash && Self.areEqual($0.token, token) } ?? false }
        let free = set.first { known[$0].map { $0.changes != changes } ?? true }
        known[own ?? free ?? set.lowerBound + turn] = entry
      }
    }
    return caller
  }

  /// Checks a token of which nothing is remembered; also says when it ends, in seconds since 1970. A user's keeps the
  /// `standing` made for it.
  static func caller(
    bearing token: UnsafeRawBufferPointer, in accounts: AccountStore, revocationCheck: () -> AccountTokenRevocationCheck? = { nil }
  ) throws(Status) -> (caller: Caller, expirySeconds: Int64) {
    do throws(TokenError) {
      switch try accounts.verifyBearer(token) {
      case .admin(let expiry): return (.admin, expiry)
      case .user(let token):
        let seconds = token.expirySeconds
        let expiry = seconds < .max / 1_000_000 ? seconds * 1_000_000 : nil
        let auth = RulesAuth(uid: token.uid, claims: token.claims, expiry: expiry, revocationCheck: revocationCheck())
        return (.user(auth), token.expirySeconds)
      }
    } catch { throw Status(error) }
  }

  /// A number for a token. Its end is that of a signature: as good as random.
  private static func hash(of token: UnsafeRawBufferPointer) -> UInt64 {
    var end: (UInt64, UInt64) = (0, UInt64(token.count))
    withUnsafeMutableBytes(of: &end) { end in
      end.copyMemory(from: UnsafeRawBufferPointer(rebasing: token.suffix(16)))
    }
    let hash = (end.0 ^ end.1 &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ hash >> 32
  }

  /// The places that a token may take in its shard.
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
  /// What a client is told whose token is not accepted.
  init(_ error: TokenError) {
    switch error {
    case .storage(let error): self.init(error, database: nil)
    default: self.init(.unauthenticated, "Missing or invalid authentication: \(error.description).")
    }
  }
}
