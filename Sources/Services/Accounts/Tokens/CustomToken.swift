package import DocumentModel

/// A custom token that was checked: whom an admin's program lets sign in (auth-api.md, section 6.2).
package struct CustomToken: Sendable {
  /// Who signs in; made where it does not exist.
  package let uid: String
  /// What the session claims.
  package let claims: MapValue
  /// The tenant, if the user is to be one's.
  package let tenant: String?
}

extension AccountStore {
  /// Who custom tokens are for.
  package static let customTokenAudience =
    "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"

  /// Checks a custom token: signed with a service key of ours that is not revoked, and of now. Emulator mode looks at
  /// nothing but the audience, and takes a bare JSON object for a token too.
  /// - Throws: ``TokenError``.
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
    if let name = ReservedClaims.first(in: claims) { throw .badClaim("claims may not hold \(name)") }
    self.init(uid: uid, claims: claims, tenant: token.text("tenant_id"))
  }
}
