import Accounts
import DocumentModel
import Testing
import TestSupport

/// Service keys of programs with admin access: the tokens that they may sign, and which of them give admin access.
@Suite struct ServiceKeyTests {
  /// A program that has read its key file.
  struct Program {
    let id: String
    let email: String
    let key: RSAKey

    init(_ file: [UInt8]) throws {
      let map = try #require(MapValue(json: file))
      id = try #require(map.text("private_key_id"))
      email = try #require(map.text("client_email"))
      key = try #require(map.text("private_key").flatMap { RSAKey(privatePEM: $0) })
    }

    func sign(_ claims: [(String, Value?)], at now: Int64) throws -> [UInt8] {
      var all = MapValue([
        ("iss", .string(email)), ("sub", .string(email)), ("iat", .integer(now)), ("exp", .integer(now + 3600)),
      ])
      for (name, value) in claims { all[name] = value }
      return Array(try JSONWebToken.signed(all, by: key, id: id).utf8)
    }
  }

  static let url = "http://127.0.0.1:8080"
  static let tokenAudience: (String, Value?) = ("aud", .string("https://oauth2.googleapis.com/token"))

  private static func bearer(_ token: [UInt8], _ accounts: AccountStore) -> TokenError? {
    token.withUnsafeBytes { bytes in
      do throws(TokenError) {
        guard case .admin = try accounts.verifyBearer(bytes) else { return .badClaim("no admin") }
        return nil
      } catch { return error }
    }
  }

  private static func exchange(_ assertion: [UInt8], _ accounts: AccountStore) -> TokenError? {
    do throws(TokenError) {
      _ = try accounts.serviceKeys.accessToken(for: assertion, at: [])
      return nil
    } catch { return error }
  }

  @Test func keyFilesAreServiceAccountFiles() throws {
    let test = try TestAccounts()
    let file = try #require(MapValue(json: try test.accounts.serviceKeys.create(name: "backend", url: Self.url)))
    #expect(file.text("type") == "service_account" && file.text("project_id") == "demo")
    #expect(file.text("token_uri") == "http://127.0.0.1:8080/token")
    #expect(file.text("client_email") == "backend@demo.iam.gserviceaccount.com")
    // The store contains only the public key.
    for row in try test.store.rows(AccountsKey(.serviceKeys), limit: .max) {
      #expect(!String(decoding: row.value, as: UTF8.self).contains("PRIVATE"))
    }
    let listed = String(decoding: ServiceKeys.list(test.accounts.serviceKeys.all), as: UTF8.self)
    #expect(listed.contains("backend") && !listed.contains("KEY-----"))
  }

  @Test(arguments: ["", "A", "1a", "a b", "a/b", "ä", String(repeating: "a", count: 41), "backend"])
  func refusesInvalidNames(name: String) throws {
    let test = try TestAccounts()
    _ = try test.accounts.serviceKeys.create(name: "backend", url: Self.url)
    #expect(throws: TokenError.self) { try test.accounts.serviceKeys.create(name: name, url: Self.url) }
    #expect(test.accounts.serviceKeys.all.count == 1)
  }

  @Test func assertionsYieldAccessTokens() throws {
    let test = try TestAccounts()
    let keys = test.accounts.serviceKeys
    let program = try Program(try keys.create(name: "backend", url: Self.url))
    let now = test.accounts.nowSeconds
    for audience in ["https://oauth2.googleapis.com/token", "\(Self.url)/token"] {
      let assertion = try program.sign([("aud", .string(audience)), ("scope", .string("s"))], at: now)
      let token = Array(try keys.accessToken(for: assertion, at: []).utf8)
      #expect(Self.bearer(token, test.accounts) == nil)
      #expect(Self.bearer(token, try test.reopened().accounts) == nil, "a token survives a restart")
      #expect(Self.bearer(token, try TestAccounts().accounts) == .badSignature)
    }
    let moved = try program.sign([("aud", .string("https://db.example.com/token"))], at: now)
    #expect(throws: Never.self) { try keys.accessToken(for: moved, at: ["https://db.example.com"]) }
    #expect(Self.exchange(moved, test.accounts) == .wrongAudience)
  }

