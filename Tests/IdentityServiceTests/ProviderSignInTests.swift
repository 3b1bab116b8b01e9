import Accounts
import DocumentModel
import Foundation
import Synchronization
import Testing
import TestSupport
@testable import IdentityService

/// Sign-in by the page of another provider: the code flow, and attacks on it.
@Suite struct ProviderSignInTests {
  /// A service that knows one provider, and the provider.
  private struct World {
    let provider: FakeOpenIDProvider
    let world: ServiceWorld
    let app = WaitingApp(
      apiKey: "any", appName: "[DEFAULT]", authType: "signInViaPopup", eventID: "e1", pageURL: "https://app.example/")
    var service: AccountsService { world.service }
    var flow: ProviderSignIn { world.service.providerSignIn }

    init(_ provider: SignInProvider? = nil) throws {
      let clock = SteppedTime()
      let fake = try FakeOpenIDProvider(clock: clock)
      self.provider = fake
      world = try ServiceWorld(clock: clock) { options in
        options.signInProviders = [
          provider
            ?? SignInProvider(
              id: "oidc.work", issuer: FakeOpenIDProvider.issuer, clientID: "web",
              credential: .secret(FakeOpenIDProvider.secret))
        ]
        options.providerFetch = { try fake.fetch($0) }
        options.authorizedDomains = ["app.example"]
      }
    }

    typealias Start = (url: String, ticket: SignInTicket, sealed: String)

    func begin(_ id: String = "oidc.work") throws -> Start {
      try flow.begin(id, returnURL: "https://db.example.com/__/auth/handler", app: app)
    }

    /// Finishes a sign-in, and returns the name of the identity.
    func finish(_ sealed: String, _ back: ProviderSignIn.Return) throws -> String {
      try flow.finish(try flow.ticket(sealed, for: back), back)
    }

    /// Begins and finishes a sign-in.
    func identity() throws -> String {
      let start = try begin()
      return try finish(start.sealed, try provider.authorize(start.url))
    }

    func signIn(_ name: String, _ change: (inout AccountsService.SignInWithIdp) -> Void = { _ in }) throws
      -> AccountsService.IdpSignIn
    {
      var request = AccountsService.SignInWithIdp(providerID: "oidc.work", providerToken: name)
      change(&request)
      return try service.signInWithIdp(request, by: ServiceWorld.user)
    }
  }

  /// A sign-in ended in a way that the test does not expect.
  private struct Unexpected: Error {
    let text: String
    init(_ text: String) { self.text = text }
  }

  /// The code of the failure that `body` throws, or `nil` if it throws none.
  private static func failure<R>(_ body: () throws -> R) -> String? {
    do { _ = try body() } catch let error as SignInFailure { return error.code } catch { return "\(error)" }
    return nil
  }

  @Test func aConfirmedIdentitySignsIn() throws {
    let test = try World()
    let start = try test.begin()
    let query = try FakeOpenIDProvider.query(start.url)
    #expect(query["scope"] == "openid email profile")
    #expect(query["redirect_uri"] == "https://db.example.com/__/auth/handler")
    #expect(!start.sealed.contains(query["nonce"] ?? "-") && !start.sealed.contains(query["state"] ?? "-"))
    guard
      case .signedIn(let outcome, let identity) = try test.signIn(
        try test.finish(start.sealed, try test.provider.authorize(start.url)))
    else { throw Unexpected("the sign-in needs confirmation") }
    #expect(outcome.isNew && outcome.user.email == "ann@example.com")
    #expect(identity.accessToken == "a1")
    guard case .signedIn(let again, _) = try test.signIn(try test.identity()) else { throw Unexpected("no sign-in") }
    #expect(again.user.uid == outcome.user.uid && !again.isNew)
    // Both documents were fetched once.
    #expect(test.provider.requests == ["openid-configuration", "token", "keys", "token"])
  }

  @Test func tokensWithEllipticKeysAreVerified() throws {
    let test = try World()
    test.provider.change { $0.usesEllipticKey = true }
    _ = try test.signIn(try test.identity())
    test.provider.change { state in
      state.makeToken = { claims in
        let text = try JSONWebToken.signed(claims, by: test.provider.ellipticKey, id: "e1")
        return String(text.dropLast(4)) + "AAAA"
      }
    }
    #expect(Self.failure { try test.identity() } == "auth/invalid-credential")
  }

