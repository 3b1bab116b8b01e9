import Dispatch
import DocumentModel
import KeyValue
import Synchronization
import Testing
import TestSupport

@testable import Accounts

/// Operators of the console: their store, their sessions, and the limits of sign-in.
@Suite struct OperatorTests {
  private static let password = "correct horse battery"

  private static func sessions(_ test: TestAccounts) throws -> OperatorSessions {
    try OperatorSessions(test.accounts, work: .least)
  }

  private static func add(_ name: String, _ role: OperatorRole = .viewer, to test: TestAccounts) throws {
    try test.accounts.operators.add(name, role: role, password: password, work: .least)
  }

  private static func token(_ outcome: OperatorSessions.Outcome) throws -> [UInt8] {
    guard case .signedIn(_, let token) = outcome else { throw Unexpected() }
    return Array(token.utf8)
  }

  private struct Unexpected: Error {}

  private static func word(_ outcome: OperatorSessions.Outcome) -> String {
    switch outcome {
    case .signedIn: "signed in"
    case .refused: "refused"
    case .tooMany: "too many"
    }
  }

  // MARK: Store

  @Test func operatorsSurviveARestart() throws {
    let test = try TestAccounts()
    try Self.add("bob", to: test)
    try Self.add("ann", .owner, to: test)
    try test.accounts.operators.setRole(.editor, of: "bob")
    let again = try test.reopened()
    #expect(again.accounts.operators.all.map { "\($0.name) \($0.role)" } == ["ann owner", "bob editor"])
    #expect(Self.word(try Self.sessions(again).signIn("ann", password: Self.password, from: nil)) == "signed in")
    try again.accounts.operators.remove("ann")
    #expect(try again.reopened().accounts.operators.all.map(\.name) == ["bob"])
    // Operators are not users.
    #expect(try again.accounts.users.users(after: nil, limit: 10).isEmpty)
  }

  @Test(arguments: ["", "Ann", "1ann", "ann lee", "ann\n", "änn", "../ann", String(repeating: "a", count: 65)])
  func namesWithOtherCharactersAreRefused(name: String) throws {
    let test = try TestAccounts()
    #expect(throws: OperatorError.self) { try Self.add(name, to: test) }
    #expect(test.accounts.operators.all.isEmpty)
  }

