import Accounts
import DocumentModel
import Testing
import TestSupport

/// Keys on P-256, key sets of providers, and seals.
@Suite struct EllipticKeyTests {
  /// A private key that exists only for tests.
  private static let pem = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/KHX3JjFjmPfXh8B
    4n97nCUlsidCBi1rfDpUI9WvJQChRANCAARa6Zzm5g7+LwR4+0Iqpz3l8YB5CVSW
    2kjz1Gr32z1qnrgv5aIsfTPmXA0eYrFGVSqV4caU3bvXoXBYjF1KCgQV
    -----END PRIVATE KEY-----
    """
  private static let point = (
    x: "WumcpuYO_i8EePtCKqc95fGAeQlUltpI89Rq99s9ap4", y: "uC_loix9M-ZcDR5isUZVKpXhxpTdu9ehcFiMXUoKBBU"
  )
  private static func set(_ keys: String) -> ProviderKeys? { ProviderKeys(Array(#"{"keys": [\#(keys)]}"#.utf8)) }
  private static let jwk = #"{"kty": "EC", "crv": "P-256", "kid": "e1", "x": "\#(point.x)", "y": "\#(point.y)"}"#

  @Test func signaturesOfManyTextsVerify() throws {
    let key = try #require(EllipticKey(privatePEM: Self.pem))
    let keys = try #require(Self.set(Self.jwk))
    // About one signature in 128 has a number with a leading zero byte, which its two spellings treat differently.
    for index in 0..<400 {
      let text = try JSONWebToken.signed(MapValue([("n", .integer(Int64(index)))]), by: key, id: "e1")
      try keys.verify(try JSONWebToken(Array(text.utf8)))
      let other = try JSONWebToken.signed(MapValue([("n", .integer(-1))]), by: key, id: "e1").split(separator: ".")
      let parts = text.split(separator: ".")
      let mixed = try JSONWebToken(Array("\(parts[0]).\(parts[1]).\(other[2])".utf8))
      #expect(throws: TokenError.badSignature) { try keys.verify(mixed) }
    }
  }

  @Test func onlyPointsOfTheCurveAreKeys() throws {
    for change in [
      ("\"x\": \"W", "\"x\": \"X"), ("P-256", "P-384"), ("\"EC\"", "\"RSA\""), ("\"kid\"", "\"use\": \"enc\", \"kid\""),
      (Self.point.y, ""), (Self.point.y, String(Self.point.y.dropLast(4))), ("\"kid\"", "\"alg\": \"none\", \"kid\""),
    ] {
      #expect(Self.set(Self.jwk.replacing(change.0, with: change.1)) == nil, "\(change)")
    }
    for text in ["", "-----BEGIN PRIVATE KEY-----", RSAKey.make()?.privatePEM ?? ""] {
      #expect(EllipticKey(privatePEM: text) == nil)
    }
    #expect(ProviderKeys(Array("[]".utf8)) == nil)
  }

  @Test func theKindOfAKeyDecidesTheAlgorithm() throws {
    let rsa = try #require(RSAKey.make())
    let key = try #require(EllipticKey(privatePEM: Self.pem))
    let keys = try #require(Self.set(Self.jwk))
    let claims = MapValue([("sub", .string("a"))])
    for (text, error) in [
      (try JSONWebToken.signed(claims, by: rsa, id: "e1"), TokenError.unknownKey),
      (try JSONWebToken.signed(claims, by: key, id: "e2"), .unknownKey),
      (JSONWebToken.unsigned(claims), .unsigned),
    ] {
      let token = try JSONWebToken(Array(text.utf8))
      #expect(throws: error) { try keys.verify(token) }
    }
    let token = try JSONWebToken(Array(try JSONWebToken.signed(claims, by: rsa, id: "e1").utf8))
    #expect(throws: TokenError.algorithm) { try token.verify(with: key) }
  }

  @Test func sealsDependOnTextPurposeAndKey() {
    let (one, other) = (SealingKey(), SealingKey())
    let code = one.code("text".utf8, for: "state")
    #expect(code.count == 32)
    #expect(SealingKey.areEqual(code, one.code("text".utf8, for: "state")))
    for different in [
      one.code("text".utf8, for: "nonce"), one.code("texts".utf8, for: "state"), other.code("text".utf8, for: "state"),
      Array(code.dropLast()), [],
    ] {
      #expect(!SealingKey.areEqual(code, different))
    }
  }
}
