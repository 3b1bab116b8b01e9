/// Somebody who has an account: the record of auth-api.md, section 3.
package struct User: Equatable, Sendable {
  /// An identity at another provider that signs this user in.
  package struct LinkedProvider: Equatable, Sendable {
    /// The provider, such as `google.com`; never `password` or `phone`, which follow from the record.
    package var providerID: String
    /// The id of the user at the provider.
    package var rawID: String
    /// The e-mail address as the provider tells it.
    package var email: String?
    /// The name as the provider tells it.
    package var displayName: String?
    /// The picture as the provider tells it.
    package var photoURL: String?
    /// The name that the user has chosen there.
    package var screenName: String?

    /// Creates an identity.
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

  /// The id, 1 to ``UserLimits/uidBytesMax`` bytes; never changes.
  package let uid: String
  /// The e-mail address, in lower case; no two users have the same.
  package var email: String?
  /// Whether the user was shown to read mail sent to ``email``.
  package var isEmailVerified = false
  /// The telephone number in the form E.164; no two users have the same.
  package var phoneNumber: String?
  /// The name shown to others.
  package var displayName: String?
  /// Where a picture is.
  package var photoURL: String?
  /// Whether sign-in is refused.
  package var isDisabled = false
  /// What tells whether a password is this user's.
  package var passwordHash: PasswordHash?
  /// When the password was set, in milliseconds since 1970.
  package var passwordUpdatedAt: Int64?
  /// Tokens issued before are revoked, in seconds since 1970.
  package var validSince: Int64
  /// When the account was made, in milliseconds since 1970.
  package var createdAt: Int64
  /// When the user signed in last, in milliseconds since 1970.
  package var lastLoginAt: Int64?
  /// When an ID token was asked for last, in milliseconds since 1970.
  package var lastRefreshAt: Int64?
  /// Custom claims, a JSON object as text.
  package var customAttributes: String?
  /// Identities at other providers, at most one for each.
  package var providers: [LinkedProvider] = []
  /// Whether a link sent by mail signs the user in.
  package var hasEmailLinkSignIn = false
  /// Whether the user came by a token of an administrator's server.
  package var isCustomAuth = false
  /// The first e-mail address, where it was changed.
  package var initialEmail: String?
  /// Grows whenever all sessions are ended: a refresh token continues one of this generation only. Seconds, as in
  /// ``validSince``, do not tell what came before from what came after in the same one.
  package var sessionGeneration: Int64 = 0

  /// Creates a user who has nothing but an id.
  /// - Parameter now: in milliseconds since 1970.
  package init(uid: String, createdAt now: Int64) {
    self.uid = uid
    createdAt = now
    validSince = now / 1000
  }

  /// Whether the user has no way to sign in again: a guest.
  package var isAnonymous: Bool {
    email == nil && phoneNumber == nil && providers.isEmpty && !isCustomAuth && passwordHash == nil
  }

  /// The ids of all providers, the derived ones among them.
  package var providerIDs: [String] {
    var ids: [String] = []
    if hasPasswordProvider { ids.append("password") }
    if phoneNumber != nil { ids.append("phone") }
    return ids + providers.map(\.providerID)
  }

  /// Whether the provider `password` is derived: an e-mail address with a password or a link.
  package var hasPasswordProvider: Bool { email != nil && (passwordHash != nil || hasEmailLinkSignIn) }

  /// Sets a password, which ends all sessions that began before.
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

  /// Whether this is the user's address, byte by byte.
  package func hasEmail(_ address: String) -> Bool { email?.utf8.elementsEqual(address.utf8) ?? false }

  /// Gives the user another address, which ends all sessions that began before.
  /// - Parameter now: in milliseconds since 1970.
  package mutating func move(to address: String, isVerified: Bool, now: Int64) {
    if initialEmail == nil { initialEmail = email }
    email = address
    isEmailVerified = isVerified
    endSessions(now: now)
  }

  /// Takes a provider away, and what it brought with it.
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

  /// Adds an identity in the place of the one the same provider had.
  package mutating func link(_ provider: LinkedProvider) {
    providers.removeAll { $0.providerID == provider.providerID }
    providers.append(provider)
  }
}

/// The bounds of what an account holds.
package enum UserLimits {
  /// The longest id, in bytes.
  package static let uidBytesMax = 128
  /// The longest e-mail address, in bytes (RFC 5321 allows 254).
  package static let emailBytesMax = 256
  /// The longest password, in bytes: what is hashed must be bounded.
  package static let passwordBytesMax = 4096
  /// The shortest password, in characters.
  package static let passwordCharactersMin = 6
  /// The longest of all other texts, in bytes.
  package static let textBytesMax = 4096
  /// The most identities at other providers.
  package static let providersMax = 32
  /// The longest text of custom claims, in characters.
  package static let claimsCharactersMax = 1000
}
