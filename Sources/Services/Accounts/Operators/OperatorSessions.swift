import Basics
import Synchronization

/// A session of an operator in the console, from sign-in to sign-out.
package final class OperatorSession: Sendable {
  /// The operator's name.
  package let name: String
  package let role: OperatorRole
  /// The time of sign-in, in seconds since 1970.
  package let startedSeconds: Int64
  /// The SHA-256 of the token.
  fileprivate let digest: [UInt8]
  fileprivate let usedSeconds: Atomic<Int64>
  private let isOver = Atomic(false)

  fileprivate init(_ person: Operator, digest: [UInt8], nowSeconds: Int64) {
    name = person.name
    role = person.role
    startedSeconds = nowSeconds
    self.digest = digest
    usedSeconds = Atomic(nowSeconds)
  }

  /// Whether the session was ended: by sign-out, by a change of the operator, or because it was too old.
  package var isEnded: Bool { isOver.load(ordering: .acquiring) }

  fileprivate func end() { isOver.store(true, ordering: .releasing) }
}

/// Signs operators in, and verifies the tokens of their sessions.
///
/// A session exists in memory only, so a restart of the server ends all of them. Its token is 256 random bits; the
/// server keeps the hash. Any number of threads may use an object of this class.
package final class OperatorSessions: Sendable {
  /// The prefix of every token.
  package static let tokenPrefix = "hos_"
  /// The time without a request after which a session ends, in seconds.
  package static let idleSeconds: Int64 = 1800
  /// The longest duration of a session, in seconds.
  package static let secondsMax: Int64 = 12 * 3600
  /// The sessions of one operator. A further sign-in ends the oldest one.
  package static let sessionsMax = 16
  /// The sign-ins that may wait for their password check. The server refuses further ones.
  package static let waitingMax = 32

  /// The result of a sign-in.
  package enum Outcome: Sendable {
    case signedIn(OperatorSession, token: String)
    /// The name or the password is wrong. The response does not say which.
    case refused
    /// Too many attempts have failed, for the name or from the address. `isLogged` is set once a minute, so that an
    /// attack cannot fill the log.
    case tooMany(isLogged: Bool)
  }

  private let operators: Operators
  private let passwords: Passwords
  private let throttle: SignInThrottle
  private let now: @Sendable () -> Int64
  private let sessions = Mutex<[[UInt8]: OperatorSession]>([:])
  private let revocations: TokenRevocations
  /// One thread, so that attempts take the memory of one password check.
  private let workers = BoundedWorkers("operator sign-in", threads: 1, unfinishedMax: OperatorSessions.waitingMax)

  /// Creates an object without sessions. `work` is the cost of a password check; creating the object costs one.
  /// - Throws: ``AccountError`` if there is not enough memory.
  package init(_ accounts: AccountStore, work: PasswordWork = .standard) throws(AccountError) {
    operators = accounts.operators
    now = accounts.now
    revocations = accounts.revocations
    passwords = try Passwords(work)
    throttle = SignInThrottle(now: accounts.now, places: accounts.places.operators)
    operators.observe { [weak self] name in self?.endAll(of: name) }
  }

  /// Runs `body`, which signs an operator in, on the thread for this. Returns `false` if too many sign-ins wait.
  package func submit(_ body: @escaping @Sendable () -> Void) -> Bool { workers.run(body) }

  // MARK: Sign-in

  /// Signs an operator in. `place` is the address of the client, or `nil` for this machine. Cost: a password check, also
  /// if no operator has the name; call it in ``submit(_:)``.
  ///
  /// An attempt counts before the password is checked, so attempts in parallel cannot exceed the limits.
  package func signIn(_ name: String, password: String, from place: String?) -> Outcome {
    let place = place.map(KnownPlaces.place)
    // A stranger's text can be long, and the throttle keeps it. No operator has the empty name.
    let name = Operator.isName(name) ? name : ""
    let subject = "\(name.utf8.count) \(name) \(place ?? "")"
    guard throttle.take(.place, place ?? "this machine"), throttle.take(.accountFromPlace, subject),
      // Strangers cannot lock an operator out of this machine.
      place == nil || throttle.take(.strangers, name)
    else { return .tooMany(isLogged: throttle.take(.logLine, place ?? "this machine")) }
    let person = operators.find(name)
    guard passwords.accepts(password, for: person?.passwordHash), let person,
      // The operator may have been changed or removed during the check.
      operators.find(name)?.passwordHash == person.passwordHash
    else { return .refused }
    throttle.giveBack(.place, place ?? "this machine")
    throttle.reset(.accountFromPlace, subject)
    if place != nil { throttle.giveBack(.strangers, name) }
    return begin(person)
  }

  private func begin(_ person: Operator) -> Outcome {
    let token = Self.tokenPrefix + RandomBytes.text(32)
    let session = OperatorSession(person, digest: RandomBytes.sha256(token.utf8), nowSeconds: nowSeconds)
    sessions.withLock { sessions in
      Self.removeExpired(&sessions, nowSeconds)
      let own = sessions.values.filter { $0.name == person.name }
      if own.count >= Self.sessionsMax, let oldest = own.min(by: { $0.usedSeconds.value < $1.usedSeconds.value }) {
        oldest.end()
        sessions[oldest.digest] = nil
      }
      sessions[session.digest] = session
    }
    // A change of the operator between the check and the line above has ended no session of this token.
    guard operators.find(person.name)?.passwordHash == person.passwordHash,
      operators.find(person.name)?.role == person.role
    else {
      end(session)
      return .refused
    }
    return .signedIn(session, token: token)
  }

  // MARK: Sessions

  /// Whether a bearer token has the form of a token of a session.
  package static func isToken(_ token: UnsafeRawBufferPointer) -> Bool { token.starts(with: tokenPrefix.utf8) }

  /// Returns the session of a token, and counts its use. Returns `nil` if the session has ended. Cost: a hash of a short
  /// text and a lock.
  package func session(_ token: UnsafeRawBufferPointer) -> OperatorSession? {
    guard Self.isToken(token), token.count < 128 else { return nil }
    let digest = RandomBytes.sha256(token)
    guard let session = sessions.withLock({ $0[digest] }), !session.isEnded else { return nil }
    let seconds = nowSeconds
    guard !Self.isExpired(session, seconds) else {
      end(session)
      return nil
    }
    session.usedSeconds.store(seconds, ordering: .relaxed)
    return session
  }

  /// Ends a session and the streams that it opened.
  package func end(_ session: OperatorSession) {
    session.end()
    sessions.withLock { $0[session.digest] = nil }
    revocations.note(.everyone)
  }

  /// The time at which a session ends although it is in use, in seconds since 1970.
  package static func endSeconds(of session: OperatorSession) -> Int64 { session.startedSeconds + secondsMax }

  /// Whether a session has ended, also by its age or because it was not used. An open stream does not count as use.
  package func isOver(_ session: OperatorSession) -> Bool { session.isEnded || Self.isExpired(session, nowSeconds) }

  private var nowSeconds: Int64 { now() / 1_000_000 }

  private func endAll(of name: String) {
    let ended = sessions.withLock { sessions -> Bool in
      let own = sessions.values.filter { $0.name == name }
      for session in own {
        session.end()
        sessions[session.digest] = nil
      }
      return !own.isEmpty
    }
    if ended { revocations.note(.everyone) }
  }

  private static func isExpired(_ session: OperatorSession, _ seconds: Int64) -> Bool {
    seconds - session.startedSeconds >= secondsMax || seconds - session.usedSeconds.value >= idleSeconds
  }

  private static func removeExpired(_ sessions: inout [[UInt8]: OperatorSession], _ seconds: Int64) {
    for session in sessions.values where isExpired(session, seconds) {
      session.end()
      sessions[session.digest] = nil
    }
  }
}

extension Atomic where Value == Int64 {
  fileprivate var value: Int64 { load(ordering: .relaxed) }
}
