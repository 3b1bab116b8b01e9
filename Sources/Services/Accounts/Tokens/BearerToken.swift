/// Who holds a bearer token.
package enum Bearer: Sendable {
  /// A program that proved itself with a key, or who can read the data directory: an admin, until then in seconds since
  /// 1970.
  case admin(expirySeconds: Int64)
  /// A user.
  case user(VerifiedToken)
}

extension AccountStore {
  /// Tells who holds a bearer token, in production: an access token, a JWT of a service key, an ID token, or a token of a
  /// trusted issuer. A user's state is looked at too.
  ///
  /// Which of them it is only decides which key must have signed it; everything else is checked after that.
  /// - Throws: ``TokenError``.
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

  /// Checks what stands against the user of a token that was found good once and whose time is over. Cost: a point read.
  /// - Throws: as ``check(_:)``; ``TokenError/malformed`` for what was never good.
  package func checkUser(ofExpired text: UnsafeRawBufferPointer) throws(TokenError) {
    let claims = try JSONWebToken(text).claims
    guard let uid = claims.text("sub"), let issuedSeconds = claims.integer("iat") else { throw .malformed }
    let state: UserState
    do { state = try userStates.state(of: uid) } catch { throw .storage(error) }
    try state.check(issuedSeconds: issuedSeconds)
  }

  /// Grows with everything that may end a token before its time: what was found at the same number still holds.
  package var changes: UInt64 {
    userStates.changes &+ serviceKeys.changes &+ signingKeys.changes &+ trustedIssuers.changes
  }
}
