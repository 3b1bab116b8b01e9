import Accounts
import DocumentModel
import KeyValue
import Testing
import TestSupport

/// ID tokens: their claims, their verification and their lifetime (auth-api.md, sections 6.1 and 8).
@Suite struct IDTokenTests {
  @Test func claimsMatchTheSpecification() throws {
    let test = try TestAccounts()
    var user = test.user
    user.isEmailVerified = true
    user.phoneNumber = "+15550100"
    user.displayName = "Ann"
    user.photoURL = "https://example.com/a.png"
    user.identities = [("google.com", ["1234"])]
    user.customClaims = MapValue([
      ("role", .string("admin")), ("name", .string("custom")), ("sub", .string("eve")),
      ("email", .string("eve@example.com")),
    ])
    user.sessionClaims = MapValue([("role", .string("session")), ("aud", .string("other"))])
    user.authTimeSeconds -= 100
    let token = try test.verify(try test.accounts.mintIDToken(for: user))
    let now = test.accounts.nowSeconds
    let expected = MapValue([
      ("iss", .string("https://securetoken.google.com/demo")), ("aud", .string("demo")), ("sub", .string("ann")),
      ("user_id", .string("ann")), ("iat", .integer(now)), ("exp", .integer(now + 3600)),
      ("auth_time", .integer(now - 100)), ("email", .string("ann@example.com")), ("email_verified", .boolean(true)),
      ("phone_number", .string("+15550100")), ("name", .string("custom")),
      ("picture", .string("https://example.com/a.png")), ("role", .string("session")),
      (
        "firebase",
        .map(
          MapValue([
            (
              "identities",
              .map(
                MapValue([
                  ("email", .array([.string("ann@example.com")])), ("phone", .array([.string("+15550100")])),
                  ("google.com", .array([.string("1234")])),
                ]))
            ), ("sign_in_provider", .string("password")),
          ]))
      ),
    ])
    #expect(token.claims == expected, "\(String(decoding: token.claims.json, as: UTF8.self))")
    #expect(token.uid == "ann")
    #expect(token.provider == "password")
    #expect(token.expirySeconds == now + 3600)
  }

  @Test func anonymousTokensNameTheirProvider() throws {
    let test = try TestAccounts()
    let user = SignedInUser(uid: "guest", provider: "anonymous", authTimeSeconds: test.accounts.nowSeconds)
    let claims = try test.verify(try test.accounts.mintIDToken(for: user)).claims
    #expect(claims.text("provider_id") == "anonymous")
    #expect(claims["email"] == nil && claims["email_verified"] == nil)
    #expect(claims.map("firebase")?.map("identities") == MapValue())
  }

  @Test func emulatorTokensAreUnsignedAndUnchecked() throws {
    let test = try TestAccounts(.emulator)
    let token = try test.accounts.mintIDToken(for: test.user)
    #expect(token.hasSuffix(".") && token.split(separator: ".").count == 2)
    test.clock.advance(seconds: 100_000)
    #expect(try test.verify(token).uid == "ann")
    #expect(test.refusal(JSONWebToken.unsigned(MapValue([("sub", .string("bob"))]))) == nil)
    #expect(test.refusal(JSONWebToken.unsigned(MapValue())) == .wrongSubject)
    #expect(test.refusal("owner") == .malformed)
    let production = try TestAccounts()
    #expect(production.refusal(token) == .unsigned)
  }

