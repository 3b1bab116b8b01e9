import CSodium
import DocumentModel
import WireFormat

// Access tokens: a program gets one for an assertion that its key signed, and is then an admin.
extension ServiceKeys {
  /// The prefix of every access token.
  package static let accessTokenPrefix = "hat_"
  /// The hosts of the services that client libraries name as the audience of a self-signed JWT.
  private static let audienceHosts = ["firestore", "identitytoolkit", "firebaseauth", "storage", "firebasedatabase"]

  /// Returns an access token in exchange for an assertion: a JWT for the token endpoint, signed by a service key
  /// (RFC 7523). `urls` are the addresses under which clients may reach the server.
  ///
  /// An access token is itself a signed text, so the server stores none, and none outlives its key.
  /// - Throws: ``TokenError`` if the assertion is not valid.
  package func accessToken(for assertion: [UInt8], at urls: [String]) throws(TokenError) -> String {
    let token = try JSONWebToken(assertion)
    let key = try verify(token)
    try Self.checkIssuer(of: token.claims, key)
    try Self.checkTime(of: token.claims, nowSeconds: nowSeconds)
    guard let audience = token.claims.text("aud"),
      ([Self.tokenAudience, key.tokenURL] + urls.map { "\($0)/token" }).contains(where: {
        $0.utf8.elementsEqual(audience.utf8)
      })
    else { throw .wrongAudience }
    return accessToken(of: key.id, seconds: Self.accessTokenSeconds)
  }

  /// Returns an access token for a local process that can read the store, and so has admin access anyway: the
  /// command line, which has no key.
  package func localAccessToken() -> String { accessToken(of: Self.localID, seconds: Self.localSeconds) }

  /// The text in place of a key ID in ``localAccessToken()``, and the lifetime of such a token in seconds.
  private static let localID = "local"
  private static let localSeconds: Int64 = 300

  /// Returns an access token of a key, issued now.
  private func accessToken(of id: String, seconds: Int64) -> String {
    let text = "\(id).\(nowSeconds + seconds)"
    var code = [UInt8](repeating: 0, count: crypto_auth_hmacsha256_bytes())
    crypto_auth_hmacsha256(&code, Array(text.utf8), UInt64(text.utf8.count), secret)
    return "\(Self.accessTokenPrefix)\(text).\(String(decoding: Base64URL.encode(code), as: UTF8.self))"
  }

  /// Returns whether a bearer token has the prefix of an access token.
  package static func isAccessToken(_ token: UnsafeRawBufferPointer) -> Bool {
    token.starts(with: accessTokenPrefix.utf8)
  }

  /// Verifies an access token. Cost: two hashes of a short text.
  /// - Throws: ``TokenError/malformed`` or ``TokenError/badSignature`` if the text is not valid;
  ///   ``TokenError/unknownKey`` if its key was revoked; ``TokenError/expired``.
  package func verifyAccessToken(_ token: UnsafeRawBufferPointer) throws(TokenError) -> Bearer {
    guard Self.isAccessToken(token), token.count < 256 else { throw .malformed }
    let parts = token.dropFirst(Self.accessTokenPrefix.utf8.count).split(
      separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let code = Base64URL.decode(UnsafeRawBufferPointer(rebasing: parts[2])),
      code.count == crypto_auth_hmacsha256_bytes(), let expiry = Int64(String(decoding: parts[1], as: UTF8.self))
    else { throw .malformed }
    let text = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
    guard crypto_auth_hmacsha256_verify(code, text, UInt64(text.count), secret) == 0 else { throw .badSignature }
    let id = String(decoding: parts[0], as: UTF8.self)
    guard id == Self.localID || key(id) != nil else { throw .unknownKey }
    guard expiry > nowSeconds else { throw .expired }
    return .admin(expirySeconds: expiry)
  }

  /// Returns the ID of the key of a verified token, or `nil` if the token belongs to no current key: it is that of a
  /// local process or of a user.
  package func keyID(ofVerified token: UnsafeRawBufferPointer) -> String? {
    if Self.isAccessToken(token) {
      let id = token.dropFirst(Self.accessTokenPrefix.utf8.count).prefix { $0 != UInt8(ascii: ".") }
      return key(String(decoding: id, as: UTF8.self))?.id
    }
    return (try? JSONWebToken(token))?.keyID.flatMap { key($0)?.id }
  }

  /// Verifies a JWT that a program signed with its key and sends as a bearer token in place of an access token.
  ///
  /// Custom tokens are signed with the same key and are given to users. So this JWT must name an API as its
  /// audience, or contain scopes.
  /// - Throws: ``TokenError`` if the token is not valid.
  package func verifySelfSigned(_ token: JSONWebToken) throws(TokenError) -> Bearer {
    let key = try verify(token)
    let claims = token.claims
    try Self.checkIssuer(of: claims, key)
    try Self.checkTime(of: claims, nowSeconds: nowSeconds)
    guard claims["uid"] == nil, claims["user_id"] == nil, claims["claims"] == nil else { throw .wrongAudience }
    if let audience = claims["aud"] {
      guard case .string(let text) = audience, Self.isAPI(text, key) else { throw .wrongAudience }
    } else {
      guard let scope = claims.text("scope"), !scope.isEmpty else { throw .wrongAudience }
    }
    return .admin(expirySeconds: (claims.integer("exp") ?? 0) + Self.skewSeconds)
  }

  /// Returns whether an audience is an API of this server: `https://firestore.googleapis.com/` or the server's own
  /// address.
  private static func isAPI(_ audience: String, _ key: ServiceKey) -> Bool {
    let names = audienceHosts.map { "https://\($0).googleapis.com" } + [key.url]
    return names.contains { name in
      audience.utf8.elementsEqual(name.utf8) || audience.utf8.elementsEqual("\(name)/".utf8)
    }
  }

  private static func checkIssuer(of claims: MapValue, _ key: ServiceKey) throws(TokenError) {
    guard let issuer = claims.text("iss"), issuer.utf8.elementsEqual(key.email.utf8) else { throw .wrongIssuer }
    // A different subject would mean that the program acts for another account, which no key may do.
    guard let subject = claims.text("sub") ?? claims.text("iss"), subject.utf8.elementsEqual(key.email.utf8) else {
      throw .wrongSubject
    }
  }
}
