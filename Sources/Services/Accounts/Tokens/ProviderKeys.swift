import DocumentModel
import WireFormat

/// The published keys of an OpenID Connect provider, a JSON Web Key Set (RFC 7517): RSA keys and keys on P-256.
package struct ProviderKeys: Sendable {
  private enum Key {
    case rsa(RSAKey)
    case elliptic(EllipticKey)
  }

  private let keys: [(id: String?, key: Key)]

  /// Parses a key set. Ignores keys of other kinds, and keys after the first ``TrustedIssuers/keysMax``. Returns `nil`
  /// if the text is not a key set, or contains no usable key.
  package init?(_ text: [UInt8]) {
    guard text.count <= TrustedIssuers.keysBytesMax, case .array(let set)? = MapValue(json: text)?["keys"] else {
      return nil
    }
    keys = set.prefix(TrustedIssuers.keysMax).compactMap { element in
      guard case .map(let jwk) = element, (jwk.text("use") ?? "sig") == "sig", let key = Self.key(jwk) else {
        return nil
      }
      return (jwk.text("kid"), key)
    }
    if keys.isEmpty { return nil }
  }

  private static func key(_ jwk: MapValue) -> Key? {
    func bytes(_ name: String) -> [UInt8] {
      Array((jwk.text(name) ?? "").utf8).withUnsafeBytes { Base64URL.decode($0) } ?? []
    }
    switch (jwk.text("kty"), jwk.text("alg")) {
    case ("RSA", nil), ("RSA", "RS256"):
      return RSAKey(modulus: bytes("n"), exponent: bytes("e")).map { .rsa($0) }
    case ("EC", nil), ("EC", "ES256"):
      guard jwk.text("crv") == "P-256" else { return nil }
      return EllipticKey(x: bytes("x"), y: bytes("y")).map { .elliptic($0) }
    default: return nil
    }
  }

  /// Checks that one of the keys has signed a token, with RS256 or ES256. The kind of the key decides which algorithm
  /// it verifies, so a token cannot choose another one for it.
  /// - Throws: ``TokenError/unsigned`` or ``TokenError/algorithm`` for other algorithms, ``TokenError/unknownKey`` if
  ///   no key has the ID, or several keys have none; ``TokenError/badSignature`` if the signature does not match.
  package func verify(_ token: JSONWebToken) throws(TokenError) {
    guard !token.isUnsigned else { throw .unsigned }
    let isElliptic = token.algorithm == "ES256"
    guard isElliptic || token.algorithm == "RS256" else { throw .algorithm }
    let candidates = keys.filter { entry in
      guard token.keyID == nil || entry.id == token.keyID else { return false }
      if case .elliptic = entry.key { return isElliptic } else { return !isElliptic }
    }
    guard candidates.count == 1, let found = candidates.first else { throw .unknownKey }
    switch found.key {
    case .rsa(let key): try token.verify(with: key)
    case .elliptic(let key): try token.verify(with: key)
    }
  }
}
