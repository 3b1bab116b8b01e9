import Foundation

/// Sign-in for users: anonymously, with email and password, with a token of Google, Apple or another OpenID provider,
/// or with a custom token that a server of the app created.
///
///     try await hearth.auth.signInAnonymously()
///     …
///     try await hearth.auth.link(email: "ann@example.com", password: "correct horse")   // the same uid
///
/// An ID token is valid for an hour; the client refreshes it before it expires. If the server has ended the
/// session, because the password changed or the account was disabled, the client signs the user out, and the
/// request that detects this throws ``HearthClientError/Code/unauthenticated``.
public final class Authentication: Sendable {
  /// A running request for a new ID token, and the session that it renews.
  private struct Renewal {
    let id: UUID
    let session: Session
    let task: Task<Session, any Error>
  }

  private struct State {
    var session: Session?
    var renewal: Renewal?
    var observers: [UUID: AsyncStream<Session?>.Continuation] = [:]
  }

  /// An ID token is renewed if it expires within this time.
  private static let renewalSeconds = 300.0
  /// The reasons with which the server ends a session. Any other failure may come from a proxy.
  private static let endReasons: Set<HearthClientError.Reason> = [
    .tokenExpired, .userDisabled, .userNotFound, .init(rawValue: "INVALID_REFRESH_TOKEN"),
  ]

  /// The page to which a provider would redirect a browser. The API requires one.
  private static let requestURI = "http://localhost"

  private let transport: any HearthTransport
  private let apiKey: String
  private let now: @Sendable () -> Date
  private let state = Locked(State())

  init(transport: any HearthTransport, apiKey: String, now: @escaping @Sendable () -> Date) {
    (self.transport, self.apiKey, self.now) = (transport, apiKey, now)
  }

  /// The signed-in user, or `nil`.
  public var currentUser: User? { session?.user }

  /// The tokens of the signed-in user, or `nil`. Store them to keep the user signed in.
  public var session: Session? { state.withLock { $0.session } }

