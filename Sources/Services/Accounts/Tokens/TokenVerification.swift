package import DocumentModel

/// A verified token: its user and its claims.
package struct VerifiedToken: Sendable {
  package let uid: String
  package let claims: MapValue
  /// The time of issue, in seconds since 1970.
  package let issuedSeconds: Int64
  /// The time of the user's sign-in, in seconds since 1970.
  package let authTimeSeconds: Int64
  /// The time from which the token is no longer valid, in seconds since 1970. In emulator mode tokens do not
  /// expire.
  package let expirySeconds: Int64

  /// The sign-in method, such as `password`.
  package var provider: String? { claims.map("firebase")?.text("sign_in_provider") }
}

// Verifies tokens by the rules of auth-api.md, section 8.
extension AccountStore {
  /// The length of the longest uid, in characters.
  package static let uidCharactersMax = 128

  /// Verifies an ID token of this project: its signature, times, issuer and audience. Emulator mode only parses it.
  ///
  /// Does not check the state of the user: see ``check(_:)``. Cost: one signature check, about twenty microseconds.
  /// - Throws: ``TokenError`` if the token is not valid.
  package func verifyIDToken(_ text: UnsafeRawBufferPointer) throws(TokenError) -> VerifiedToken {
    try verifyIDToken(try JSONWebToken(text))
  }

  func verifyIDToken(_ token: JSONWebToken) throws(TokenError) -> VerifiedToken {
    try verify(token, .idToken, issuer: project.issuer)
  }

  /// Verifies a session cookie of this project; see ``verifyIDToken(_:)``.
  /// - Throws: ``TokenError`` if the cookie is not valid.
  package func verifySessionCookie(_ text: UnsafeRawBufferPointer) throws(TokenError) -> VerifiedToken {
    try verify(try JSONWebToken(text), .sessionCookie, issuer: project.sessionIssuer)
  }

  /// Checks that the user of a token is not deleted or disabled, and that the token is not revoked. Cost: one point
  /// read.
  /// - Throws: ``TokenError/userDeleted``, ``TokenError/userDisabled``, ``TokenError/revoked``, or
  ///   ``TokenError/storage(_:)`` if the read fails.
  package func check(_ token: VerifiedToken) throws(TokenError) {
    let state: UserState
    do { state = try userStates.state(of: token.uid) } catch { throw .storage(error) }
    try state.check(issuedSeconds: token.issuedSeconds)
  }

  private func verify(
    _ token: JSONWebToken, _ purpose: SigningKeys.Purpose, issuer: String
  ) throws(TokenError) -> VerifiedToken {
    guard mode == .production else { return try VerifiedToken(unchecked: token.claims) }
    guard !token.isUnsigned else { throw .unsigned }
    guard let id = token.keyID, let key = signingKeys.key(id, for: purpose) else { throw .unknownKey }
    try token.verify(with: key.key)
    return try VerifiedToken(
      token.claims, issuer: issuer, audience: project.id, nowSeconds: nowSeconds,
      lifetimeSecondsMax: purpose.lifetimeSecondsMax)
  }
}

extension VerifiedToken {
  /// Checks the claims of a token whose signature is valid.
  init(
    _ claims: MapValue, issuer: String, audience: String, nowSeconds: Int64, lifetimeSecondsMax: Int64
  ) throws(TokenError) {
    guard let found = claims.text("iss"), found.utf8.elementsEqual(issuer.utf8) else { throw .wrongIssuer }
    guard let found = claims.text("aud"), found.utf8.elementsEqual(audience.utf8) else { throw .wrongAudience }
    guard let subject = claims.text("sub"), !subject.isEmpty, subject.utf16.count <= AccountStore.uidCharactersMax
    else {
      throw .wrongSubject
    }
    guard let expiry = claims.integer("exp"), let issued = claims.integer("iat") else {
      throw .badClaim("exp and iat must be whole numbers of seconds")
    }
    // Issuers without a sign-in send no time of it.
    let authTime = claims["auth_time"] == nil ? issued : claims.integer("auth_time")
    guard let authTime else { throw .badClaim("auth_time must be a whole number of seconds") }
    guard expiry > nowSeconds else { throw .expired }
    let latest = nowSeconds + SigningKeys.skewSeconds
    guard issued <= latest, authTime <= latest else { throw .usedTooEarly }
    if let from = claims.integer("nbf"), from > latest { throw .usedTooEarly }
    guard issued > 0, expiry - issued <= lifetimeSecondsMax else { throw .badClaim("exp is too long after iat") }
    uid = subject
    self.claims = claims
    issuedSeconds = issued
    authTimeSeconds = authTime
    expirySeconds = expiry
  }

  /// Accepts the claims of a token in emulator mode without checks.
  init(unchecked claims: MapValue) throws(TokenError) {
    guard let subject = claims.text("user_id") ?? claims.text("sub"), !subject.isEmpty,
      subject.utf16.count <= AccountStore.uidCharactersMax
    else { throw .wrongSubject }
    uid = subject
    self.claims = claims
    issuedSeconds = claims.integer("iat") ?? 0
    authTimeSeconds = claims.integer("auth_time") ?? issuedSeconds
    expirySeconds = .max
  }
}
