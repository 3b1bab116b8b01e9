import Accounts
import DocumentModel
import Testing
import TestSupport

/// Signing keys: created once, stored, and rotated in time for verifiers with caches.
@Suite struct SigningKeyTests {
  @Test func keysSurviveARestart() throws {
    let test = try TestAccounts()
    let token = try test.accounts.mintIDToken(for: test.user)
    let again = try test.reopened()
    #expect(try again.verify(token).uid == "ann")
    #expect(try again.accounts.signingKeys.current(.idToken).id == test.accounts.signingKeys.current(.idToken).id)
    #expect(again.accounts.signingKeys.jsonWebKeySet(.idToken) == test.accounts.signingKeys.jsonWebKeySet(.idToken))
  }

  @Test func refusesKeysOfOtherServers() throws {
    let (one, other) = (try TestAccounts(), try TestAccounts())
    _ = try other.accounts.signingKeys.current(.idToken)
    #expect(other.refusal(try one.accounts.mintIDToken(for: one.user)) == .unknownKey)
  }

  @Test func rotationPublishesKeysBeforeUse() throws {
    let test = try TestAccounts()
    let keys = test.accounts.signingKeys
    let old = try test.accounts.mintIDToken(for: test.user)
    let first = try keys.current(.idToken).id
    let second = try keys.rotate(.idToken).id
    #expect(try keys.current(.idToken).id == first)
    #expect(keys.published(.idToken).map(\.id) == [first, second])
    #expect(try test.reopened().accounts.signingKeys.published(.idToken).map(\.id) == [first, second])

    test.clock.advance(seconds: Int(SigningKeys.publishedSeconds - 1))
    #expect(try keys.current(.idToken).id == first)
    let late = try test.accounts.mintIDToken(for: test.user)
    test.clock.advance(seconds: 1)
    #expect(try keys.current(.idToken).id == second)
    #expect(test.refusal(old) == .expired)
    test.clock.advance(seconds: 3598)
    #expect(test.refusal(late) == nil)
    test.clock.advance(seconds: 100)
    #expect(keys.published(.idToken).map(\.id) == [second])
    #expect(keys.published(.sessionCookie).isEmpty)
  }

  @Test func leakedKeysAreReplacedImmediately() throws {
    let test = try TestAccounts()
    let first = try test.accounts.signingKeys.current(.idToken).id
    let next = try test.accounts.signingKeys.rotate(.idToken).id
    let old = try test.accounts.mintIDToken(for: test.user)
    let cookies = try test.accounts.signingKeys.current(.sessionCookie).id
    #expect(test.refusal(old) == nil)
    test.clock.advance(seconds: 1)
    let before = test.accounts.changes
    let second = try test.accounts.signingKeys.rotate(.idToken, immediately: true).id
    #expect(test.accounts.changes > before)
    #expect(try test.accounts.signingKeys.current(.idToken).id == second)
    for opened in [test, try test.reopened()] {
      let keys = opened.accounts.signingKeys
      #expect(keys.published(.idToken).map(\.id) == [second])
      #expect(keys.key(first, for: .idToken) == nil && keys.key(next, for: .idToken) == nil)
      #expect(keys.published(.sessionCookie).map(\.id) == [cookies], "keys of other purposes stay")
      #expect(opened.refusal(old) == .unknownKey)
      #expect(opened.refusal(try opened.accounts.mintIDToken(for: opened.user)) == nil)
    }
  }

  @Test func maintenanceRotatesAndRemovesKeys() throws {
    let test = try TestAccounts()
    let keys = test.accounts.signingKeys
    try keys.maintain()
    #expect(keys.published(.idToken).isEmpty, "no key is created before it is needed")
    let first = try keys.current(.idToken).id
    try keys.maintain()
    #expect(keys.published(.idToken).map(\.id) == [first])
    test.clock.advance(seconds: Int(SigningKeys.rotationSeconds - SigningKeys.publishedSeconds))
    try keys.maintain()
    try keys.maintain()
    let both = keys.published(.idToken).map(\.id)
    #expect(both.count == 2 && both[0] == first)
    #expect(try keys.current(.idToken).id == first)
    test.clock.advance(seconds: 3 * 3600)
    try keys.maintain()
    #expect(keys.published(.idToken).map(\.id) == [both[1]])
    #expect(try test.reopened().accounts.signingKeys.published(.idToken).map(\.id) == [both[1]])
  }

  @Test func publishedTextsContainTheKey() throws {
    let test = try TestAccounts()
    let key = try test.accounts.signingKeys.current(.idToken)
    let set = try #require(MapValue(json: test.accounts.signingKeys.jsonWebKeySet(.idToken)))
    guard case .array(let keys)? = set["keys"], case .map(let jwk)? = keys.first else {
      Issue.record("no key in \(set)")
      return
    }
    #expect(keys.count == 1)
    #expect(
      jwk.text("kid") == key.id && jwk.text("e") == "AQAB" && jwk.text("kty") == "RSA" && jwk.text("alg") == "RS256")
    #expect(jwk.text("n")?.utf8.count == 342)
    let certificates = try #require(MapValue(json: test.accounts.signingKeys.certificates(.idToken)))
    let read = try #require(certificates.text(key.id).flatMap { RSAKey(publicPEM: $0) })
    #expect(read.modulus == key.key.modulus && read.exponent == key.key.exponent)
    let rebuilt = try #require(RSAKey(modulus: key.key.modulus, exponent: key.key.exponent))
    #expect(rebuilt.publicPEM == key.key.publicPEM)
    #expect(rebuilt.privatePEM == nil)
  }

  private static let odd = [UInt8](repeating: 0xFF, count: 256)

  @Test(
    arguments: [
      ([], [1, 0, 1]), ([5], [1, 0, 1]), (odd, []), (odd, [0]), (odd, [1]), (odd, [0, 1]), (odd, [4]),
      (Array(repeating: 0xFF, count: 2000), [1, 0, 1]), (Array(repeating: 0, count: 256), [3]),
    ] as [([UInt8], [UInt8])])
  func refusesInvalidRSAKeys(modulus: [UInt8], exponent: [UInt8]) {
    #expect(RSAKey(modulus: modulus, exponent: exponent) == nil)
  }

  @Test(arguments: ["", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
  func refusesInvalidPEM(text: String) {
    #expect(RSAKey(publicPEM: text) == nil)
    #expect(RSAKey(privatePEM: text) == nil)
  }
}
