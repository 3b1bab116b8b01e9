import Accounts
import DocumentModel

/// The rules for an ID token that the token endpoint of a provider returns (OpenID Connect Core 1.0, section 3.1.3.7).
struct ProviderToken {
  let provider: SignInProvider
  let metadata: ProviderMetadata
  /// The nonce with which the token was requested.
  let nonce: String
  let nowSeconds: Int64

  /// Returns the claims of a token after verifying it: signature, issuer, audience, authorized party, nonce, times and
  /// subject.
  /// - Throws: ``SignInFailure`` if the token is not valid, or its keys cannot be fetched.
  func claims(of text: String) throws(SignInFailure) -> MapValue {
    let token: JSONWebToken
    do throws(TokenError) { token = try JSONWebToken(Array(text.utf8)) } catch { throw ProviderMetadata.failure(error) }
    try metadata.verify(token)
    do throws(TokenError) { try check(token.claims) } catch { throw ProviderMetadata.failure(error) }
    return token.claims
  }

  private func check(_ claims: MapValue) throws(TokenError) {
    guard claims.text("iss").map({ $0.utf8.elementsEqual(provider.issuer.utf8) }) == true else { throw .wrongIssuer }
    try checkAudience(claims)
    guard claims.text("nonce").map({ $0.utf8.elementsEqual(nonce.utf8) }) == true else {
      throw .badClaim("nonce is not that of the request")
    }
    let skew = ProviderLimits.clockSkewSeconds
    guard let expiry = claims.integer("exp"), let issued = claims.integer("iat") else {
      throw .badClaim("exp or iat is missing")
    }
    guard expiry > nowSeconds - skew else { throw .expired }
    guard issued <= nowSeconds + skew else { throw .usedTooEarly }
    if let start = claims.integer("nbf"), start > nowSeconds + skew { throw .usedTooEarly }
    guard let subject = claims.text("sub"), (1...255).contains(subject.utf8.count) else { throw .wrongSubject }
  }

  /// Checks that the token is for this server. A token for several audiences must name this server as its authorized
  /// party.
  private func checkAudience(_ claims: MapValue) throws(TokenError) {
    let isOwn: (Value?) -> Bool = { value in
      if case .string(let text)? = value { return text.utf8.elementsEqual(provider.clientID.utf8) }
      return false
    }
    if case .array(let audiences)? = claims["aud"] {
      guard audiences.contains(where: isOwn), audiences.count == 1 || claims["azp"] != nil else {
        throw .wrongAudience
      }
    } else {
      guard isOwn(claims["aud"]) else { throw .wrongAudience }
    }
    if claims["azp"] != nil, !isOwn(claims["azp"]) { throw .badClaim("azp is another client") }
  }
}
