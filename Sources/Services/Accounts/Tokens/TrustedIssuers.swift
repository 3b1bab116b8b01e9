import DocumentModel
import Synchronization
import WireFormat

/// Another identity provider whose tokens this server accepts.
package struct TrustedIssuer: Equatable, Sendable {
  /// The `iss` claim of its tokens, such as `https://securetoken.google.com/my-project`.
  package var issuer: String
  /// The `aud` claim of its tokens: the project or the client there.
  package var audience: String

  package init(issuer: String, audience: String) {
    self.issuer = issuer
    self.audience = audience
  }
}

/// The published keys of other identity providers. The `sub` of their tokens is used as the uid here, so add only
/// providers that the whole project trusts.
package final class TrustedIssuers: Sendable {
  /// The most keys of one provider. Further keys in a document are ignored.
  package static let keysMax = 100
  /// The longest accepted key document, in bytes.
  package static let keysBytesMax = 1 << 20

  private struct Entry {
    var issuer: TrustedIssuer
    var keys: [(id: String, key: RSAKey)] = []
  }

  private let entries = Mutex<[Entry]>([])
  private let revocations: TokenRevocations

  /// Creates an empty list, which notes each change of keys.
  package init(revocations: TokenRevocations = TokenRevocations()) { self.revocations = revocations }

  /// Trusts a provider from now on, with the keys of a document: a JSON Web Key Set, or an object that maps key IDs
  /// to certificates or public keys in PEM form. A later call for the same provider replaces its keys. Returns the
  /// number of keys.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the document is longer than ``keysBytesMax``, is not a JSON object, or
  ///   contains no RSA key of at least 2,048 bits with a `kid`. The previous keys then remain.
  @discardableResult
  package func trust(_ issuer: TrustedIssuer, keys text: [UInt8]) throws(TokenError) -> Int {
    guard text.count <= Self.keysBytesMax, let map = MapValue(json: text) else {
      throw .keyUnusable("the keys of \(issuer.issuer) are not a JSON object")
    }
    let keys = Self.keys(map)
    guard !keys.isEmpty else {
      throw .keyUnusable("the keys of \(issuer.issuer) contain no RSA key of 2048 bits or more with a kid")
    }
    entries.withLock { entries in
      let entry = Entry(issuer: issuer, keys: keys)
      if let index = entries.firstIndex(where: { $0.issuer == issuer }) {
        entries[index] = entry
      } else {
        entries.append(entry)
      }
    }
    revocations.note(.everyone)
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

  /// Verifies a token of one of the providers. Cost: one signature check for each provider that shares the key.
  /// - Throws: ``TokenError`` if the token is not valid; `unknownKey` if none of the providers issued it.
  func verify(_ token: JSONWebToken, nowSeconds: Int64) throws(TokenError) -> VerifiedToken {
    guard let id = token.keyID, let name = token.claims.text("iss") else { throw .unknownKey }
    // If several providers share a key, the token belongs to the provider whose claims it contains.
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

  /// The longest lifetime of a provider's token, in seconds.
  private static let lifetimeSecondsMax: Int64 = 30 * 86_400
}
