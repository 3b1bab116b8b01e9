/// A user: the account record of auth-api.md, section 3.
package struct User: Equatable, Sendable {
  /// An identity at another provider with which the user can sign in.
  package struct LinkedProvider: Equatable, Sendable {
    /// The provider, such as `google.com`. Never `password` or `phone`, which are derived from the record.
    package var providerID: String
    package var rawID: String
    /// The e-mail address at the provider.
    package var email: String?
    /// The name at the provider.
    package var displayName: String?
    /// The URL of the picture at the provider.
    package var photoURL: String?
    /// The name that the user has chosen at the provider.
    package var screenName: String?

    package init(
      providerID: String, rawID: String, email: String? = nil, displayName: String? = nil, photoURL: String? = nil,
      screenName: String? = nil
    ) {
      self.providerID = providerID
      self.rawID = rawID
      self.email = email
      self.displayName = displayName
      self.photoURL = photoURL
      self.screenName = screenName
    }
  }

  /// The ID, 1 to ``UserLimits/uidBytesMax`` bytes. It never changes.
  package let uid: String
  /// The e-mail address, in lower case. No two users have the same one.
  package var email: String?
  /// Whether the user has proved that they receive mail sent to ``email``.
  package var isEmailVerified = false
  /// The telephone number in the form E.164. No two users have the same one.
  package var phoneNumber: String?
  package var displayName: String?
  package var photoURL: String?
  package var isDisabled = false
  package var passwordHash: PasswordHash?
  /// The time when the password was set, in milliseconds since 1970.
  package var passwordUpdatedAt: Int64?
  /// Tokens issued before this time are revoked, in seconds since 1970.
  package var validSince: Int64
  /// The creation time, in milliseconds since 1970.
  package var createdAt: Int64
  /// The time of the last sign-in, in milliseconds since 1970.
  package var lastLoginAt: Int64?
  /// The time of the last ID token, in milliseconds since 1970.
  package var lastRefreshAt: Int64?
  /// Custom claims: a JSON object as text.
  package var customAttributes: String?
  /// The identities at other providers, at most one per provider.
  package var providers: [LinkedProvider] = []
  /// Whether the user can sign in with a link sent by mail.
  package var hasEmailLinkSignIn = false
  /// Whether the user signed in with a custom token.
  package var isCustomAuth = false
  /// The first e-mail address, if the address was changed.
  package var initialEmail: String?
  /// A number that grows whenever all sessions are ended. A refresh token is valid for one generation only. The
  /// seconds of ``validSince`` cannot order events within the same second.
  package var sessionGeneration: Int64 = 0

  /// Creates a user with an ID and no other properties.
  /// - Parameter now: in milliseconds since 1970.
  package init(uid: String, createdAt now: Int64) {
    self.uid = uid
    createdAt = now
    validSince = now / 1000
  }

  /// Whether the user is anonymous, and so has no way to sign in again.
  package var isAnonymous: Bool {
    email == nil && phoneNumber == nil && providers.isEmpty && !isCustomAuth && passwordHash == nil
  }

  /// The IDs of all providers, including the derived ones.
  package var providerIDs: [String] {
    var ids: [String] = []
    if hasPasswordProvider { ids.append("password") }
    ids += providers.map(\.providerID)
    if phoneNumber != nil { ids.append("phone") }
    return ids
  }

  /// Whether the user has the derived provider `password`: an e-mail address with a password or a link.
  package var hasPasswordProvider: Bool { email != nil && (passwordHash != nil || hasEmailLinkSignIn) }

  /// Sets a password and ends all sessions that began before.
  /// - Parameter now: in milliseconds since 1970.
  package mutating func setPassword(_ hash: PasswordHash, now: Int64) {
    passwordHash = hash
    passwordUpdatedAt = now
    endSessions(now: now)
  }

  /// Ends all sessions that began before.
  /// - Parameter now: in milliseconds since 1970.
  package mutating func endSessions(now: Int64) {
    validSince = now / 1000
    sessionGeneration += 1
  }

  /// Returns whether `address` is the user's e-mail address, byte by byte.
  package func hasEmail(_ address: String) -> Bool { email?.utf8.elementsEqual(address.utf8) ?? false }

  /// Changes the user's e-mail address and ends all sessions that began before.
  /// - Parameter now: in milliseconds since 1970.
  package mutating func move(to address: String, isVerified: Bool, now: Int64) {
    if initialEmail == nil { initialEmail = email }
    email = address
    isEmailVerified = isVerified
    endSessions(now: now)
  }

  /// Removes a provider, with the fields that belong to it.
  package mutating func unlink(_ providerID: String) {
    switch providerID {
    case "password":
      email = nil
      isEmailVerified = false
      passwordHash = nil
      passwordUpdatedAt = nil
      hasEmailLinkSignIn = false
    case "phone": phoneNumber = nil
    default: providers.removeAll { $0.providerID == providerID }
    }
  }

  /// Adds an identity, and replaces an existing identity of the same provider.
  package mutating func link(_ provider: LinkedProvider) {
    providers.removeAll { $0.providerID == provider.providerID }
    providers.append(provider)
  }
}

/// The limits of an account's fields.
package enum UserLimits {
  /// The longest ID, in bytes.
  package static let uidBytesMax = 128
  /// The longest email address, in bytes (RFC 5321 allows 254).
  package static let emailBytesMax = 256
  /// The longest password, in bytes. Hashing an unlimited text would cost too much.
  package static let passwordBytesMax = 4096
  /// The shortest password, in characters.
  package static let passwordCharactersMin = 6
  /// The longest value of any other text field, in bytes.
  package static let textBytesMax = 4096
  /// The most identities at other providers.
  package static let providersMax = 32
  /// The longest text of custom claims, in characters.
  package static let claimsCharactersMax = 1000
}
