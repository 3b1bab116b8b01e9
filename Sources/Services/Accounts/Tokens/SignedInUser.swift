package import DocumentModel

/// A user who is signed in, as ID tokens tell of one (auth-api.md, section 6.1).
package struct SignedInUser: Sendable {
  /// The user's id.
  package var uid: String
  /// How the user signed in: `password`, `anonymous`, `custom`, `phone`, `google.com`.
  package var provider: String
  /// When the user signed in, in seconds since 1970. Refreshing does not change it.
  package var authTimeSeconds: Int64
  /// The e-mail address.
  package var email: String?
  /// Whether the address is known to be the user's.
  package var isEmailVerified = false
  /// The phone number, E.164.
  package var phoneNumber: String?
  /// The name to show.
  package var displayName: String?
  /// Where the picture is.
  package var photoURL: String?
  /// The ids at other providers, such as `google.com` → `["1234"]`. E-mail and phone need no entry.
  package var identities: [(provider: String, ids: [String])] = []
  /// The custom claims that an admin gave the user.
  package var customClaims = MapValue()
  /// The claims that a custom token brought; they last as long as the session.
  package var sessionClaims = MapValue()
  /// The second factor of this sign-in: its kind, such as `phone`, and its enrollment id.
  package var secondFactor: (kind: String, id: String)?
  /// The tenant, if the user is one's.
  package var tenant: String?

  /// Creates a user of whom no more is known.
  package init(uid: String, provider: String, authTimeSeconds: Int64) {
    self.uid = uid
    self.provider = provider
    self.authTimeSeconds = authTimeSeconds
  }

  /// The claims of an ID token. On a clash of names the later group wins: profile, custom claims, claims of the session,
  /// reserved ones.
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

/// The claims that only the server makes.
package enum ReservedClaims {
  /// Their names. An admin cannot give a user one of them.
  package static let names = [
    "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti", "nbf",
    "nonce", "sub",
  ]

  /// The first claim of a map that only the server makes; `nil` where there is none.
  package static func first(in claims: MapValue) -> String? { names.first { claims[$0] != nil } }
}

extension AccountsProject {
  /// Who issues ID tokens for the project, as they name it.
  package var issuer: String { "https://securetoken.google.com/\(id)" }
  /// Who issues session cookies for the project, as they name it.
  package var sessionIssuer: String { "https://session.firebase.google.com/\(id)" }
}
