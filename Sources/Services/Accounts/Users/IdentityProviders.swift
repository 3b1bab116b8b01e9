package import DocumentModel
import Synchronization
import WireFormat

/// Identity providers whose tokens sign people in: each with the app's id there, and the keys it publishes.
///
/// Unlike a ``TrustedIssuer``, whose tokens count by themselves, such a token is exchanged for one of ours, and says
/// nothing but who somebody is at the provider.
package final class IdentityProviders: Sendable {
  private let providers = Mutex<[(id: String, issuers: TrustedIssuers)]>([])

  /// Creates a list without providers.
  package init() {}

  /// What Google and Apple write into their tokens, by the ids that clients know them by.
  private static let presets: [(id: String, issuers: [String])] = [
    ("google.com", ["https://accounts.google.com", "accounts.google.com"]),
    ("apple.com", ["https://appleid.apple.com"]),
  ]

  /// Lets a provider sign people in.
  /// - Parameters:
  ///   - id: `google.com`, `apple.com`, or one that begins with `oidc.`.
  ///   - issuer: what its tokens say in `iss`; not needed for the two that are known by name.
  ///   - clientID: what its tokens say in `aud`: the app, as the provider knows it.
  ///   - keys: a JSON Web Key Set.
  /// - Throws: ``TokenError`` for keys that cannot be used, and for a provider without an issuer.
  package func add(_ id: String, issuer: String?, clientID: String, keys: [UInt8]) throws(TokenError) {
    let issuers = issuer.map { [$0] } ?? Self.presets.first { $0.id == id }?.issuers ?? []
    guard !issuers.isEmpty else { throw .keyUnusable("the issuer of the provider \(id) is not given") }
    let trusted = TrustedIssuers()
    for issuer in issuers { try trusted.trust(TrustedIssuer(issuer: issuer, audience: clientID), keys: keys) }
    providers.withLock { $0.append((id, trusted)) }
  }

  /// The claims of a token, verified. Cost: a signature check.
  /// - Throws: ``AccountError`` `OPERATION_NOT_ALLOWED` for a provider that was not added; ``TokenError``.
  package func claims(of text: String, providerID: String, nonce: String?, nowSeconds: Int64) throws -> MapValue {
    let found = providers.withLock { $0.filter { $0.id.utf8.elementsEqual(providerID.utf8) }.map(\.issuers) }
    guard !found.isEmpty else {
      throw AccountError(.operationNotAllowed, "The identity provider configuration is not found.")
    }
    let token = try Array(text.utf8).withUnsafeBytes { text in
      Result { () throws(TokenError) in try JSONWebToken(text) }
    }.get()
    var failure = TokenError.unknownKey
    for issuers in found {
      do throws(TokenError) {
        let claims = try issuers.verify(token, nowSeconds: nowSeconds).claims
        try Self.check(nonce, in: claims)
        return claims
      } catch { failure = error }
    }
    throw failure
  }

  /// A token that was asked for with a nonce is only good together with it; the token has it, or its SHA-256.
  private static func check(_ nonce: String?, in claims: MapValue) throws(TokenError) {
    guard let expected = claims.text("nonce") else { return }
    let nonce = nonce ?? ""
    let hash = Hexadecimal.text(RandomBytes.sha256(nonce.utf8))
    guard !nonce.isEmpty, expected.utf8.elementsEqual(nonce.utf8) || expected.utf8.elementsEqual(hash.utf8) else {
      throw .badClaim("nonce is not the one it was asked for with")
    }
  }
}