  /// The mistakes of a token, by which attackers could use the token of another app, user or sign-in.
  static let badTokens: [(String, @Sendable (inout [(String, Value)]) -> Void)] = [
    ("another audience", { set("aud", .string("other"), &$0) }),
    ("two audiences without an authorized party", { set("aud", .array([.string("web"), .string("other")]), &$0) }),
    ("only another audience in a list", { set("aud", .array([.string("other")]), &$0) }),
    ("another authorized party", { $0.append(("azp", .string("other"))) }),
    ("no audience", { $0.removeAll { $0.0 == "aud" } }),
    ("another issuer", { set("iss", .string("https://id.example.com/"), &$0) }),
    ("no issuer", { $0.removeAll { $0.0 == "iss" } }),
    ("the nonce of another sign-in", { set("nonce", .string("n"), &$0) }),
    ("no nonce", { $0.removeAll { $0.0 == "nonce" } }),
    ("an expiry in the past", { set("exp", .integer(0), &$0) }),
    ("no expiry", { $0.removeAll { $0.0 == "exp" } }),
    ("an expiry as text", { set("exp", .string("9999999999"), &$0) }),
    ("an issue in the future", { set("iat", .integer(9_999_999_999), &$0) }),
    ("no subject", { $0.removeAll { $0.0 == "sub" } }),
    ("an empty subject", { set("sub", .string(""), &$0) }),
    ("a validity in the future", { $0.append(("nbf", .integer(9_999_999_999))) }),
  ]

  private static func set(_ name: String, _ value: Value, _ claims: inout [(String, Value)]) {
    claims.removeAll { $0.0 == name }
    claims.append((name, value))
  }

  @Test(arguments: badTokens.indices) func badTokensAreRejected(index: Int) throws {
    let (name, change) = Self.badTokens[index]
    let test = try World()
    test.provider.change { $0.change = change }
    #expect(Self.failure { try test.identity() } == "auth/invalid-credential", "a token with \(name)")
    #expect(test.world.events.isEmpty)
  }

