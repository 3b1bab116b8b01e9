import Foundation
import Synchronization

/// Sign-in for people: as guests, with e-mail and password, or with a token that a server of the app made.
///
///     try await hearth.auth.signInAnonymously()
///     …
///     try await hearth.auth.link(email: "ann@example.com", password: "correct horse")   // the same uid
///
/// ID tokens last an hour and are renewed by themselves before they end. A session that the server ended (the password
/// changed, the account was disabled) signs out, and the call that finds out throws
/// ``HearthClientError/Code/unauthenticated``.
public final class Authentication: Sendable {
  /// A new ID token on its way, for the session that has the old one.
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

  /// An ID token is renewed when it lasts no longer than this.
  private static let renewalSeconds = 300.0
  /// With these words the server ends a session. Any other failure may be one of the way there.
  private static let reasonsOfEnd: Set = ["TOKEN_EXPIRED", "USER_DISABLED", "USER_NOT_FOUND", "INVALID_REFRESH_TOKEN"]

  private let transport: any HearthTransport
  private let apiKey: String
  private let now: @Sendable () -> Date
  private let state = Mutex(State())

  init(transport: any HearthTransport, apiKey: String, now: @escaping @Sendable () -> Date) {
    (self.transport, self.apiKey, self.now) = (transport, apiKey, now)
  }

  /// Who is signed in.
  public var currentUser: User? { session?.user }

  /// What keeps the user signed in, to be stored.
  public var session: Session? { state.withLock { $0.session } }

  /// The session now, and again whenever it changes: the place to store it.
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

  /// Signs in with a session that was stored. Nothing is sent before it is needed.
  public func restore(_ session: Session) { adopt(session) }

  /// Signs out, on this client only.
  public func signOut() { adopt(nil) }

  // MARK: - Sign-in

  /// Signs in as a new guest. Who is a guest already stays the one he is.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func signInAnonymously() async throws -> User {
    if let user = currentUser, user.isAnonymous { return user }
    return try await signIn("signUp", [:])
  }

  /// Makes an account and signs in with it.
  /// - Throws: ``HearthClientError`` with the ``HearthClientError/reason`` `EMAIL_EXISTS` or `WEAK_PASSWORD`, for one.
  @discardableResult
  public func signUp(email: String, password: String) async throws -> User {
    try await signIn("signUp", ["email": .string(email), "password": .string(password)])
  }

  /// Signs in with e-mail and password.
  /// - Throws: ``HearthClientError`` with a ``HearthClientError/reason`` such as `INVALID_LOGIN_CREDENTIALS`.
  @discardableResult
  public func signIn(email: String, password: String) async throws -> User {
    try await signIn("signInWithPassword", ["email": .string(email), "password": .string(password)])
  }

  /// Signs in with a token that a server of the app made with a service account's key.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func signIn(customToken token: String) async throws -> User {
    try await signIn("signInWithCustomToken", ["token": .string(token)])
  }

  /// Gives who is signed in an e-mail address and a password: a guest becomes a member, and keeps the uid.
  /// - Throws: ``HearthClientError`` with the ``HearthClientError/reason`` `EMAIL_EXISTS`, for one.
  @discardableResult
  public func link(email: String, password: String) async throws -> User {
    let token = try await requireToken()
    return try await signIn(
      "signUp", ["idToken": .string(token), "email": .string(email), "password": .string(password)])
  }

  /// Has the server mail a link by which a new password can be chosen.
  /// - Throws: as ``Hearth`` says.
  public func sendPasswordReset(email: String) async throws {
    _ = try await post("/v1/accounts:sendOobCode", ["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
  }

  /// Deletes the account of who is signed in, and signs out.
  /// - Throws: as ``Hearth`` says.
  public func deleteUser() async throws {
    _ = try await post("/v1/accounts:delete", ["idToken": .string(try await requireToken())])
    signOut()
  }

  private func signIn(_ call: String, _ body: KeyValuePairs<String, JSON?>) async throws -> User {
    let answer = try await post("/v1/accounts:\(call)", body, ["returnSecureToken": .boolean(true)])
    guard let session = session(answer["idToken"], answer["refreshToken"], answer["expiresIn"]), let user = session.user
    else { throw HearthClientError.unreadable("a sign-in without tokens") }
    adopt(session)
    return user
  }

  private func requireToken() async throws -> String {
    guard let token = try await token() else {
      throw HearthClientError(.unauthenticated, "Nobody is signed in.")
    }
    return token
  }

  // MARK: - Tokens

  /// The ID token of who is signed in, renewed where it ends soon; `nil` where nobody is.
  /// - Parameter forcingRefresh: gets a new one in any case, with the claims of now.
  /// - Throws: as ``Hearth`` says.
  public func token(forcingRefresh: Bool = false) async throws -> String? {
    let found = state.withLock { state -> (session: Session, renewal: Task<Session, any Error>?)? in
      guard let session = state.session else { return nil }
      let isLasting = session.expiresAt.timeIntervalSince(now()) > Self.renewalSeconds
      if isLasting, !forcingRefresh { return (session, nil) }
      // Whoever asks while it is being renewed waits for the same token.
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
      // Without a new one the token still serves to its end.
      return session.idToken
    }
  }

  private func renew(_ session: Session, _ id: UUID) async throws -> Session {
    defer { state.withLock { state in if state.renewal?.id == id { state.renewal = nil } } }
    do {
      let answer = try await post(
        "/v1/token", ["grant_type": .string("refresh_token"), "refresh_token": .string(session.refreshToken)])
      guard let renewed = self.session(answer["id_token"], answer["refresh_token"], answer["expires_in"]) else {
        throw HearthClientError.unreadable("a renewal without tokens")
      }
      adopt(renewed, instead: session)
      return renewed
    } catch let error as HearthClientError where error.reason.map(Self.reasonsOfEnd.contains) ?? false {
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

  /// Takes a session, unless another one came in place of the one it follows.
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
