import DocumentModel
import Synchronization

/// An identity provider elsewhere whose tokens count here too.
package struct TrustedIssuer: Equatable, Sendable {
  /// What its tokens say in `iss`, such as `https://securetoken.google.com/my-project`.
  package var issuer: String
  /// What its tokens say in `aud`: the project there, or the client.
  package var audience: String

  /// Names a provider.
  package init(issuer: String, audience: String) {
    self.issuer = issuer
    self.audience = audience
  }
}

/// The keys of identity providers elsewhere, as they publish them. Their `sub` is the uid here, so only providers belong
/// here that the whole project is to trust.
package final class TrustedIssuers: Sendable {
  /// The most keys of one provider.
  package static let keysMax = 100
  /// The longest text of keys, in bytes.
  package static let keysBytesMax = 1 << 20

  private struct Entry {
    var issuer: TrustedIssuer
    var keys: [(id: String, key: RSAKey)] = []
  }

  private let entries = Mutex<[Entry]>([])
  private let replacements = Atomic<UInt64>(0)

  /// Trusts nobody yet.
  package init() {}

  /// Grows with every change of keys: what was found at the same number still holds. Cost: one load.
  package var changes: UInt64 { replacements.load(ordering: .acquiring) }

  /// Trusts a provider from now on, with the keys of a text: a JSON Web Key Set, or an object of certificates or public
  /// keys in PEM form by key id. Called again for the same provider, it replaces the keys. Returns how many it found.
  /// - Throws: ``TokenError/keyUnusable(_:)`` for a text without a key for RS256; then the keys before stay.
  @discardableResult
  package func trust(_ issuer: TrustedIssuer, keys text: [UInt8]) throws(TokenError) -> Int {
    guard text.count <= Self.keysBytesMax, let map = MapValue(json: text) else {
      throw .keyUnusable("the keys of \(issuer.issuer) are no JSON object")
    }
    let keys = Self.keys(map)
    guard !keys.isEmpty else {
      throw .keyUnusable("the keys of \(issuer.issuer) hold no RSA key of 2048 bits or more with a kid")
    }
    entries.withLock { entries in
      let entry = Entry(issuer: issuer, keys: keys)
      if let index = entries.firstIndex(where: { $0.issuer == issuer }) {
        entries[index] = entry
      } else {
        entries.append(entry)
      }
    }
    replacements.add(1, ordering: .acquiringAndReleasing)
    return keys.count
  }

  private static func keys(_ map: MapValue) -> [(id: String, key: RSAKey)] {
    guard case .array(let set)? = map["keys"] else {
      return map.entries.prefix(keysMax).compactMap { entry in
        guard case .string(let pem) = entry.value else { return nil }
        return RSAKey(publicPEM: pem).map { (entry.key, $0) }
      }
    }
    return set.prefix(keysMax).compactMap { element in
      guard case .map(let jwk) = element, jwk.text("kty") == "RSA", (jwk.text("alg") ?? "RS256") == "RS256",
        (jwk.text("use") ?? "sig") == "sig", let id = jwk.text("kid"), let n = jwk.text("n"), let e = jwk.text("e"),
        let modulus = Array(n.utf8).withUnsafeBytes({ Base64URL.decode($0) }),
        let exponent = Array(e.utf8).withUnsafeBytes({ Base64URL.decode($0) })
      else { return nil }
      return RSAKey(modulus: modulus, exponent: exponent).map { (id, $0) }
    }
  }

  /// Checks a token of one of the providers. Cost: a signature check.
  /// - Throws: ``TokenError``; `unknownKey` where none of the providers issued it.
  func verify(_ token: JSONWebToken, nowSeconds: Int64) throws(TokenError) -> VerifiedToken {
    guard let id = token.keyID, let name = token.claims.text("iss") else { throw .unknownKey }
    // Of several with one key, that counts whose claims the token has too.
    let found = entries.withLock { entries in
      entries.compactMap { entry in
        entry.issuer.issuer.utf8.elementsEqual(name.utf8)
          ? entry.keys.first { $0.id.utf8.elementsEqual(id.utf8) }.map { (issuer: entry.issuer, key: $0.key) } : nil
      }
    }
    var failure = TokenError.unknownKey
    for (issuer, key) in found {
      do throws(TokenError) {
        try token.verify(with: key)
        return try VerifiedToken(
          token.claims, issuer: issuer.issuer, audience: issuer.audience, nowSeconds: nowSeconds,
          lifetimeSecondsMax: Self.lifetimeSecondsMax)
      } catch { failure = error }
    }
    throw failure
  }

  /// How long providers may let a token live, in seconds.
  private static let lifetimeSecondsMax: Int64 = 30 * 86_400
}