  @Test(
    arguments: [
      ([("aud", .string("https://firestore.googleapis.com/"))], .wrongAudience), ([("aud", nil)], .wrongAudience),
      ([("iss", .string("eve@example.com"))], .wrongIssuer), ([("sub", .string("eve@example.com"))], .wrongSubject),
      ([("exp", .integer(1))], .expired), ([("iat", nil)], .badClaim("exp and iat must be whole numbers of seconds")),
      ([("exp", .integer(1_800_100_000))], .badClaim("exp must be at most 3600 seconds after iat")),
      ([("iat", .integer(1_800_000_061))], .usedTooEarly),
    ] as [([(String, Value?)], TokenError)])
  func refusesInvalidAssertions(change: [(String, Value?)], error: TokenError) throws {
    let test = try TestAccounts()
    let program = try Program(try test.accounts.serviceKeys.create(name: "backend", url: Self.url))
    let now = test.accounts.nowSeconds
    #expect(Self.exchange(try program.sign([Self.tokenAudience], at: now), test.accounts) == nil)
    #expect(Self.exchange(try program.sign([Self.tokenAudience] + change, at: now), test.accounts) == error)
  }

  @Test(
    arguments: [
      ([("aud", .string("https://firestore.googleapis.com/"))], nil),
      ([("aud", .string("http://127.0.0.1:8080"))], nil),
      ([("scope", .string("https://www.googleapis.com/auth/cloud-platform"))], nil),
      ([("aud", .string("https://identitytoolkit.googleapis.com/")), ("scope", .string("s"))], nil),
      ([], .wrongAudience), ([("scope", .string(""))], .wrongAudience),
      ([("aud", .string("https://oauth2.googleapis.com/token"))], .wrongAudience),
      ([("aud", .string("https://firestore.googleapis.com.example.com/"))], .wrongAudience),
      ([("aud", .array([.string("https://firestore.googleapis.com/")]))], .wrongAudience),
      // Custom tokens, which users have.
      ([("aud", .string(AccountStore.customTokenAudience)), ("uid", .string("eve"))], .wrongAudience),
      ([("aud", .string(AccountStore.customTokenAudience)), ("scope", .string("s"))], .wrongAudience),
      ([("aud", .string("https://firestore.googleapis.com/")), ("uid", .string("eve"))], .wrongAudience),
      ([("aud", .string("https://firestore.googleapis.com/")), ("sub", .string("eve"))], .wrongSubject),
      ([("aud", .string("https://firestore.googleapis.com/")), ("exp", .integer(1_799_999_000))], .expired),
    ] as [([(String, Value?)], TokenError?)])
  func selfSignedTokensNeedAnAudienceOrScope(claims: [(String, Value?)], error: TokenError?) throws {
    let test = try TestAccounts()
    let program = try Program(try test.accounts.serviceKeys.create(name: "backend", url: Self.url))
    #expect(Self.bearer(try program.sign(claims, at: test.accounts.nowSeconds), test.accounts) == error)
  }

  @Test func revokedKeysInvalidateTheirTokens() throws {
    let test = try TestAccounts()
    let keys = test.accounts.serviceKeys
    let program = try Program(try keys.create(name: "backend", url: Self.url))
    let now = test.accounts.nowSeconds
    let assertion = try program.sign([Self.tokenAudience], at: now)
    let access = Array(try keys.accessToken(for: assertion, at: []).utf8)
    let signed = try program.sign([("scope", .string("s"))], at: now)
    let before = test.accounts.changes
    #expect(try keys.revoke("backend"))
    #expect(try !keys.revoke("backend"))
    #expect(test.accounts.changes > before)
    for again in [test, try test.reopened()] {
      #expect(Self.bearer(access, again.accounts) == .unknownKey)
      #expect(Self.bearer(signed, again.accounts) == .unknownKey)
      #expect(Self.exchange(assertion, again.accounts) == .unknownKey)
    }
    _ = try keys.create(name: "backend", url: Self.url)
    #expect(Self.bearer(access, test.accounts) == .unknownKey)
  }

