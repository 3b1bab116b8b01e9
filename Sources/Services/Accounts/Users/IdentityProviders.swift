import Basics
package import DocumentModel
import Synchronization
import WireFormat

/// The identity providers whose tokens sign users in: for each, the app's ID there and the provider's public
/// keys.
///
/// The tokens of a ``TrustedIssuer`` are accepted as they are. A token of these providers is exchanged for one of
/// this server, and proves only the identity at the provider.
package final class IdentityProviders: Sendable {
  private let providers = Mutex<[(id: String, issuers: TrustedIssuers)]>([])

  /// Creates an empty list.
  package init() {}

  /// The issuers of Google's and Apple's tokens, by the provider IDs that clients use.
  private static let presets: [(id: String, issuers: [String])] = [
    ("google.com", ["https://accounts.google.com", "accounts.google.com"]),
    ("apple.com", ["https://appleid.apple.com"]),
  ]

  /// Adds a provider.
  /// - Parameters:
  ///   - id: `google.com`, `apple.com`, or an ID that begins with `oidc.`.
  ///   - issuer: the `iss` claim of its tokens. Not needed for `google.com` and `apple.com`.
  ///   - clientID: the `aud` claim of its tokens: the app's ID at the provider.
  ///   - keys: a JSON Web Key Set.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the keys cannot be used, or the issuer is missing.
  package func add(_ id: String, issuer: String?, clientID: String, keys: [UInt8]) throws(TokenError) {
    let issuers = issuer.map { [$0] } ?? Self.presets.first { $0.id == id }?.issuers ?? []
    guard !issuers.isEmpty else { throw .keyUnusable("the provider \(id) has no issuer; specify one") }
    let trusted = TrustedIssuers()
    for issuer in issuers { try trusted.trust(TrustedIssuer(issuer: issuer, audience: clientID), keys: keys) }
    providers.withLock { $0.append((id, trusted)) }
  }

  /// Returns the claims of a token after verifying it. Cost: one signature check.
  /// - Throws: ``AccountError`` `OPERATION_NOT_ALLOWED` if the provider was not added; ``TokenError`` if the token
  ///   is not valid.
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

  /// Checks the nonce. If a token was requested with a nonce, it contains the nonce or its SHA-256, and the client
  /// must send the nonce too.
  private static func check(_ nonce: String?, in claims: MapValue) throws(TokenError) {
    guard let expected = claims.text("nonce") else { return }
    let nonce = nonce ?? ""
    let hash = Hexadecimal.text(RandomBytes.sha256(nonce.utf8))
    guard !nonce.isEmpty, expected.utf8.elementsEqual(nonce.utf8) || expected.utf8.elementsEqual(hash.utf8) else {
      throw .badClaim("nonce does not match the nonce of the request")
    }
  }
}
