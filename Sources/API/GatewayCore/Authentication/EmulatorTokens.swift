package import Accounts
package import Callers
package import DatabaseService
package import DocumentModel
import Glibc
package import RulesEngine
import Synchronization
import WireFormat

/// A verifier for the tokens of emulator mode, which any client can create (rules-language.md, section 16).
/// `owner`, Google's access tokens, and the access tokens that the server issued for service keys identify
/// administrators. Any other token is a JWT whose signature is not verified.
package final class EmulatorTokens: TokenVerifier {
  private struct Known {
    var token: [UInt8]
    var auth: RulesAuth
  }

  /// A cache of recent tokens, by ``slot(of:)``: clients send the same token with every request.
  private let known = Mutex<[Known?]>(Array(repeating: nil, count: EmulatorTokens.knownMax))
  private static let knownMax = 256
  /// Longer tokens are not cached.
  private static let knownBytesMax = 8 << 10

  private let accounts: AccountStore

  /// Creates a verifier with an empty cache.
  package init(_ accounts: AccountStore) { self.accounts = accounts }

  /// Returns the caller that a token identifies. Costs a comparison if the token is cached; otherwise the token is
  /// decoded.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the token is not a JWT.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    if token.elementsEqual("owner".utf8) || token.dropping("ya29.") != nil { return .admin }
    if ServiceKeys.isAccessToken(token) {
      let changes = accounts.changes
      return try AccountTokens.caller(bearing: token, in: accounts) {
        AccountTokenRevocationCheck(Array(token), in: accounts, changes: changes)
      }.caller
    }
    let slot = Self.slot(of: token)
    let found = known.withLock { known -> RulesAuth? in
      guard let entry = known[slot], Self.areEqual(entry.token, token) else { return nil }
      return entry.auth
    }
    if let found { return .user(found) }
    let auth = try Self.decode(token)
    if token.count <= Self.knownBytesMax {
      let entry = Known(token: Array(token), auth: auth)
      known.withLock { $0[slot] = entry }
    }
    return .user(auth)
  }

  /// The slot of a token. A few of its bytes distinguish most tokens; the caller compares the whole token in the
  /// slot.
  private static func slot(of token: UnsafeRawBufferPointer) -> Int {
    var sum = UInt64(token.count)
    for index in stride(from: 0, to: token.count, by: 1 + token.count / 64) {
      sum = sum &* 31 &+ UInt64(token[index])
    }
    return Int(truncatingIfNeeded: (sum ^ sum >> 17) % UInt64(knownMax))
  }

  private static func areEqual(_ known: [UInt8], _ token: UnsafeRawBufferPointer) -> Bool {
    known.withUnsafeBytes { known in
      guard known.count == token.count, let a = known.baseAddress, let b = token.baseAddress else { return false }
      return memcmp(a, b, token.count) == 0
    }
  }

  /// Decodes the claims of a JWT without verifying its signature.
  private static func decode(_ token: UnsafeRawBufferPointer) throws(Status) -> RulesAuth {
    let invalid = Status(.invalidArgument, "invalid jwt")
    let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw invalid }
    let text = UnsafeRawBufferPointer(rebasing: parts[1])
    var isBase64 = true
    let json = [UInt8](unsafeUninitializedCapacity: Base64.decodedCountMax(text.count)) { buffer, count in
      let written = Base64.decode(text, into: UnsafeMutableRawBufferPointer(buffer))
      isBase64 = written != nil
      count = written ?? 0
    }
    guard isBase64 else { throw invalid }
    let auth = try? json.withUnsafeBytes { json in
      try JSONDocument().withParsed(json) { (root) throws(WireError) -> RulesAuth? in
        guard case .object(let members) = root.kind else { return nil }
        return RulesAuth(claims: MapValue(claims: members))
      }
    }
    guard let auth else { throw invalid }
    return auth
  }
}

extension RulesAuth {
  /// Creates the caller that claims describe. It has no uid if `sub` is not a string.
  package init(claims: MapValue) {
    var uid: String?
    if case .string(let subject) = claims["sub"] { uid = subject }
    self.init(uid: uid, claims: claims)
  }
}
