package import DocumentModel

/// Who has just signed in, and the tokens to go on with.
package struct SignInOutcome: Sendable {
  /// The user as stored now.
  package var user: User
  /// The ID token.
  package var idToken: String
  /// The refresh token.
  package var refreshToken: String
}

extension AccountStore {
  /// Signs a user in: changes the record, notes the time, and begins a session, all in one transaction.
  ///
  /// Cost: a durable write and a signature.
  /// - Parameters:
  ///   - provider: as tokens name it, such as `password`.
  ///   - find: finds or makes the user inside the transaction, and returns the id.
  ///   - change: what else changes; may give up by throwing.
  /// - Throws: `USER_DISABLED`, `USER_NOT_FOUND`, and what `find` and `change` throw; ``TokenError``.
  package func signIn(
    provider: String, sessionClaims: MapValue = MapValue(), find: (UserTransaction) throws -> String,
    change: (inout User) throws -> Void = { _ in }
  ) throws -> SignInOutcome {
    let now = nowMilliseconds
    var refreshToken = ""
    let (user, signedIn) = try users.write { transaction in
      let user = try transaction.update(try find(transaction)) { user in
        guard !user.isDisabled else { throw AccountError(.userDisabled) }
        try change(&user)
        user.lastLoginAt = now
        user.lastRefreshAt = now
      }
      var signedIn = SignedInUser(user, provider: provider, authTimeSeconds: now / 1000)
      signedIn.sessionClaims = sessionClaims
      var session = RefreshSession(of: signedIn, issuedSeconds: now / 1000)
      session.generation = user.sessionGeneration
      refreshToken = try refreshTokens.create(session, in: transaction.transaction)
      return (user, signedIn)
    }
    return SignInOutcome(user: user, idToken: try mintIDToken(for: signedIn), refreshToken: refreshToken)
  }

  /// Goes on with a session: a new ID token for a refresh token, which stays good.
  /// - Throws: `INVALID_REFRESH_TOKEN`, `USER_NOT_FOUND`, `USER_DISABLED`, `TOKEN_EXPIRED`; ``TokenError``.
  package func refresh(_ token: String) throws -> SignInOutcome {
    guard let session = try refreshTokens.session(of: token.utf8) else { throw AccountError(.invalidRefreshToken) }
    guard var user = try users.user(session.uid) else { throw AccountError(.userNotFound) }
    guard !user.isDisabled else { throw AccountError(.userDisabled) }
    guard session.issuedSeconds >= user.validSince, session.generation == user.sessionGeneration else {
      throw AccountError(.tokenExpired)
    }
    let now = nowMilliseconds
    // Once a minute is often enough to know who is about; each time is a write to disk.
    if now - (user.lastRefreshAt ?? 0) > 60_000 {
      user = try users.update(session.uid) { $0.lastRefreshAt = now }
    }
    var signedIn = SignedInUser(user, provider: session.provider, authTimeSeconds: session.authTimeSeconds)
    signedIn.sessionClaims = session.sessionClaims
    signedIn.tenant = session.tenant
    if let kind = session.secondFactorKind, let id = session.secondFactorID { signedIn.secondFactor = (kind, id) }
    return SignInOutcome(user: user, idToken: try mintIDToken(for: signedIn), refreshToken: token)
  }

  /// Removes users; returns who were there. Their refresh tokens stay, to say that the user is gone: clients sign out on
  /// that answer, and on no other.
  package func remove(_ uids: [String]) throws -> [String] {
    let now = nowMilliseconds
    return try users.write { transaction in
      try uids.filter { try transaction.remove($0, now: now) != nil }
    }
  }

  /// The user whose ID token this is.
  /// - Throws: `INVALID_ID_TOKEN`, `USER_NOT_FOUND`, `USER_DISABLED`, `TOKEN_EXPIRED` where the token was revoked.
  package func owner(ofIDToken text: String) throws -> (user: User, token: VerifiedToken) {
    var text = text
    let token: VerifiedToken
    do {
      token = try text.withUTF8 { text in
        Result { () throws(TokenError) in try verifyIDToken(UnsafeRawBufferPointer(text)) }
      }.get()
    } catch TokenError.storage(let error) {
      throw error
    } catch {
      throw AccountError(.invalidIDToken)
    }
    guard let user = try users.user(token.uid) else { throw AccountError(.userNotFound) }
    guard !user.isDisabled else { throw AccountError(.userDisabled) }
    guard token.issuedSeconds >= user.validSince else { throw AccountError(.tokenExpired) }
    return (user, token)
  }

  /// Milliseconds since 1970.
  package var nowMilliseconds: Int64 { now() / 1000 }
}

extension SignedInUser {
  /// What tokens tell of a user.
  package init(_ user: User, provider: String, authTimeSeconds: Int64) {
    self.init(uid: user.uid, provider: provider, authTimeSeconds: authTimeSeconds)
    email = user.email
    isEmailVerified = user.isEmailVerified
    phoneNumber = user.phoneNumber
    displayName = user.displayName
    photoURL = user.photoURL
    identities = user.providers.map { ($0.providerID, [$0.rawID]) }
    customClaims = user.customAttributes.flatMap { MapValue(json: Array($0.utf8)) } ?? MapValue()
  }
}