  /// Tokens signed with the right key that are not valid ID tokens of this project now.
  @Test(
    arguments: [
      ("iss", .string("https://securetoken.google.com/other"), .wrongIssuer),
      ("iss", .string("https://session.firebase.google.com/demo"), .wrongIssuer), ("iss", nil, .wrongIssuer),
      ("aud", .string("other"), .wrongAudience), ("aud", .array([.string("demo")]), .wrongAudience),
      ("aud", nil, .wrongAudience), ("sub", .string(""), .wrongSubject), ("sub", nil, .wrongSubject),
      ("sub", .integer(7), .wrongSubject), ("sub", .string(String(repeating: "x", count: 129)), .wrongSubject),
      ("exp", .integer(0), .expired), ("exp", .integer(-1), .expired),
      ("exp", .integer(.max), .badClaim("exp is too long after iat")),
      ("exp", .string("9999999999"), .badClaim("exp and iat must be whole numbers of seconds")),
      ("exp", nil, .badClaim("exp and iat must be whole numbers of seconds")),
      ("iat", nil, .badClaim("exp and iat must be whole numbers of seconds")),
      ("iat", .integer(.min), .badClaim("exp is too long after iat")),
      ("auth_time", .double(1.5), .badClaim("auth_time must be a whole number of seconds")),
    ] as [(String, Value?, TokenError)])
  func refusesInvalidClaims(name: String, value: Value?, error: TokenError) throws {
    let test = try TestAccounts()
    var claims = try test.verify(try test.accounts.mintIDToken(for: test.user)).claims
    claims[name] = value
    let key = try test.accounts.signingKeys.current(.idToken)
    #expect(test.refusal(try JSONWebToken.signed(claims, by: key.key, id: key.id)) == error)
  }

  /// `seconds` is the difference between the clock that issues a token and the clock that verifies it.
  @Test(
    arguments: [
      (0, nil), (3599, nil), (3600, .expired), (3601, .expired), (-10, nil), (-11, .usedTooEarly),
      (-5000, .usedTooEarly),
    ] as [(Int, TokenError?)])
  func toleratesSmallClockDifferences(seconds: Int, error: TokenError?) throws {
    let test = try TestAccounts()
    let token = try test.accounts.mintIDToken(for: test.user)
    test.clock.advance(seconds: seconds)
    #expect(test.refusal(token) == error)
  }

  @Test func refusesSignInsInTheFuture() throws {
    let test = try TestAccounts()
    var user = test.user
    user.authTimeSeconds += 11
    #expect(test.refusal(try test.accounts.mintIDToken(for: user)) == .usedTooEarly)
  }

  @Test func userStatesInvalidateTokens() throws {
    let test = try TestAccounts()
    let token = try test.verify(try test.accounts.mintIDToken(for: test.user))
    let now = test.accounts.nowSeconds
    let states = test.accounts.userStates
    for (state, error) in [
      (UserState(validSinceSeconds: now), nil), (UserState(validSinceSeconds: now + 1), .revoked),
      (UserState(isDisabled: true), .userDisabled), (UserState(deletedSeconds: now), .userDeleted), (UserState(), nil),
    ] as [(UserState, TokenError?)] {
      try test.store.write { txn throws(StorageError) in try states.put(state, of: "ann", in: txn) }
      #expect(try states.state(of: "ann") == state)
      var found: TokenError?
      do throws(TokenError) { try test.accounts.check(token) } catch { found = error }
      #expect(found == error)
    }
    #expect(try states.state(of: "an") == UserState())
  }

  @Test func sessionCookiesAreNotIDTokens() throws {
    let test = try TestAccounts()
    let idToken = try test.accounts.mintIDToken(for: test.user)
    let cookie = try test.accounts.mintSessionCookie(from: try test.verify(idToken), seconds: 14 * 86_400)
    func check(_ text: String) throws -> VerifiedToken {
      try Array(text.utf8).withUnsafeBytes { try test.accounts.verifySessionCookie($0) }
    }
    let found = try check(cookie)
    #expect(found.claims.text("iss") == "https://session.firebase.google.com/demo")
    #expect(found.claims.text("email") == "ann@example.com")
    #expect(test.refusal(cookie) == .unknownKey)
    #expect(throws: TokenError.unknownKey) { try check(idToken) }
    test.clock.advance(seconds: 14 * 86_400 - 1)
    #expect(throws: Never.self) { try check(cookie) }
    test.clock.advance(seconds: 1)
    #expect(throws: TokenError.expired) { try check(cookie) }
  }
}
