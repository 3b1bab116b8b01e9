package import DocumentModel

/// A verified custom token, with which an admin's program lets a user sign in (auth-api.md, section 6.2).
package struct CustomToken: Sendable {
  /// The user's ID. The user is created if it does not exist.
  package let uid: String
  /// The additional claims of the session.
  package let claims: MapValue
  /// The tenant of the user, if any.
  package let tenant: String?
}

extension AccountStore {
  /// The audience of custom tokens.
  package static let customTokenAudience =
    "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"

  /// Verifies a custom token: it must be signed with a service key that is not revoked, and its times must be
  /// valid. Emulator mode checks only the audience, and also accepts a bare JSON object as a token.
  /// - Throws: ``TokenError`` if the token is not valid.
  package func verifyCustomToken(_ text: UnsafeRawBufferPointer) throws(TokenError) -> CustomToken {
    guard text.count <= JSONWebToken.bytesMax else { throw .malformed }
    if mode == .emulator, let claims = MapValue(json: text) { return try CustomToken(claims) }
    let token = try JSONWebToken(text)
    if mode == .production {
      let key = try serviceKeys.verify(token)
      let claims = token.claims
      for name in ["iss", "sub"] {
        guard let email = claims.text(name), email.utf8.elementsEqual(key.email.utf8) else { throw .wrongIssuer }
      }
      try ServiceKeys.checkTime(of: claims, nowSeconds: nowSeconds)
    }
    guard let audience = token.claims.text("aud"), audience.utf8.elementsEqual(Self.customTokenAudience.utf8) else {
      throw .wrongAudience
    }
    return try CustomToken(token.claims)
  }
}

extension CustomToken {
  fileprivate init(_ token: MapValue) throws(TokenError) {
    guard let uid = token.text("uid") ?? token.text("user_id"), !uid.isEmpty,
      uid.utf16.count <= AccountStore.uidCharactersMax
    else { throw .wrongSubject }
    var claims = MapValue()
    switch token["claims"] {
    case nil, .null?: break
    case .map(let map)?: claims = map
    default: throw .badClaim("claims must be an object")
    }
    if let name = ReservedClaims.first(in: claims) { throw .badClaim("claims must not contain \(name)") }
    self.init(uid: uid, claims: claims, tenant: token.text("tenant_id"))
  }
}
