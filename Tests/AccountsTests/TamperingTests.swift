import Accounts
import DocumentModel
import Testing
import TestSupport

/// Changed tokens and tokens signed without the key. The server rejects all of them.
@Suite struct TamperingTests {
  /// Changes every single byte of every part, including the dots.
  @Test func refusesTokensWithAChangedByte() throws {
    let test = try TestAccounts()
    let token = Array(try test.accounts.mintIDToken(for: test.user).utf8)
    #expect(test.refusal(token) == nil)
    let alphabet = Array("Ab0-_.= ".utf8)
    for index in token.indices {
      var changed = token
      changed[index] = try #require(alphabet.first { $0 != token[index] })
      #expect(test.refusal(changed) != nil, "byte \(index)")
      // The nearest spelling: base64 has unused bits at the end of each part.
      changed[index] = token[index] ^ 1
      #expect(test.refusal(changed) != nil, "bit of byte \(index)")
    }
  }

  @Test func refusesMutatedTokens() throws {
    let test = try TestAccounts()
    let tokens = try (0..<4).map { number in
      var user = test.user
      user.uid = "user-\(number)"
      return Array(try test.accounts.mintIDToken(for: user).utf8)
    }
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SplitMix(seed: seed)
    for round in 0..<1500 {
      let original = random.pick(tokens)
      var token = original
      for _ in 0...Int.random(in: 0...2, using: &random) {
        let place = Int.random(in: 0..<max(1, token.count), using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0: token.remove(at: place)
        case 1: token.insert(UInt8.random(in: 0...255, using: &random), at: place)
        case 2: token[place] = UInt8.random(in: 0...255, using: &random)
        case 3: token.removeLast(token.count - place)
        case 4: token.removeFirst(place)
        case 5: token += random.pick(tokens)
        case 6:
          // Replace one part with that of another token.
          let own = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
          let other = random.pick(tokens).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
          guard own.count == 3 else { continue }
          let part = Int.random(in: 0..<3, using: &random)
          token = Array((0..<3).map { $0 == part ? other[$0] : own[$0] }.joined(separator: [UInt8(ascii: ".")]))
        default: token.swapAt(place, Int.random(in: 0..<token.count, using: &random))
        }
        if token.isEmpty { break }
      }
      guard !tokens.contains(token) else { continue }
      #expect(test.refusal(token) != nil, "seed \(seed), round \(round)")
    }
  }

  /// Headers that try to weaken the verification, with the claims and the signature of a valid token.
  @Test(arguments: [
    #"{"alg":"none","typ":"JWT"}"#, #"{"alg":"None","kid":"KID"}"#, #"{"alg":"NONE","kid":"KID"}"#,
    #"{"alg":"HS256","kid":"KID"}"#, #"{"alg":"RS512","kid":"KID"}"#, #"{"alg":"PS256","kid":"KID"}"#,
    #"{"alg":"rs256","kid":"KID"}"#, #"{"alg":"RS256"}"#, #"{"alg":"RS256","kid":""}"#, #"{"alg":"RS256","kid":7}"#,
    #"{"alg":"RS256","kid":"KID","crit":["exp"]}"#, #"{"alg":["RS256"],"kid":"KID"}"#, #"{"kid":"KID"}"#, #"[]"#,
    #"{"alg":"RS256","kid":"KID","jwk":{"kty":"RSA"}}"#, #"{"alg":"RS256","kid":"../../secret"}"#,
  ])
  func refusesWeakHeaders(header: String) throws {
    let test = try TestAccounts()
    let token = try test.accounts.mintIDToken(for: test.user)
    let key = try test.accounts.signingKeys.current(.idToken)
    let text = encode(header.replacing("KID", with: key.id))
    let parts = token.split(separator: ".")
    for forged in ["\(text).\(parts[1]).\(parts[2])", "\(text).\(parts[1])."] {
      #expect(test.refusal(forged) != nil)
      #expect(throws: TokenError.self) { try Array(forged.utf8).withUnsafeBytes { try test.accounts.verifyBearer($0) } }
    }
  }

  /// An HS256 token with the public key as its secret. It deceives verifiers that trust the algorithm in the token.
  @Test func refusesHS256WithThePublicKey() throws {
    let test = try TestAccounts()
    let key = try test.accounts.signingKeys.current(.idToken)
    let forged = encode(#"{"alg":"HS256","kid":"\#(key.id)"}"#) + "." + encode(#"{"sub":"eve"}"#)
    #expect(test.refusal(forged + "." + encode(String(repeating: "x", count: 32))) == .algorithm)
  }

  @Test func refusesForeignKeys() throws {
    let test = try TestAccounts()
    let claims = try test.verify(try test.accounts.mintIDToken(for: test.user)).claims
    let key = try test.accounts.signingKeys.current(.idToken)
    let own = try #require(RSAKey.make())
    #expect(test.refusal(try JSONWebToken.signed(claims, by: own, id: key.id)) == .badSignature)
    #expect(test.refusal(try JSONWebToken.signed(claims, by: own, id: "mine")) == .unknownKey)
  }

  @Test func refusesLongAndMalformedTokens() throws {
    let test = try TestAccounts()
    var user = test.user
    user.customClaims = MapValue([("filler", .string(String(repeating: "x", count: JSONWebToken.bytesMax)))])
    #expect(test.refusal(try test.accounts.mintIDToken(for: user)) == .malformed)
    for text in ["", ".", "..", "...", "a.b", "e30.e30.e30", "e30.e30.", String(repeating: ".", count: 20_000)] {
      #expect(test.refusal(text) == .malformed, "\(text.prefix(20))")
    }
  }

  private func encode(_ text: String) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var out: [UInt8] = []
    var (bits, count) = (0, 0)
    for byte in text.utf8 {
      bits = bits << 8 | Int(byte)
      count += 8
      while count >= 6 {
        count -= 6
        out.append(alphabet[bits >> count & 63])
      }
      bits &= (1 << count) - 1
    }
    if count > 0 { out.append(alphabet[bits << (6 - count) & 63]) }
    return String(decoding: out, as: UTF8.self)
  }
}
