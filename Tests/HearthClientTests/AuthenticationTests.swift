import Foundation
import Synchronization
import Testing
import TestSupport

@testable import HearthClient

/// Sign-in, sessions and the renewal of tokens.
@Suite struct AuthenticationTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{db}/documents {
        match /own/{uid} { allow read, write: if request.auth.uid == uid; }
      }
    }
    """

  /// A transport that counts requests by path, and can reject tokens.
  final class CountingTransport: HearthTransport {
    let inner: URLSessionTransport
    private let state = Mutex((calls: [String: Int](), refusals: 0))

    init(_ url: String) throws { inner = URLSessionTransport(url: try #require(URL(string: url))) }

    func count(_ path: String) -> Int { state.withLock { $0.calls[path] ?? 0 } }
    func refuse(_ count: Int) { state.withLock { $0.refusals = count } }

    func send(_ request: HearthRequest) async throws -> HearthResponse {
      let path = String(request.target.prefix { $0 != "?" })
      let isRefused = state.withLock { state in
        state.calls[path, default: 0] += 1
        guard request.headers["Authorization"] != nil, state.refusals > 0 else { return false }
        state.refusals -= 1
        return true
      }
      if isRefused {
        let body = #"{"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "expired"}}"#
        return HearthResponse(status: 401, body: Data(body.utf8))
      }
      return try await inner.send(request)
    }

    func open(_ request: HearthRequest) async throws -> HearthStream { try await inner.open(request) }
  }

  /// A clock that only the test advances.
  final class TestClock: Sendable {
    private let start = Date()
    private let seconds = Mutex(0.0)
    var now: Date { start.addingTimeInterval(seconds.withLock { $0 }) }
    func advance(seconds count: Double) { seconds.withLock { $0 += count } }
  }

  private func isDenied(_ error: any Error) -> Bool { (error as? HearthClientError)?.code == .permissionDenied }

  @Test func anonymousUsersBecomePermanent() async throws {
    let hearth = try TestHearth(rules: Self.rules)
    let client = try hearth.client()
    #expect(client.auth.currentUser == nil)
    await #expect { try await client.document("own/x").set(["n": 1]) } throws: { isDenied($0) }
    let guest = try await client.auth.signInAnonymously()
    #expect(guest.isAnonymous && guest.email == nil && client.auth.currentUser == guest)
    #expect(try await client.auth.signInAnonymously().uid == guest.uid)
    let own = client.document("own/\(guest.uid)")
    try await own.set(["n": 1])
    await #expect { try await client.document("own/x").set(["n": 1]) } throws: { isDenied($0) }
    let member = try await client.auth.link(email: "ann@example.com", password: "correct horse")
    #expect(member.uid == guest.uid && !member.isAnonymous && member.email == "ann@example.com")
    #expect(try await own.get().exists)
    client.auth.signOut()
    await #expect { try await own.get() } throws: { isDenied($0) }
    let back = try await client.auth.signIn(email: "ann@example.com", password: "correct horse")
    #expect(back.uid == guest.uid && back.claims["email"] == "ann@example.com")
    #expect(try await own.get().exists)
  }

  @Test func signInErrorsHaveReasons() async throws {
    let hearth = try TestHearth()
    let auth = try hearth.client().auth
    try await auth.signUp(email: "ann@example.com", password: "correct horse")
    for (reason, email, password) in [
      ("EMAIL_EXISTS", "ann@example.com", "another one"), ("WEAK_PASSWORD", "bob@example.com", "short"),
      ("INVALID_EMAIL", "nobody", "correct horse"),
    ] {
      await #expect { try await auth.signUp(email: email, password: password) } throws: {
        ($0 as? HearthClientError)?.reason?.rawValue == reason
      }
    }
    try await auth.deleteUser()
    #expect(auth.currentUser == nil)
    await #expect { try await auth.link(email: "a@example.com", password: "correct horse") } throws: {
      ($0 as? HearthClientError)?.code == .unauthenticated
    }
  }

  @Test func restoresAStoredSession() async throws {
    let hearth = try TestHearth(rules: Self.rules)
    let client = try hearth.client()
    var sessions = client.auth.sessions().makeAsyncIterator()
    #expect(await sessions.next() == .some(nil))
    let user = try await client.auth.signUp(email: "ann@example.com", password: "correct horse")
    let session = try #require(await sessions.next().flatMap { $0 })
    let stored = try JSONEncoder().encode(session)
    let later = try hearth.client()
    later.auth.restore(try JSONDecoder().decode(Session.self, from: stored))
    #expect(later.auth.currentUser?.uid == user.uid)
    try await later.document("own/\(user.uid)").set(["n": 1])
  }

  @Test func renewsTokensBeforeTheyExpire() async throws {
    let hearth = try TestHearth(rules: Self.rules)
    let transport = try CountingTransport(hearth.url)
    let clock = TestClock()
    let client = Hearth(transport, "demo", "(default)", .signedIn, now: { clock.now })
    let user = try await client.auth.signInAnonymously()
    let own = client.document("own/\(user.uid)")
    try await own.set(["n": 1])
    clock.advance(seconds: 3200)
    try await own.set(["n": 2])
    #expect(transport.count("/v1/token") == 0)
    clock.advance(seconds: 200)
    // Concurrent requests share one renewal.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for n in 0..<8 { group.addTask { try await own.update(["n\(n)": 1]) } }
      try await group.waitForAll()
    }
    #expect(transport.count("/v1/token") == 1)
    #expect(client.auth.currentUser?.uid == user.uid)
  }

  @Test func renewsARejectedTokenOnce() async throws {
    let hearth = try TestHearth(rules: Self.rules)
    let transport = try CountingTransport(hearth.url)
    let refusals = Mutex([Bool]())
    let credentials = Hearth.Credentials.provider { isRefused in
      refusals.withLock { $0.append(isRefused) }
      return isRefused ? "ya29.new" : "owner"
    }
    let client = Hearth(transport: transport, project: "demo", credentials: credentials)
    transport.refuse(1)
    try await client.document("own/a").set(["n": 1])
    #expect(refusals.withLock { $0 } == [false, true])
    // A second rejection is an error.
    transport.refuse(5)
    await #expect { try await client.document("own/a").get() } throws: {
      ($0 as? HearthClientError)?.code == .unauthenticated
    }
    #expect(refusals.withLock { $0 } == [false, true, false, true])
  }

  @Test func signsOutIfTheSessionHasEnded() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    try await client.auth.signUp(email: "ann@example.com", password: "correct horse")
    let session = try #require(client.auth.session)
    let other = try hearth.client()
    other.auth.restore(session)
    try await other.auth.deleteUser()
    await #expect { try await client.auth.token(forcingRefresh: true) } throws: {
      ($0 as? HearthClientError)?.code == .unauthenticated
    }
    #expect(client.auth.currentUser == nil)
  }

  @Test func sendsABearerToken() async throws {
    let hearth = try TestHearth(rules: Self.rules)
    let admin = try hearth.client(.bearer("owner"))
    try await admin.document("own/anybody").set(["n": 1])
    #expect(try await admin.document("own/anybody").get().exists)
  }

  private static func session(_ name: String) -> Session {
    Session(idToken: name, refreshToken: "refresh-\(name)", expiresAt: Date().addingTimeInterval(3600))
  }

  @Test(arguments: [
    (400, "Bad Request", HearthClientError.Code.invalidArgument, true), (408, "", .deadlineExceeded, true),
    (413, "", .invalidArgument, true), (400, #"{"error": {"message": "INVALID_GRANT_TYPE"}}"#, .invalidArgument, true),
    (400, #"{"error": {"message": "USER_DISABLED"}}"#, .unauthenticated, false),
    (400, #"{"error": {"message": "INVALID_REFRESH_TOKEN"}}"#, .unauthenticated, false),
  ])
  func onlyReasonsOfTheServerEndASession(
    status: Int, body: String, code: HearthClientError.Code, stays: Bool
  ) async throws {
    let transport = ScriptedTransport { _ in HearthResponse(status: status, body: Data(body.utf8)) }
    let auth = Hearth(transport: transport, project: "demo").auth
    auth.restore(Self.session("guest"))
    await #expect { try await auth.token(forcingRefresh: true) } throws: { ($0 as? HearthClientError)?.code == code }
    #expect((auth.session != nil) == stays)
  }

  @Test func usesATokenUntilItExpires() async throws {
    let transport = ScriptedTransport { _ in HearthResponse(status: 400, body: Data("Bad Request".utf8)) }
    let time = Date()
    let auth = Hearth(transport, "demo", "(default)", .signedIn, now: { time }).auth
    auth.restore(Session(idToken: "old", refreshToken: "r", expiresAt: time.addingTimeInterval(100)))
    #expect(try await auth.token() == "old")
  }

  @Test func aRenewalDoesNotReplaceAnotherSession() async throws {
    let (annRequested, benRequested) = (Observed(false), Observed(false))
    let transport = ScriptedTransport { request in
      let isAnn = String(decoding: request.body ?? Data(), as: UTF8.self).contains("refresh-ann")
      (isAnn ? annRequested : benRequested).value = true
      // The response for Ann arrives after that for Ben, for which this test may wait longer than any limit.
      if isAnn { _ = await benRequested.becomes(secondsMax: nil) { $0 } }
      let name = isAnn ? "ann" : "ben"
      let body = #"{"id_token": "new-\#(name)", "refresh_token": "refresh-\#(name)", "expires_in": "3600"}"#
      return HearthResponse(status: 200, body: Data(body.utf8))
    }
    let auth = Hearth(transport: transport, project: "demo").auth
    auth.restore(Self.session("ann"))
    // Tasks of the usual priority wait for a thread behind all other tests.
    let ann = Task(priority: .high) { try await auth.token(forcingRefresh: true) }
    #expect(await annRequested.becomes { $0 })
    auth.restore(Self.session("ben"))
    #expect(try await auth.token(forcingRefresh: true) == "new-ben")
    #expect(try await ann.value == "new-ann")
    #expect(auth.session?.idToken == "new-ben")
  }
}
