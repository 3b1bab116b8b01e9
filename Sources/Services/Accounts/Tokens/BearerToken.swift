/// The identity that a bearer token proves.
package enum Bearer: Sendable {
  /// An admin: a program with a service key, or a local process that can read the data directory. Valid until the
  /// given time, in seconds since 1970.
  case admin(expirySeconds: Int64)
  /// A user.
  case user(VerifiedToken)
}

extension AccountStore {
  /// Verifies a bearer token in production: an access token, a JWT of a service key, an ID token, or a token of a
  /// trusted issuer. Also checks the state of the user.
  ///
  /// The kind of token only decides which key must have signed it. All other checks follow.
  /// - Throws: ``TokenError`` if the token is not valid or the store fails.
  package func verifyBearer(_ text: UnsafeRawBufferPointer) throws(TokenError) -> Bearer {
    if ServiceKeys.isAccessToken(text) { return try serviceKeys.verifyAccessToken(text) }
    let token = try JSONWebToken(text)
    guard !token.isUnsigned else { throw .unsigned }
    guard let id = token.keyID else { throw .unknownKey }
    if serviceKeys.key(id) != nil { return try serviceKeys.verifySelfSigned(token) }
    let verified =
      if signingKeys.key(id, for: .idToken) != nil {
        try verifyIDToken(token)
      } else {
        try trustedIssuers.verify(token, nowSeconds: nowSeconds)
      }
    try check(verified)
    return .user(verified)
  }

  /// Checks the user, or the service key, of an expired token that was verified before. Cost: one point read.
  /// - Throws: ``TokenError`` as ``check(_:)``; ``TokenError/malformed`` if the text is not a token.
  package func checkHolder(ofExpired text: UnsafeRawBufferPointer) throws(TokenError) {
    // Verification looks up a service key before it checks the expiry.
    if ServiceKeys.isAccessToken(text) { return }
    let token = try JSONWebToken(text)
    if let id = token.keyID, serviceKeys.key(id) != nil { return }
    let claims = token.claims
    guard let uid = claims.text("sub"), let issuedSeconds = claims.integer("iat") else { throw .malformed }
    let state: UserState
    do { state = try userStates.state(of: uid) } catch { throw .storage(error) }
    try state.check(issuedSeconds: issuedSeconds)
  }

  /// A counter of all changes that may invalidate a token before it expires. A verification result holds while the
  /// number stays the same.
  package var changes: UInt64 { revocations.count }
}
