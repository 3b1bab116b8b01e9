package import DocumentModel

extension ServiceKeys {
  /// Returns the public properties of keys as JSON: `{"keys": [{"name": …, "keyId": …, "email": …, "url": …,
  /// "createdSeconds": …}]}`.
  package static func list(_ keys: [ServiceKey]) -> [UInt8] {
    let rows = keys.map { key in
      Value.map(
        MapValue([
          ("name", .string(key.name)), ("keyId", .string(key.id)), ("email", .string(key.email)),
          ("url", .string(key.url)), ("createdSeconds", .integer(key.createdSeconds)),
        ]))
    }
    return MapValue([("keys", .array(rows))]).json
  }
}

extension SignedInUser {
  /// Creates the user of a test from `{"uid": …, "claims": {…}}`. Returns `nil` if the request has another form.
  /// The claims `email`, `email_verified` and `phone_number` become properties of the user, and `provider` names
  /// the sign-in method.
  package init?(test request: MapValue, nowSeconds: Int64) {
    guard let uid = request.text("uid"), !uid.isEmpty, uid.utf16.count <= AccountStore.uidCharactersMax else {
      return nil
    }
    var claims = MapValue()
    switch request["claims"] {
    case nil: break
    case .map(let map)?: claims = map
    default: return nil
    }
    self.init(uid: uid, provider: request.text("provider") ?? "custom", authTimeSeconds: nowSeconds)
    email = claims.text("email")
    isEmailVerified = claims["email_verified"] == .boolean(true)
    phoneNumber = claims.text("phone_number")
    customClaims = claims
  }
}