  /// Returns the current session and each later one, as an asynchronous sequence. Use it to store the session.
  public func sessions() -> AsyncStream<Session?> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { sessions in
      let id = UUID()
      state.withLock { state in
        state.observers[id] = sessions
        sessions.yield(state.session)
      }
      sessions.onTermination = { [weak self] _ in self?.state.withLock { $0.observers[id] = nil } }
    }
  }

  /// Signs in with a stored session. Sends no request.
  public func restore(_ session: Session) { adopt(session) }

  /// Signs the user out on this client only.
  public func signOut() { adopt(nil) }

  // MARK: - Sign-in

  /// Signs in as a new anonymous user (a guest). If the current user is anonymous, returns that user.
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func signInAnonymously() async throws -> User {
    if let user = currentUser, user.isAnonymous { return user }
    return try await signIn("signUp", [:])
  }

  /// Creates an account and signs in.
  /// - Throws: ``HearthClientError`` if the request fails. Its ``HearthClientError/reason`` is, for example,
  ///   ``HearthClientError/Reason/emailExists`` or ``HearthClientError/Reason/weakPassword``.
  @discardableResult
  public func signUp(email: String, password: String) async throws -> User {
    try await signIn("signUp", ["email": .string(email), "password": .string(password)])
  }

  /// Signs in with email and password.
  /// - Throws: ``HearthClientError`` if the request fails. Its ``HearthClientError/reason`` is, for example,
  ///   ``HearthClientError/Reason/invalidLoginCredentials``.
  @discardableResult
  public func signIn(email: String, password: String) async throws -> User {
    try await signIn("signInWithPassword", ["email": .string(email), "password": .string(password)])
  }

  /// Signs in with a custom token, which a server of the app created with the key of a service account.
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func signIn(customToken token: String) async throws -> User {
    try await signIn("signInWithCustomToken", ["token": .string(token)])
  }

  /// Adds an email address and a password to the account of the signed-in user. An anonymous user becomes a
  /// permanent one and keeps the user ID.
  /// - Throws: ``HearthClientError`` if no user is signed in or the request fails. Its ``HearthClientError/reason``
  ///   is, for example, ``HearthClientError/Reason/emailExists``.
  @discardableResult
  public func link(email: String, password: String) async throws -> User {
    let token = try await requireToken()
    return try await signIn(
      "signUp", ["idToken": .string(token), "email": .string(email), "password": .string(password)])
  }

  /// Signs in with a token of Google, Apple or another OpenID provider. The first sign-in creates the account. If an
  /// account has the email address that the provider verified, the user signs in to this account.
  ///
  ///     try await hearth.auth.signIn(with: .apple(idToken: idToken, nonce: nonce))
  /// - Throws: ``HearthClientError`` if the request fails. Its ``HearthClientError/reason`` is, for example,
  ///   ``HearthClientError/Reason/invalidIdentity`` or ``HearthClientError/Reason/needsConfirmation``.
  @discardableResult
  public func signIn(with credential: IdentityCredential) async throws -> User {
    try await signIn(
      "signInWithIdp", ["requestUri": .string(Self.requestURI), "postBody": .string(credential.postBody)])
  }

  /// Adds an identity of Google, Apple or another OpenID provider to the account of the signed-in user. An anonymous
  /// user becomes a permanent one and keeps the user ID.
  /// - Throws: ``HearthClientError`` if no user is signed in or the request fails. Its ``HearthClientError/reason``
  ///   is, for example, ``HearthClientError/Reason/identityAlreadyLinked``.
  @discardableResult
  public func link(with credential: IdentityCredential) async throws -> User {
    let token = try await requireToken()
    return try await signIn(
      "signInWithIdp",
      [
        "idToken": .string(token), "requestUri": .string(Self.requestURI), "postBody": .string(credential.postBody),
      ])
  }

  /// Removes a way to sign in from the account of the signed-in user, and renews the ID token.
  /// - Parameter providerID: a provider such as `google.com`, or `password`, which also removes the email address.
  /// - Throws: ``HearthClientError`` if no user is signed in or the request fails. Its ``HearthClientError/reason``
  ///   is, for example, ``HearthClientError/Reason/credentialTooOld``.
  @discardableResult
  public func unlink(_ providerID: String) async throws -> User {
    let token = try await requireToken()
    _ = try await post(
      "/v1/accounts:update", ["idToken": .string(token), "deleteProvider": .array([.string(providerID)])])
    _ = try await self.token(forcingRefresh: true)
    guard let user = currentUser else { throw HearthClientError(.unauthenticated, "No user is signed in.") }
    return user
  }

  /// Asks the server to mail a link with which the user can choose a new password.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func sendPasswordReset(email: String) async throws {
    _ = try await post("/v1/accounts:sendOobCode", ["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
  }

  /// Deletes the account of the signed-in user, and signs out.
  /// - Throws: ``HearthClientError`` if no user is signed in or the request fails.
  public func deleteUser() async throws {
    _ = try await post("/v1/accounts:delete", ["idToken": .string(try await requireToken())])
    signOut()
  }

  private func signIn(_ call: String, _ body: KeyValuePairs<String, JSON?>) async throws -> User {
    let response = try await post("/v1/accounts:\(call)", body, ["returnSecureToken": .boolean(true)])
    if response["needConfirmation"]?.flag == true {
      throw HearthClientError(
        .alreadyExists, "\(HearthClientError.Reason.needsConfirmation) : Another account has this email address.")
    }
    guard let session = session(response["idToken"], response["refreshToken"], response["expiresIn"]),
      let user = session.user
    else { throw HearthClientError.unreadable("the sign-in response contains no tokens") }
    adopt(session)
    return user
  }

  private func requireToken() async throws -> String {
    guard let token = try await token() else {
      throw HearthClientError(.unauthenticated, "No user is signed in.")
    }
    return token
  }

  // MARK: - Tokens

  /// Returns the ID token of the signed-in user, or `nil` if no user is signed in. Refreshes a token that expires soon.
  /// - Parameter forcingRefresh: whether to get a new token even if the current one is valid, for example to read
  ///   changed claims.
  /// - Throws: ``HearthClientError`` if a refresh fails. If the current token is still valid, a failed refresh is
  ///   ignored unless `forcingRefresh` is set or the server ended the session.
  public func token(forcingRefresh: Bool = false) async throws -> String? {
    let found = state.withLock { state -> (session: Session, renewal: Task<Session, any Error>?)? in
      guard let session = state.session else { return nil }
      let isLasting = session.expiresAt.timeIntervalSince(now()) > Self.renewalSeconds
      if isLasting, !forcingRefresh { return (session, nil) }
      // Requests that need a token during a renewal wait for the same one.
      if let renewal = state.renewal, renewal.session == session { return (session, renewal.task) }
      let id = UUID()
      let task = Task { try await self.renew(session, id) }
      state.renewal = Renewal(id: id, session: session, task: task)
      return (session, task)
    }
    guard let (session, renewal) = found else { return nil }
    guard let renewal else { return session.idToken }
    do {
      return try await renewal.value.idToken
    } catch let error as HearthClientError where error.code != .unauthenticated && !forcingRefresh {
      guard session.expiresAt > now() else { throw error }
      // Without a new token, the old one is usable until it expires.
      return session.idToken
    }
  }

  private func renew(_ session: Session, _ id: UUID) async throws -> Session {
    defer { state.withLock { state in if state.renewal?.id == id { state.renewal = nil } } }
    do {
      let response = try await post(
        "/v1/token", ["grant_type": .string("refresh_token"), "refresh_token": .string(session.refreshToken)])
      guard let renewed = self.session(response["id_token"], response["refresh_token"], response["expires_in"]) else {
        throw HearthClientError.unreadable("the token response contains no tokens")
      }
      adopt(renewed, instead: session)
      return renewed
    } catch let error as HearthClientError where error.reason.map(Self.endReasons.contains) ?? false {
      // The server ended the session.
      adopt(nil, instead: session)
      throw HearthClientError(.unauthenticated, error.message)
    }
  }

  private func session(_ idToken: JSON?, _ refreshToken: JSON?, _ expiresIn: JSON?) -> Session? {
    guard let idToken = idToken?.text, let refreshToken = refreshToken?.text else { return nil }
    let seconds = Double(expiresIn?.integer ?? 3600)
    return Session(idToken: idToken, refreshToken: refreshToken, expiresAt: now().addingTimeInterval(seconds))
  }

  /// Sets the session, unless another session has replaced `previous` meanwhile.
  private func adopt(_ session: Session?, instead previous: Session? = nil) {
    state.withLock { state in
      if let previous, state.session != previous { return }
      if state.session != session { state.renewal = nil }
      state.session = session
      for observer in state.observers.values { observer.yield(session) }
    }
  }

  private func post(
    _ path: String, _ body: KeyValuePairs<String, JSON?>, _ more: KeyValuePairs<String, JSON?> = [:]
  ) async throws -> JSON {
    let body = JSON.object(JSON.of(body).members + JSON.of(more).members)
    let response = try await transport.send(
      HearthRequest(
        "POST", "\(path)?key=\(apiKey.percentEncoded)", headers: ["Content-Type": "application/json"], body: body.data))
    guard response.status < 400 else { throw HearthClientError(status: response.status, body: response.body) }
    return try JSON(parsing: response.body)
  }
}
