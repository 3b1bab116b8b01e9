import Dispatch
import DocumentModel

// Makes tokens: signed in production, unsigned in emulator mode.
extension AccountStore {
  /// How long an ID token lives, in seconds.
  package static let idTokenSeconds: Int64 = 3600
  /// How long a session cookie may live, in seconds.
  package static let sessionCookieSeconds: ClosedRange<Int64> = 300...14 * 86_400

  /// An ID token, issued now.
  ///
  /// Cost: a signature, a quarter of a millisecond; the first ever makes the key.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
  package func mintIDToken(for user: SignedInUser) throws(TokenError) -> String {
    let issued = nowSeconds
    return try mint(
      user.claims(project: project, issuedSeconds: issued, lifetimeSeconds: Self.idTokenSeconds), .idToken)
  }

  /// A session cookie with the claims of an ID token, issued now. `seconds` is how long it lives, which the caller has
  /// checked against ``sessionCookieSeconds``.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
  package func mintSessionCookie(from token: VerifiedToken, seconds: Int64) throws(TokenError) -> String {
    var claims = token.claims
    let issued = nowSeconds
    claims["iss"] = .string(project.sessionIssuer)
    claims["iat"] = .integer(issued)
    claims["exp"] = .integer(issued + seconds)
    return try mint(claims, .sessionCookie)
  }

  /// Makes the key for the first ID token in the background, where there is none yet and one will be needed.
  package func prepare() {
    guard mode == .production, signingKeys.published(.idToken).isEmpty else { return }
    let keys = signingKeys
    // A failure comes again, and is told then, with the first token.
    DispatchQueue.global(qos: .utility).async { _ = try? keys.current(.idToken) }
  }

  /// Renews keys where it is time. Cost: nothing, mostly; a tenth of a second for a key.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
  package func maintain() throws(TokenError) { try signingKeys.maintain() }

  private func mint(_ claims: MapValue, _ purpose: SigningKeys.Purpose) throws(TokenError) -> String {
    guard mode == .production else { return JSONWebToken.unsigned(claims) }
    let key = try signingKeys.current(purpose)
    return try JSONWebToken.signed(claims, by: key.key, id: key.id)
  }
}
