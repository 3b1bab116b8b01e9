package import Accounts
import DocumentModel

/// An identity provider whose sign-in page this server opens (OpenID Connect Core 1.0, section 3.1).
package struct SignInProvider: Sendable {
  /// The proof of this server's identity at the token endpoint.
  package enum Credential: Sendable {
    /// None. PKCE alone protects the code.
    case none
    case secret(String)
    /// A JWT that this server signs, as Apple requires it.
    case signed(teamID: String, keyID: String, EllipticKey)
  }

  /// The ID that apps use: `google.com`, `apple.com`, or an ID that begins with `oidc.`.
  package var id: String
  /// The `iss` claim of its tokens, a URL. Its discovery document is below it.
  package var issuer: String
  /// The ID of this server at the provider: the `aud` claim of its tokens.
  package var clientID: String
  package var credential: Credential
  /// The scopes to request. The first is `openid`.
  package var scopes: [String]

  /// Creates a provider. `scopes` extends the scopes `openid`, `email` and `profile`.
  package init(id: String, issuer: String, clientID: String, credential: Credential, scopes: [String] = []) {
    self.id = id
    self.issuer = issuer
    self.clientID = clientID
    self.credential = credential
    // Apple names the scope of the user's name differently.
    let standard = id == "apple.com" ? ["openid", "email", "name"] : ["openid", "email", "profile"]
    self.scopes = standard + scopes.filter { !standard.contains($0) }
  }

  /// The issuer of a provider that needs no `issuer` in the configuration.
  package static func issuer(of id: String) -> String? {
    switch id {
    case "google.com": "https://accounts.google.com"
    case "apple.com": "https://appleid.apple.com"
    default: nil
    }
  }

  /// Whether a text can be an issuer: an https URL, or an http URL of this machine, without a query or a fragment.
  package static func isUsable(issuer: String) -> Bool {
    guard let host = ContinueURL.host(of: issuer), !issuer.contains("?"), !issuer.contains("#") else { return false }
    return issuer.hasPrefix("https://") || ContinueURL.isLoopback(host)
  }

  /// Whether this server may send a request to a URL, or a browser: with TLS, or on this machine if the provider is on
  /// this machine.
  func mayUse(_ url: String) -> Bool {
    guard let host = ContinueURL.host(of: url) else { return false }
    return url.hasPrefix("https://") || issuer.hasPrefix("http://") && ContinueURL.isLoopback(host)
  }

  /// Returns the secret for the token endpoint, or `nil` if the provider has none. Apple accepts a JWT for at most six
  /// months; this one is valid for five minutes.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the key cannot sign.
  func secret(nowSeconds: Int64) throws(TokenError) -> String? {
    switch credential {
    case .none: return nil
    case .secret(let secret): return secret
    case .signed(let teamID, let keyID, let key):
      let claims = MapValue([
        ("iss", .string(teamID)), ("iat", .integer(nowSeconds)), ("exp", .integer(nowSeconds + 300)),
        ("aud", .string(issuer)), ("sub", .string(clientID)),
      ])
      return try JSONWebToken.signed(claims, by: key, id: keyID)
    }
  }
}
