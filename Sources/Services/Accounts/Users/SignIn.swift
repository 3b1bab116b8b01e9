package import DocumentModel

/// The result of a sign-in: the user, and the tokens of the session.
package struct SignInOutcome: Sendable {
  /// The stored user after the sign-in.
  package var user: User
  package var idToken: String
  package var refreshToken: String
  /// Whether the sign-in has created the account.
  package var isNew = false
}

extension AccountStore {
  /// Signs a user in: changes the record, stores the time, and begins a session, in one transaction.
  ///
  /// Cost: a durable write and a signature.
  /// - Parameters:
  ///   - provider: the provider's name in tokens, such as `password`.
  ///   - find: finds or creates the user in the transaction, and returns the ID.
  ///   - change: makes further changes. If it throws, nothing is changed.
  /// - Throws: ``AccountError`` `USER_DISABLED` or `USER_NOT_FOUND`; the errors of `find` and `change`;
  ///   ``TokenError`` if the ID token cannot be issued.
  package func signIn(
    provider: String, sessionClaims: MapValue = MapValue(), find: (UserTransaction) throws -> String,
    change: (inout User) throws -> Void = { _ in }
  ) throws -> SignInOutcome {
    // Without a key, for example on a full disk, the sign-in must not store anything either.
    try requireSigningKey()
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

  /// Continues a session: returns a new ID token for a refresh token, which stays valid.
  /// - Throws: ``AccountError`` `INVALID_REFRESH_TOKEN`, `USER_NOT_FOUND`, `USER_DISABLED` or `TOKEN_EXPIRED`;
  ///   ``TokenError`` if the ID token cannot be issued.
  package func refresh(_ token: String) throws -> SignInOutcome {
    guard let session = try refreshTokens.session(of: token.utf8) else { throw AccountError(.invalidRefreshToken) }
    guard var user = try users.user(session.uid) else { throw AccountError(.userNotFound) }
    guard !user.isDisabled else { throw AccountError(.userDisabled) }
    guard session.issuedSeconds >= user.validSince, session.generation == user.sessionGeneration else {
      throw AccountError(.tokenExpired)
    }
    let now = nowMilliseconds
    // Each update is a write to disk, and once a minute is precise enough.
    if now - (user.lastRefreshAt ?? 0) > 60_000 {
      user = try users.update(session.uid) { $0.lastRefreshAt = now }
    }
    var signedIn = SignedInUser(user, provider: session.provider, authTimeSeconds: session.authTimeSeconds)
    signedIn.sessionClaims = session.sessionClaims
    signedIn.tenant = session.tenant
    if let kind = session.secondFactorKind, let id = session.secondFactorID { signedIn.secondFactor = (kind, id) }
    return SignInOutcome(user: user, idToken: try mintIDToken(for: signedIn), refreshToken: token)
  }

  /// Removes users. Returns the IDs of those that existed. Their refresh tokens remain, so a refresh reports that
  /// the user is gone: clients sign out on that response only.
  /// - Throws: ``StorageError`` if the write fails.
  package func remove(_ uids: [String]) throws -> [String] {
    let now = nowMilliseconds
    return try users.write { transaction in
      try uids.filter { try transaction.remove($0, now: now) != nil }
    }
  }

  /// Returns the user of an ID token, and the verified token.
  /// - Throws: ``AccountError`` `INVALID_ID_TOKEN`, `USER_NOT_FOUND` or `USER_DISABLED`; `TOKEN_EXPIRED` if the
  ///   token was revoked.
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

  /// The current time, in milliseconds since 1970.
  package var nowMilliseconds: Int64 { now() / 1000 }
}

extension SignedInUser {
  /// Creates the signed-in user from a stored user.
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
