package import DocumentModel

/// A token that was checked: who holds it, and what it claims.
package struct VerifiedToken: Sendable {
  /// Whom it names.
  package let uid: String
  /// All its claims.
  package let claims: MapValue
  /// When it was issued, in seconds since 1970.
  package let issuedSeconds: Int64
  /// When its user signed in, in seconds since 1970.
  package let authTimeSeconds: Int64
  /// From when on it counts no more, in seconds since 1970; in emulator mode time does not end tokens.
  package let expirySeconds: Int64

  /// How the user signed in, such as `password`.
  package var provider: String? { claims.map("firebase")?.text("sign_in_provider") }
}

// Checks tokens by the rules of auth-api.md, section 8.
extension AccountStore {
  /// The longest uid, in characters.
  package static let uidCharactersMax = 128

  /// Checks an ID token of this project: its signature, time, issuer and audience. Emulator mode only reads it.
  ///
  /// What stands against its user is not looked at: see ``check(_:)``. Cost: a signature check, some twenty microseconds.
  /// - Throws: ``TokenError``.
  package func verifyIDToken(_ text: UnsafeRawBufferPointer) throws(TokenError) -> VerifiedToken {
    try verifyIDToken(try JSONWebToken(text))
  }

  func verifyIDToken(_ token: JSONWebToken) throws(TokenError) -> VerifiedToken {
    try verify(token, .idToken, issuer: project.issuer)
  }

  /// Checks a session cookie of this project; see ``verifyIDToken(_:)``.
  /// - Throws: ``TokenError``.
  package func verifySessionCookie(_ text: UnsafeRawBufferPointer) throws(TokenError) -> VerifiedToken {
    try verify(try JSONWebToken(text), .sessionCookie, issuer: project.sessionIssuer)
  }

  /// Checks what stands against the user of a token. Cost: a point read.
  /// - Throws: ``TokenError/userDeleted``, ``TokenError/userDisabled``, ``TokenError/revoked``, ``TokenError/storage(_:)``.
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
  /// Checks the claims of a token whose signature is good.
  init(
    _ claims: MapValue, issuer: String, audience: String, nowSeconds: Int64, lifetimeSecondsMax: Int64
  ) throws(TokenError) {
    guard let found = claims.text("iss"), found.utf8.elementsEqual(issuer.utf8) else { throw .wrongIssuer }
    guard let found = claims.text("aud"), found.utf8.elementsEqual(audience.utf8) else { throw .wrongAudience }
    guard let subject = claims.text("sub"), !subject.isEmpty, subject.utf16.count <= AccountStore.uidCharactersMax else {
      throw .wrongSubject
    }
    guard let expiry = claims.integer("exp"), let issued = claims.integer("iat") else {
      throw .badClaim("exp and iat must be whole numbers of seconds")
    }
    // Issuers that have no sign-in have no time of it either.
    let authTime = claims["auth_time"] == nil ? issued : claims.integer("auth_time")
    guard let authTime else { throw .badClaim("auth_time must be a whole number of seconds") }
    guard expiry > nowSeconds else { throw .expired }
    let latest = nowSeconds + SigningKeys.skewSeconds
    guard issued <= latest, authTime <= latest else { throw .usedTooEarly }
    if let from = claims.integer("nbf"), from > latest { throw .usedTooEarly }
    guard issued > 0, expiry - issued <= lifetimeSecondsMax else { throw .badClaim("exp is too far behind iat") }
    uid = subject
    self.claims = claims
    issuedSeconds = issued
    authTimeSeconds = authTime
    expirySeconds = expiry
  }

  /// Takes the claims of a token of emulator mode as they are.
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