  /// Tokens that the provider did not sign.
  @Test func forgedTokensAreRejected() throws {
    let test = try World()
    let own = try #require(RSAKey.make())
    let key = test.provider.key
    let forgeries: [@Sendable (MapValue) throws -> String] = [
      { JSONWebToken.unsigned($0) },
      { try JSONWebToken.signed($0, by: own, id: "k1") },
      { try JSONWebToken.signed($0, by: key, id: "unknown") },
      { try JSONWebToken.signed($0, by: key, id: "e1") },
      // The algorithm is confused: the public key would be the secret of an HMAC.
      { claims in
        let parts = try JSONWebToken.signed(claims, by: key, id: "k1").split(separator: ".")
        return Data(#"{"alg":"HS256","kid":"k1" }"#.utf8).base64EncodedString() + ".\(parts[1]).\(parts[2])"
      },
      { _ in "not a token" }, { _ in "" },
    ]
    for forgery in forgeries {
      test.provider.change { $0.makeToken = forgery }
      #expect(Self.failure { try test.identity() } == "auth/invalid-credential")
    }
  }

  @Test func ticketsBelongToOneSignIn() throws {
    let test = try World()
    let (one, other) = (try test.begin(), try test.begin())
    let (back, otherBack) = (try test.provider.authorize(one.url), try test.provider.authorize(other.url))
    // The victim's browser has no ticket, or that of another sign-in.
    #expect(Self.failure { try test.flow.ticket(nil, for: back) } == "auth/timeout")
    #expect(Self.failure { try test.flow.ticket(other.sealed, for: back) } == "auth/invalid-credential")
    // The attacker's code does not fit the victim's ticket: the provider knows the challenge of the attacker.
    let mixed = ProviderSignIn.Return(state: otherBack.state, code: back.code)
    #expect(Self.failure { try test.finish(other.sealed, mixed) } == "auth/invalid-credential")
    // That try has used up both the ticket and the code.
    #expect(Self.failure { try test.finish(other.sealed, otherBack) } == "auth/invalid-credential")
    #expect(Self.failure { try test.finish(one.sealed, back) } == "auth/invalid-credential")
    // A return works once.
    let third = try test.begin()
    let last = try test.provider.authorize(third.url)
    _ = try test.finish(third.sealed, last)
    #expect(Self.failure { try test.finish(third.sealed, last) } == "auth/invalid-credential")
  }

  @Test func ticketsCannotBeForged() throws {
    let test = try World()
    let start = try test.begin()
    let back = try test.provider.authorize(start.url)
    for index in [0, 10, start.sealed.count / 2, start.sealed.count - 1] {
      var bytes = Array(start.sealed.utf8)
      bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      let forged = String(decoding: bytes, as: UTF8.self)
      #expect(Self.failure { try test.flow.ticket(forged, for: back) } == "auth/timeout")
    }
    for text in ["", ".", "e30.", "e30.AAAA", "a.b.c"] {
      #expect(Self.failure { try test.flow.ticket(text, for: back) } == "auth/timeout")
    }
    // A ticket of another server, or of this one before it restarted.
    #expect(Self.failure { try World().flow.ticket(start.sealed, for: back) } == "auth/timeout")
    test.world.clock.advance(seconds: Int(ProviderLimits.ticketSeconds))
    #expect(Self.failure { try test.finish(start.sealed, back) } == "auth/timeout")
  }

  @Test func errorsOfProvidersReachTheApp() throws {
    let test = try World()
    for (error, code) in [
      ("access_denied", "auth/user-cancelled"), ("server_error", "auth/network-request-failed"),
      ("invalid_scope", "auth/invalid-credential"), ("<script>", "auth/invalid-credential"),
    ] {
      let start = try test.begin()
      let state = try test.provider.authorize(start.url).state
      let back = ProviderSignIn.Return(state: state, code: nil, error: error)
      #expect(Self.failure { try test.finish(start.sealed, back) } == code)
    }
    let start = try test.begin()
    let empty = ProviderSignIn.Return(state: try test.provider.authorize(start.url).state, code: "")
    #expect(Self.failure { try test.finish(start.sealed, empty) } == "auth/invalid-credential")
    #expect(Self.failure { try test.begin("oidc.other") } == "auth/operation-not-allowed")
    #expect(Self.failure { try test.begin("google.com") } == "auth/operation-not-allowed")
  }

  @Test func responsesOfOtherIssuersAreRejected() throws {
    let test = try World()
    for (issuer, mustName, code) in [
      ("https://evil.example", false, "auth/invalid-credential"), (nil, true, "auth/invalid-credential"),
      (FakeOpenIDProvider.issuer, true, nil), (nil, false, nil),
    ] as [(String?, Bool, String?)] {
      let test = try World()
      test.provider.change {
        $0.discovery = [("authorization_response_iss_parameter_supported", .boolean(mustName))]
      }
      let start = try test.begin()
      var back = try test.provider.authorize(start.url)
      back.issuer = issuer
      #expect(Self.failure { try test.finish(start.sealed, back) } == code)
    }
    #expect(test.provider.requests.isEmpty)
  }

  @Test(arguments: [
    ("openid-configuration", 200, #"{"issuer": "https://evil.example"}"#, "auth/internal-error"),
    ("openid-configuration", 302, "", "auth/internal-error"),
    ("openid-configuration", 200, "<html>", "auth/internal-error"),
    ("keys", 200, #"{"keys": []}"#, "auth/internal-error"),
    ("token", 200, "<html>", "auth/invalid-credential"),
    ("token", 200, "{}", "auth/invalid-credential"),
    ("token", 500, "", "auth/invalid-credential"),
    ("token", 302, "", "auth/invalid-credential"),
  ]) func unusableResponsesAreReported(name: String, status: Int, body: String, code: String) throws {
    let test = try World()
    test.provider.change { $0.responses[name] = ProviderResponse(status: status, body: Array(body.utf8)) }
    #expect(Self.failure { try test.identity() } == code)
  }

  @Test func endpointsWithoutTLSAreRejected() throws {
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
      for url in ["http://id.example.com/x", "http://127.0.0.1/x", "javascript:x", "https://user@id.example.com/x"] {
        let test = try World()
        test.provider.change { $0.discovery = [(name, .string(url))] }
        #expect(Self.failure { try test.begin() } == "auth/internal-error", "\(name) \(url)")
      }
    }
  }

  @Test func aProviderThatIsDownIsReported() throws {
    let test = try World()
    test.provider.change { $0.isDown = true }
    #expect(Self.failure { try test.begin() } == "auth/network-request-failed")
    test.provider.change { $0.isDown = false }
    // The server remembers the failure for a while, so that a dead provider does not occupy its threads.
    let before = test.provider.requests.count
    #expect(Self.failure { try test.begin() } == "auth/network-request-failed")
    #expect(test.provider.requests.count == before)
    test.world.clock.advance(seconds: Int(ProviderLimits.failureSeconds))
    _ = try test.identity()
    // The documents are old, but the provider does not respond: they stay in use.
    test.world.clock.advance(seconds: 7200)
    test.provider.change {
      $0.responses = ["openid-configuration": .init(status: 503, body: []), "keys": .init(status: 503, body: [])]
    }
    _ = try test.signIn(try test.identity())
  }

  @Test func rotatedKeysAreFetchedOnceAMinute() throws {
    let test = try World()
    _ = try test.identity()
    test.world.clock.advance(seconds: 100)
    test.provider.change { ($0.keyID, $0.publishedKeyID) = ("k2", "k2") }
    _ = try test.signIn(try test.identity())
    #expect(test.provider.requests.filter { $0 == "keys" }.count == 2)
    // Tokens with invented keys do not make the server flood the provider.
    test.provider.change { $0.keyID = "k3" }
    for _ in 0..<5 { #expect(Self.failure { try test.identity() } == "auth/invalid-credential") }
    #expect(test.provider.requests.filter { $0 == "keys" }.count == 2)
    test.world.clock.advance(seconds: Int(ProviderLimits.unknownKeySeconds))
    #expect(Self.failure { try test.identity() } == "auth/invalid-credential")
    #expect(test.provider.requests.filter { $0 == "keys" }.count == 3)
  }

  @Test func namesOfIdentitiesWorkOnce() throws {
    let test = try World()
    let name = try test.identity()
    #expect(refusal { try test.signIn(name) { $0.providerID = "google.com" } } == .invalidIdpResponse)
    #expect(refusal { try test.signIn(name) } == .invalidIdpResponse)
    let second = try test.identity()
    _ = try test.signIn(second)
    #expect(refusal { try test.signIn(second) } == .invalidIdpResponse)
    #expect(refusal { try test.signIn("hearth_" + RandomBytes.text(32)) } == .invalidIdpResponse)
    let third = try test.identity()
    test.world.clock.advance(seconds: Int(ProviderLimits.identitySeconds))
    #expect(refusal { try test.signIn(third) } == .invalidIdpResponse)
  }

  @Test func newNamesOfAnIdentityDoNotProlongIt() throws {
    let test = try World()
    var name = try test.identity()
    for _ in 0..<4 {
      test.world.clock.advance(seconds: Int(ProviderLimits.identitySeconds) / 5)
      guard case .signedIn(_, let identity) = try test.signIn(name) else { throw Unexpected("no sign-in") }
      name = try #require(identity.token)
    }
    test.world.clock.advance(seconds: Int(ProviderLimits.identitySeconds) / 5)
    #expect(refusal { try test.signIn(name) } == .invalidIdpResponse)
  }

  @Test func namesEndWithTheSessionsOfTheUser() throws {
    let test = try World()
    guard case .signedIn(let outcome, let identity) = try test.signIn(try test.identity()) else {
      throw Unexpected("no sign-in")
    }
    test.world.clock.advance(seconds: 2)
    var change = AccountsService.Update(uid: outcome.user.uid)
    change.password = "secret-2"
    _ = try test.service.update(change, by: ServiceWorld.admin)
    #expect(refusal { try test.signIn(try #require(identity.token)) } == .invalidIdpResponse)
    _ = try test.signIn(try test.identity())
  }

  @Test func anAccountWithTheAddressIsLinkedAfterItsPassword() throws {
    let test = try World()
    let member = try test.world.signUp("ann")
    guard case .needsConfirmation(let user, let identity) = try test.signIn(try test.identity()) else {
      throw Unexpected("an address that nobody verified opened the account")
    }
    #expect(user.uid == member?.user.uid)
    let name = try #require(identity.token)
    guard case .signedIn(let linked, _) = try test.signIn(name, { $0.idToken = member?.idToken }) else {
      throw Unexpected("not linked")
    }
    #expect(linked.user.providers.map(\.providerID) == ["oidc.work"])
    // Another account cannot have the same identity. The response contains it, so that the app can sign in with it.
    let guest = try test.service.signUp(.init(), by: ServiceWorld.user).session
    let link = { (request: inout AccountsService.SignInWithIdp) in
      request.idToken = guest?.idToken
      request.returnsCredential = true
    }
    guard case .refused(let error, let other) = try test.signIn(try test.identity(), link) else {
      throw Unexpected("linked twice")
    }
    #expect(error.code == .federatedUserIDAlreadyLinked)
    guard case .signedIn(let outcome, _) = try test.signIn(try #require(other.token)) else {
      throw Unexpected("not signed in")
    }
    #expect(outcome.user.uid == member?.user.uid)
  }

  @Test func appsCanOpenThePageThemselves() throws {
    let test = try World()
    var request = AccountsService.CreateAuthURI(
      identifier: nil, continueURL: "https://app.example/back", providerID: "oidc.work")
    request.scopes = ["calendar"]
    request.parameters = [("prompt", "login"), ("redirect_uri", "https://evil.example/"), ("state", "x")]
    let page = try test.service.createAuthURI(request, by: ServiceWorld.user)
    let url = try #require(page.page?.url)
    let query = try FakeOpenIDProvider.query(url)
    #expect(query["redirect_uri"] == "https://app.example/back" && query["scope"] == "openid email profile calendar")
    #expect(query["prompt"] == "login" && query["state"] != "x")
    let back = try test.provider.authorize(url)
    // The code works only with the session.
    let other = try test.begin().sealed
    #expect(refusal { try test.signIn("") { $0.returned = (other, back) } } == .invalidIdpResponse)
    guard case .signedIn = try test.signIn("", { $0.returned = (page.sessionID, back) }) else {
      throw Unexpected("not signed in")
    }
    #expect(refusal { try test.signIn("") { $0.returned = (page.sessionID, back) } } == .invalidIdpResponse)
    request.continueURL = "https://evil.example/back"
    #expect(refusal { try test.service.createAuthURI(request, by: ServiceWorld.user) } == .unauthorizedDomain)
    request.continueURL = nil
    #expect(refusal { try test.service.createAuthURI(request, by: ServiceWorld.user) } == .missingContinueURI)
    request.continueURL = "https://app.example/back"
    request.providerID = "github.com"
    #expect(refusal { try test.service.createAuthURI(request, by: ServiceWorld.user) } == .operationNotAllowed)
  }

  @Test func theSecretIsPostedIfTheProviderWantsThat() throws {
    let test = try World()
    test.provider.change {
      $0.discovery = [("token_endpoint_auth_methods_supported", .array([.string("client_secret_post")]))]
    }
    // The provider of this test accepts only the header, so the sign-in fails, but the request shows the difference.
    #expect(Self.failure { try test.identity() } == "auth/invalid-credential")
    #expect(test.provider.state.withLock(\.authorizations).allSatisfy { $0 == nil })
  }

  @Test func appleGetsASignedSecret() throws {
    let key = try #require(EllipticKey(privatePEM: FakeOpenIDProvider.ellipticPEM))
    let apple = SignInProvider(
      id: "apple.com", issuer: "https://appleid.apple.com", clientID: "com.example.web",
      credential: .signed(teamID: "T1", keyID: "K1", key))
    let fetch: ProviderFetch = { request in
      guard let form = request.form else {
        let base = "https://appleid.apple.com"
        return ProviderResponse(
          status: 200,
          body: Array(
            """
            {"issuer": "\(base)", "authorization_endpoint": "\(base)/auth/authorize", "token_endpoint": \
            "\(base)/auth/token", "jwks_uri": "\(base)/auth/keys"}
            """.utf8))
      }
      let secret = try #require(form.first { $0.name == "client_secret" }?.value)
      let token = try JSONWebToken(Array(secret.utf8))
      try token.verify(with: key)
      #expect(token.claims.text("iss") == "T1" && token.claims.text("sub") == "com.example.web")
      #expect(token.claims.text("aud") == "https://appleid.apple.com" && token.keyID == "K1")
      return ProviderResponse(status: 400, body: Array(#"{"error": "invalid_grant"}"#.utf8))
    }
    let world = try ServiceWorld { ($0.signInProviders, $0.providerFetch) = ([apple], fetch) }
    let flow = world.service.providerSignIn
    let start = try flow.begin("apple.com", returnURL: "https://db.example.com/__/auth/handler", app: nil)
    let query = try FakeOpenIDProvider.query(start.url)
    #expect(query["response_mode"] == "form_post" && query["scope"] == "openid email name")
    let back = ProviderSignIn.Return(state: try #require(query["state"]), code: "c")
    #expect(
      Self.failure { try flow.finish(try flow.ticket(start.sealed, for: back), back) } == "auth/invalid-credential")
  }

  @Test(arguments: [
    ("https://app.example/", true), ("https://sub.app.example/x?y#z", true), ("http://localhost:3000/", true),
    ("http://127.0.0.1/", true), ("http://[::1]:8/", true), ("https://db.example.com/", true),
    ("http://app.example/", false), ("https://evil.example/", false), ("https://app.example.evil.example/", false),
    ("https://evilapp.example/", false), ("https://app.example@evil.example/", false),
    (#"https://evil.example\@app.example/"#, false), ("//app.example/", false), ("javascript:alert(1)", false),
    ("data:text/html,x", false), ("", false), ("https://127.0.0.1.evil.example/", false),
    ("https://localhost.evil.example/", false),
  ]) func onlyPagesOfAuthorizedDomainsSignIn(url: String, isAllowed: Bool) throws {
    let world = try ServiceWorld {
      ($0.authorizedDomains, $0.publicURL) = (["app.example"], "https://db.example.com")
    }
    #expect(world.service.maySignIn(page: url, own: "https://db.example.com") == isAllowed)
  }

  @Test func namesOfStrangersAreNotTheServersOwn() throws {
    let world = try ServiceWorld { $0.authorizedDomains = ["app.example"] }
    #expect(world.service.ownURL(host: "evil.example", isSecure: true) == nil)
    #expect(world.service.ownURL(host: "db.app.example:8443", isSecure: true) == "https://db.app.example:8443")
    #expect(world.service.ownURL(host: "localhost:8080", isSecure: false) == "http://localhost:8080")
    let named = try ServiceWorld { $0.publicURL = "https://db.example.com/" }
    #expect(named.service.ownURL(host: "evil.example", isSecure: false) == "https://db.example.com")
  }

  /// A stranger who returns with wrong codes cannot make the server send requests to the provider without end.
  @Test func failedReturnsOfOnePlaceAreLimited() throws {
    let test = try World()
    func back(_ address: String?, isRight: Bool = false) throws -> String? {
      let start = try test.begin()
      let right = try test.provider.authorize(start.url)
      let back = isRight ? right : ProviderSignIn.Return(state: right.state, code: "wrong")
      return Self.failure {
        try test.service.finishReturn(back, from: address) { () throws(SignInFailure) in
          try test.flow.identity(try test.flow.ticket(start.sealed, for: back), back)
        }
      }
    }
    func tokenRequests() -> Int { test.provider.requests.count { $0 == "token" } }
    // Sign-ins that succeed are not limited.
    for _ in 0..<2 * SignInThrottle.failedReturnsMax { #expect(try back("192.0.2.1", isRight: true) == nil) }
    for _ in 0..<SignInThrottle.failedReturnsMax { #expect(try back("192.0.2.1") == "auth/invalid-credential") }
    let before = tokenRequests()
    for isRight in [false, true] { #expect(try back("192.0.2.1", isRight: isRight) == "auth/too-many-requests") }
    #expect(tokenRequests() == before)
    // Another place and this machine are not affected, and time restores the allowance.
    #expect(try back("192.0.2.2", isRight: true) == nil)
    #expect(try back(nil, isRight: true) == nil)
    test.provider.clock.advance(seconds: SignInThrottle.guessesRestoreSeconds)
    #expect(try back("192.0.2.1", isRight: true) == nil)
  }

  @Test func usedTicketsAreForgottenInOrder() {
    var used = UsedTickets(countMax: 100)
    for number in 0..<1000 {
      let isFirst = used.use("t\(number)", until: 600, nowSeconds: 0)
      #expect(isFirst)
      #expect(used.count <= 100)
      for earlier in max(0, number - 99)...number {
        let isFirstAgain = used.use("t\(earlier)", until: 600, nowSeconds: 0)
        #expect(!isFirstAgain, "\(earlier) after \(number)")
      }
    }
    // The ones that ended make room.
    let isLateFirst = used.use("late", until: 1200, nowSeconds: 601)
    #expect(isLateFirst)
    #expect(used.count == 1)
  }
}