  @Test(arguments: ["short", "aaaaaaaaaaaa", "ann-is-great", String(repeating: "abcdefgh", count: 600)])
  func passwordsThatAreEasyOrTooLongAreRefused(password: String) throws {
    let test = try TestAccounts()
    #expect(throws: OperatorError.self) {
      try test.accounts.operators.add("ann", role: .viewer, password: password, work: .least)
    }
  }

  /// A random password of 24 characters has a given letter in it more often than not.
  @Test(arguments: [("a", "aXqAw7-KtR9_bZ"), ("ann", "Q4ann8xK_w2Lp")])
  func aPasswordThatIsLongEnoughWithoutTheNameMayContainIt(name: String, password: String) throws {
    let test = try TestAccounts()
    try test.accounts.operators.add(name, role: .viewer, password: password, work: .least)
    #expect(test.accounts.operators.find(name) != nil)
  }

  @Test func unknownAndDoubleNamesAreRefused() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    #expect(throws: OperatorError.refused("an operator named ann already exists")) { try Self.add("ann", to: test) }
    #expect(throws: OperatorError.unknown("bob")) { try test.accounts.operators.remove("bob") }
    #expect(throws: OperatorError.unknown("bob")) { try test.accounts.operators.setRole(.owner, of: "bob") }
  }

  /// Runs bodies at the same time, and returns whether each succeeded.
  private static func parallel(_ bodies: [@Sendable () throws -> Void]) -> [Bool] {
    let ready = Atomic(0)
    let results = Mutex([Bool](repeating: false, count: bodies.count))
    DispatchQueue.concurrentPerform(iterations: bodies.count) { index in
      ready.add(1, ordering: .sequentiallyConsistent)
      // Begin together if there are enough threads.
      var spins = 0
      while ready.load(ordering: .sequentiallyConsistent) < bodies.count, spins < 100_000 { spins += 1 }
      let isDone = (try? bodies[index]()) != nil
      results.withLock { $0[index] = isDone }
    }
    return results.withLock { $0 }
  }

  @Test func noChangeIsLostByAnotherOne() throws {
    let test = try TestAccounts()
    let operators = test.accounts.operators
    // The hash takes so long that the other change is stored first.
    let work = PasswordWork(passes: 2, memoryBytes: 4 << 20)
    for round in 0..<20 {
      let name = "bob\(round)"
      try Self.add(name, .owner, to: test)
      let demoted = Self.parallel([
        { try operators.setPassword("another battery", of: name, work: work) },
        { try operators.setRole(.viewer, of: name) },
      ])
      #expect(demoted == [true, true] && operators.find(name)?.role == .viewer, "round \(round)")
      let removed = Self.parallel([
        { try operators.setPassword("a third battery", of: name, work: work) }, { try operators.remove(name) },
      ])
      #expect(removed[1] && operators.find(name) == nil, "round \(round)")
      let added = Self.parallel([
        { try operators.add(name, role: .owner, password: "correct horse", work: work) },
        { try operators.add(name, role: .viewer, password: "battery staple", work: work) },
      ])
      #expect(added.count { $0 } == 1, "round \(round)")
      try operators.remove(name)
    }
    #expect(operators.all.isEmpty)
    #expect(try test.reopened().accounts.operators.all.isEmpty)
  }

  @Test func aDamagedRowIsReported() throws {
    let test = try TestAccounts()
    try test.store.write { (txn) throws(StorageError) in
      try txn.put(AccountsKey(.operators).ending("ann").bytes, Array(#"{"role":"root"}"#.utf8))
    }
    #expect(throws: (any Error).self) { try test.reopened() }
  }

  // MARK: Sessions

  @Test func sessionsEndByTime() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    let token = try Self.token(sessions.signIn("ann", password: Self.password, from: nil))
    let session = { token.withUnsafeBytes { sessions.session($0) } }
    #expect(session()?.name == "ann")
    // Each use extends the session, up to its longest duration.
    for _ in 0..<24 {
      test.clock.advance(seconds: Int(OperatorSessions.idleSeconds) - 1)
      #expect(session() != nil)
    }
    test.clock.advance(seconds: Int(OperatorSessions.idleSeconds) - 1)
    #expect(session() == nil)
    let other = try Self.token(sessions.signIn("ann", password: Self.password, from: nil))
    let streaming = try #require(other.withUnsafeBytes { sessions.session($0) })
    test.clock.advance(seconds: Int(OperatorSessions.idleSeconds) - 1)
    #expect(!sessions.isOver(streaming))
    test.clock.advance(seconds: 1)
    // The streams of the session end too.
    #expect(sessions.isOver(streaming) && other.withUnsafeBytes { sessions.session($0) } == nil)
  }

  @Test(arguments: ["password", "role", "removal", "sign-out"])
  func changesEndSessions(change: String) throws {
    let test = try TestAccounts()
    try Self.add("ann", .owner, to: test)
    try Self.add("bob", to: test)
    let sessions = try Self.sessions(test)
    let token = try Self.token(sessions.signIn("ann", password: Self.password, from: nil))
    let other = try Self.token(sessions.signIn("bob", password: Self.password, from: nil))
    let session = try #require(token.withUnsafeBytes { sessions.session($0) })
    let revocations = test.accounts.revocations.count
    switch change {
    case "password": try test.accounts.operators.setPassword("another long one", of: "ann", work: .least)
    case "role": try test.accounts.operators.setRole(.viewer, of: "ann")
    case "removal": try test.accounts.operators.remove("ann")
    default: sessions.end(session)
    }
    #expect(token.withUnsafeBytes { sessions.session($0) } == nil)
    // The streams that the session opened learn of it.
    #expect(session.isEnded && sessions.isOver(session) && test.accounts.revocations.count > revocations)
    #expect(other.withUnsafeBytes { sessions.session($0) } != nil)
    let again = Self.word(sessions.signIn("ann", password: Self.password, from: nil))
    #expect(again == (["password", "removal"].contains(change) ? "refused" : "signed in"))
  }

  @Test func tokensOfOthersAreUnknown() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let (one, other) = (try Self.sessions(test), try Self.sessions(test))
    let token = try Self.token(one.signIn("ann", password: Self.password, from: nil))
    #expect(token.withUnsafeBytes { other.session($0) } == nil)
    for wrong in [token.dropLast() + [token[token.count - 1] ^ 1], Array("hos_".utf8), [], Array("owner".utf8)] {
      #expect(Array(wrong).withUnsafeBytes { one.session($0) } == nil)
    }
    #expect(token.count >= 43 + 4, "the token has fewer than 256 bits")
  }

  @Test func anOperatorHasFewSessions() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    var tokens: [[UInt8]] = []
    for _ in 0...OperatorSessions.sessionsMax {
      test.clock.advance(seconds: 1)
      tokens.append(try Self.token(sessions.signIn("ann", password: Self.password, from: nil)))
    }
    #expect(tokens[0].withUnsafeBytes { sessions.session($0) } == nil)
    #expect(tokens[1].withUnsafeBytes { sessions.session($0) } != nil)
  }

  // MARK: Throttle

  @Test func guessesAreLimitedByNameAndAddress() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    func attempt(_ name: String, _ password: String, _ place: String?) -> String {
      Self.word(sessions.signIn(name, password: password, from: place))
    }
    for _ in 0..<SignInThrottle.guessesFromPlaceMax {
      #expect(attempt("ann", "a wrong password", "192.0.2.1") == "refused")
    }
    // Also the correct password is refused then, so a guess is never confirmed.
    #expect(attempt("ann", Self.password, "192.0.2.1") == "too many")
    #expect(attempt("ann", Self.password, "192.0.2.2") == "signed in")
    #expect(attempt("ann", Self.password, nil) == "signed in")
    test.clock.advance(seconds: (SignInThrottle.guessesRestoreSeconds))
    #expect(attempt("ann", Self.password, "192.0.2.1") == "signed in")
  }

  @Test func guessesAreLimitedByAddressForAllNames() throws {
    let test = try TestAccounts()
    let sessions = try Self.sessions(test)
    for index in 0..<SignInThrottle.guessesOfPlaceMax {
      #expect(Self.word(sessions.signIn("n\(index)", password: "wrong", from: "2001:db8::\(index)")) == "refused")
    }
    // All addresses of an IPv6 network belong to one place.
    #expect(Self.word(sessions.signIn("x", password: "wrong", from: "2001:db8::ffff")) == "too many")
    #expect(Self.word(sessions.signIn("x", password: "wrong", from: "2001:db8:1::1")) == "refused")
  }

  @Test func strangersCannotLockAnOperatorOutOfThisMachine() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    for index in 0..<SignInThrottle.strangerGuessesMax {
      #expect(
        Self.word(sessions.signIn("ann", password: "wrong", from: "10.0.\(index / 200).\(index % 200)")) == "refused")
    }
    #expect(Self.word(sessions.signIn("ann", password: Self.password, from: "10.9.9.9")) == "too many")
    #expect(Self.word(sessions.signIn("ann", password: Self.password, from: nil)) == "signed in")
  }

  /// A name that no operator can have is not kept: such names share an allowance.
  @Test func longNamesTakeNoMemory() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    func attempt(_ name: String) -> String {
      Self.word(sessions.signIn(name, password: Self.password, from: "192.0.2.1"))
    }
    for index in 0..<SignInThrottle.guessesFromPlaceMax {
      #expect(attempt(String(repeating: "x", count: 10_000 + index)) == "refused")
    }
    #expect(attempt(String(repeating: "y", count: 10_000)) == "too many")
    #expect(attempt("ann") == "signed in")
  }

  @Test func signInDoesNotUseUpAttempts() throws {
    let test = try TestAccounts()
    try Self.add("ann", to: test)
    let sessions = try Self.sessions(test)
    for _ in 0..<(2 * SignInThrottle.guessesOfPlaceMax) {
      #expect(Self.word(sessions.signIn("ann", password: Self.password, from: "192.0.2.1")) == "signed in")
    }
  }
}
