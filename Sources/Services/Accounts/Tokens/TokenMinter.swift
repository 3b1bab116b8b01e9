import Dispatch
import DocumentModel

// Issues tokens: signed in production, unsigned in emulator mode.
extension AccountStore {
  /// The lifetime of an ID token, in seconds.
  package static let idTokenSeconds: Int64 = 3600
  /// The possible lifetimes of a session cookie, in seconds.
  package static let sessionCookieSeconds: ClosedRange<Int64> = 300...14 * 86_400

  /// Returns an ID token, issued now.
  ///
  /// Cost: one signature, a quarter of a millisecond. The first call creates the key.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the key cannot be created or used, or ``TokenError/storage(_:)``.
  package func mintIDToken(for user: SignedInUser) throws(TokenError) -> String {
    let issued = nowSeconds
    return try mint(
      user.claims(project: project, issuedSeconds: issued, lifetimeSeconds: Self.idTokenSeconds), .idToken)
  }

  /// Returns a session cookie with the claims of an ID token, issued now. `seconds` is its lifetime, which the
  /// caller has checked against ``sessionCookieSeconds``.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the key cannot be created or used, or ``TokenError/storage(_:)``.
  package func mintSessionCookie(from token: VerifiedToken, seconds: Int64) throws(TokenError) -> String {
    var claims = token.claims
    let issued = nowSeconds
    claims["iss"] = .string(project.sessionIssuer)
    claims["iat"] = .integer(issued)
    claims["exp"] = .integer(issued + seconds)
    return try mint(claims, .sessionCookie)
  }

  /// Creates the key of the first ID token in the background, if it is needed and does not exist.
  package func prepare() {
    guard mode == .production, signingKeys.published(.idToken).isEmpty else { return }
    let keys = signingKeys
    // A failure recurs with the first token, and is reported then.
    DispatchQueue.global(qos: .utility).async { _ = try? keys.current(.idToken) }
  }

  /// Rotates keys if they are due. Cost: usually nothing; a tenth of a second if a key is created.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if libcrypto fails, or ``TokenError/storage(_:)``.
  package func maintain() throws(TokenError) { try signingKeys.maintain() }

  /// Creates the key that signs ID tokens, unless it exists. Cost: usually one lock.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the key cannot be created, or ``TokenError/storage(_:)``.
  func requireSigningKey() throws(TokenError) {
    if mode == .production { _ = try signingKeys.current(.idToken) }
  }

  private func mint(_ claims: MapValue, _ purpose: SigningKeys.Purpose) throws(TokenError) -> String {
    guard mode == .production else { return JSONWebToken.unsigned(claims) }
    let key = try signingKeys.current(purpose)
    return try JSONWebToken.signed(claims, by: key.key, id: key.id)
  }
}