  @Test func accessTokensExpireAndCannotBeChanged() throws {
    let test = try TestAccounts()
    let keys = test.accounts.serviceKeys
    let program = try Program(try keys.create(name: "backend", url: Self.url))
    let assertion = try program.sign([Self.tokenAudience], at: test.accounts.nowSeconds)
    for token in [Array(try keys.accessToken(for: assertion, at: []).utf8), Array(keys.localAccessToken().utf8)] {
      #expect(Self.bearer(token, test.accounts) == nil)
      for index in token.indices {
        for change in [1, 2, 16] as [UInt8] {
          var changed = token
          changed[index] ^= change
          #expect(Self.bearer(changed, test.accounts) != nil, "byte \(index)")
        }
      }
      for count in 0..<token.count { #expect(Self.bearer(Array(token.prefix(count)), test.accounts) != nil) }
      #expect(Self.bearer(token + token.suffix(1), test.accounts) != nil)
    }
    let token = Array(try keys.accessToken(for: assertion, at: []).utf8)
    test.clock.advance(seconds: Int(ServiceKeys.accessTokenSeconds) - 1)
    #expect(Self.bearer(token, test.accounts) == nil)
    test.clock.advance(seconds: 1)
    #expect(Self.bearer(token, test.accounts) == .expired)
  }

  @Test func customTokensIdentifyUsers() throws {
    let test = try TestAccounts()
    let program = try Program(try test.accounts.serviceKeys.create(name: "backend", url: Self.url))
    let now = test.accounts.nowSeconds
    func check(_ claims: [(String, Value?)]) -> (CustomToken?, TokenError?) {
      do {
        let token = try program.sign(
          [("aud", .string(AccountStore.customTokenAudience)), ("uid", .string("ann"))] + claims, at: now)
        return (try token.withUnsafeBytes { try test.accounts.verifyCustomToken($0) }, nil)
      } catch { return (nil, error as? TokenError) }
    }
    let claims = MapValue([("role", .string("editor"))])
    let (token, none) = check([("claims", .map(claims)), ("tenant_id", .string("t"))])
    #expect(token?.uid == "ann" && token?.claims == claims && token?.tenant == "t" && none == nil)
    #expect(check([("aud", .string("https://firestore.googleapis.com/"))]).1 == .wrongAudience)
    #expect(check([("uid", .string(""))]).1 == .wrongSubject)
    #expect(check([("uid", .string(String(repeating: "x", count: 129)))]).1 == .wrongSubject)
    #expect(
      check([("claims", .map(MapValue([("sub", .string("eve"))])))]).1 == .badClaim("claims must not contain sub"))
    #expect(check([("claims", .string("x"))]).1 == .badClaim("claims must be an object"))
    #expect(check([("iss", .string("eve"))]).1 == .wrongIssuer)
    #expect(check([("exp", .integer(now - 61)), ("iat", .integer(now - 100))]).1 == .expired)
    let unsigned = JSONWebToken.unsigned(
      MapValue([("aud", .string(AccountStore.customTokenAudience)), ("uid", .string("eve"))]))
    #expect(throws: TokenError.unsigned) {
      try Array(unsigned.utf8).withUnsafeBytes { try test.accounts.verifyCustomToken($0) }
    }
    let emulator = try TestAccounts(.emulator).accounts
    #expect(try Array(unsigned.utf8).withUnsafeBytes { try emulator.verifyCustomToken($0) }.uid == "eve")
    #expect(try Array(#"{"uid":"bob"}"#.utf8).withUnsafeBytes { try emulator.verifyCustomToken($0) }.uid == "bob")
  }
}
