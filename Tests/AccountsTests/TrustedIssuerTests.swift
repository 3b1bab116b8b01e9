import Accounts
import DocumentModel
import Testing
import TestSupport

/// Tokens of other identity providers, such as a Firebase project during a migration.
@Suite struct TrustedIssuerTests {
  private static let issuer = TrustedIssuer(issuer: "https://securetoken.google.com/demo", audience: "demo")

  private static func uid(_ token: String, _ accounts: AccountStore) throws -> String {
    guard case .user(let user) = try Array(token.utf8).withUnsafeBytes({ try accounts.verifyBearer($0) }) else {
      return "admin"
    }
    return user.uid
  }

  @Test(arguments: [true, false])
  func acceptsTokensOfATrustedIssuer(asKeySet: Bool) throws {
    let cloud = try TestAccounts()
    let here = try TestAccounts()
    let token = try cloud.accounts.mintIDToken(for: cloud.user)
    #expect(throws: TokenError.unknownKey) { try Self.uid(token, here.accounts) }
    let keys = cloud.accounts.signingKeys
    let text = asKeySet ? keys.jsonWebKeySet(.idToken) : keys.certificates(.idToken)
    #expect(try here.accounts.trustedIssuers.trust(Self.issuer, keys: text) == 1)
    #expect(try Self.uid(token, here.accounts) == "ann")
    #expect(try Self.uid(try here.accounts.mintIDToken(for: here.user), here.accounts) == "ann")
    // If the owner stops publishing a key, it is no longer valid.
    let other = try TestAccounts()
    _ = try other.accounts.signingKeys.current(.idToken)
    let before = here.accounts.changes
    try here.accounts.trustedIssuers.trust(Self.issuer, keys: other.accounts.signingKeys.jsonWebKeySet(.idToken))
    #expect(throws: TokenError.unknownKey) { try Self.uid(token, here.accounts) }
    #expect(here.accounts.changes > before)
  }

  @Test func issuersVouchOnlyForThemselves() throws {
    let cloud = try TestAccounts(project: "cloud")
    let here = try TestAccounts()
    let key = try cloud.accounts.signingKeys.current(.idToken)
    let set = cloud.accounts.signingKeys.jsonWebKeySet(.idToken)
    let issuer = TrustedIssuer(issuer: "https://securetoken.google.com/cloud", audience: "cloud")
    try here.accounts.trustedIssuers.trust(issuer, keys: set)
    #expect(try Self.uid(try cloud.accounts.mintIDToken(for: cloud.user), here.accounts) == "ann")
    let claims = try cloud.verify(try cloud.accounts.mintIDToken(for: cloud.user)).claims
    for (name, value, error) in [
      ("iss", .string("https://securetoken.google.com/demo"), .unknownKey), ("aud", .string("demo"), .wrongAudience),
      ("exp", .integer(cloud.accounts.nowSeconds), .expired), ("sub", nil, .wrongSubject),
    ] as [(String, Value?, TokenError)] {
      var changed = claims
      changed[name] = value
      #expect(throws: error) { try Self.uid(try JSONWebToken.signed(changed, by: key.key, id: key.id), here.accounts) }
    }
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"keys":[]}"#, #"{"keys":[{"kty":"EC","kid":"a","crv":"P-256"}]}"#,
    #"{"keys":[{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}]}"#, #"{"a":"-----BEGIN CERTIFICATE-----\nx"}"#,
  ])
  func refusesTextsWithoutKeys(text: String) throws {
    let test = try TestAccounts()
    #expect(throws: TokenError.self) { try test.accounts.trustedIssuers.trust(Self.issuer, keys: Array(text.utf8)) }
    #expect(test.accounts.changes == 0)
  }

  @Test func userStatesInvalidateForeignTokens() throws {
    let cloud = try TestAccounts()
    let here = try TestAccounts()
    let token = try cloud.accounts.mintIDToken(for: cloud.user)
    try here.accounts.trustedIssuers.trust(Self.issuer, keys: cloud.accounts.signingKeys.jsonWebKeySet(.idToken))
    try here.accounts.userStates.set(UserState(isDisabled: true), of: "ann")
    #expect(throws: TokenError.userDisabled) { try Self.uid(token, here.accounts) }
  }
}
