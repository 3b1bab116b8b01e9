package import DocumentModel

/// A signed-in user, with the facts that ID tokens contain (auth-api.md, section 6.1).
package struct SignedInUser: Sendable {
  package var uid: String
  /// The sign-in method: `password`, `anonymous`, `custom`, `phone`, `google.com`.
  package var provider: String
  /// The time of the sign-in, in seconds since 1970. Refreshing does not change it.
  package var authTimeSeconds: Int64
  package var email: String?
  /// Whether the user has proved that the address is theirs.
  package var isEmailVerified = false
  /// The phone number, in the form E.164.
  package var phoneNumber: String?
  package var displayName: String?
  package var photoURL: String?
  /// The IDs at other providers, such as `google.com` → `["1234"]`. E-mail and phone need no entry.
  package var identities: [(provider: String, ids: [String])] = []
  package var customClaims = MapValue()
  /// The claims of the custom token. They last as long as the session.
  package var sessionClaims = MapValue()
  /// The second factor of this sign-in: its kind, such as `phone`, and its enrollment ID.
  package var secondFactor: (kind: String, id: String)?
  /// The tenant of the user, if any.
  package var tenant: String?

  /// Creates a user with no other properties.
  package init(uid: String, provider: String, authTimeSeconds: Int64) {
    self.uid = uid
    self.provider = provider
    self.authTimeSeconds = authTimeSeconds
  }

  /// Returns the claims of an ID token. If a name occurs more than once, the later group wins: profile, custom
  /// claims, claims of the session, reserved claims.
  package func claims(project: AccountsProject, issuedSeconds: Int64, lifetimeSeconds: Int64) -> MapValue {
    var claims = MapValue()
    func set(_ name: String, _ text: String?) {
      if let text, !text.isEmpty { claims[name] = .string(text) }
    }
    set("name", displayName)
    set("picture", photoURL)
    for (name, value) in customClaims.entries + sessionClaims.entries { claims[name] = value }
    for name in ReservedClaims.names { claims[name] = nil }
    set("provider_id", provider == "anonymous" ? "anonymous" : nil)
    set("email", email)
    if email != nil { claims["email_verified"] = .boolean(isEmailVerified) }
    set("phone_number", phoneNumber)
    claims["iss"] = .string(project.issuer)
    claims["aud"] = .string(project.id)
    claims["sub"] = .string(uid)
    claims["user_id"] = .string(uid)
    claims["iat"] = .integer(issuedSeconds)
    claims["exp"] = .integer(issuedSeconds + lifetimeSeconds)
    claims["auth_time"] = .integer(authTimeSeconds)
    claims["firebase"] = .map(firebase)
    return claims
  }

  private var firebase: MapValue {
    var all = MapValue()
    for (provider, ids) in identities { all[provider] = .array(ids.map(Value.string)) }
    if let email, !email.isEmpty { all["email"] = .array([.string(email)]) }
    if let phoneNumber, !phoneNumber.isEmpty { all["phone"] = .array([.string(phoneNumber)]) }
    var firebase = MapValue([("identities", .map(all)), ("sign_in_provider", .string(provider))])
    if let secondFactor {
      firebase["sign_in_second_factor"] = .string(secondFactor.kind)
      firebase["second_factor_identifier"] = .string(secondFactor.id)
    }
    if let tenant { firebase["tenant"] = .string(tenant) }
    return firebase
  }
}

/// The claims that only the server may set.
package enum ReservedClaims {
  /// Their names. An admin cannot give a user one of them.
  package static let names = [
    "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti", "nbf",
    "nonce", "sub",
  ]

  /// Returns the first reserved claim in a map, or `nil` if the map contains none.
  package static func first(in claims: MapValue) -> String? { names.first { claims[$0] != nil } }
}

extension AccountsProject {
  /// The issuer of the project's ID tokens.
  package var issuer: String { "https://securetoken.google.com/\(id)" }
  /// The issuer of the project's session cookies.
  package var sessionIssuer: String { "https://session.firebase.google.com/\(id)" }
}
