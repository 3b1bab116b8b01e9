import DocumentModel
package import WireFormat

/// The record as JSON. The store, the API's responses, exports and imports share one form.
extension User {
  /// The reader of a record, which decides about the fields that are included.
  package enum Reader: Sendable {
    /// The user: learns that a password exists, but nothing of its hash.
    case owner
    /// An administrator: every field that can be imported again.
    case admin
    /// The store: everything.
    case store
  }

  /// The text `REDACTED` in base64, which users see instead of a hash. Clients infer from it that a password
  /// exists.
  package static let redactedHash = "UkVEQUNURUQ="

  /// Appends the record as an object, without empty fields.
  package func append(to json: inout JSONWriter, for reader: Reader) {
    json.object { json in
      json.text("localId", uid)
      json.member("email", email)
      if email != nil { json.boolean("emailVerified", isEmailVerified) }
      json.member("displayName", displayName)
      json.member("photoUrl", photoURL)
      json.member("phoneNumber", phoneNumber)
      if let passwordHash {
        json.member(
          "passwordHash", reader == .owner ? Self.redactedHash : Base64.encode(Array(passwordHash.text.utf8)))
        // Clients expect the salt beside the hash, which contains it already. Imports read it from the hash.
        if reader == .admin { json.member("salt", passwordHash.salt.map { Base64.encode($0) }) }
      }
      if let passwordUpdatedAt { json.number("passwordUpdatedAt", Int(passwordUpdatedAt)) }
      json.int64("validSince", validSince)
      json.flag("disabled", isDisabled)
      json.int64("createdAt", createdAt)
      json.int64("lastLoginAt", lastLoginAt)
      if let lastRefreshAt {
        json.key("lastRefreshAt")
        json.timestamp(Timestamp(uncheckedMicroseconds: lastRefreshAt * 1000))
      }
      json.member("customAttributes", customAttributes)
      json.flag("customAuth", isCustomAuth)
      json.flag("emailLinkSignin", hasEmailLinkSignIn)
      json.member("initialEmail", initialEmail)
      if reader == .store, sessionGeneration != 0 { json.int64("sessionGeneration", sessionGeneration) }
      appendProviders(to: &json)
    }
  }

  /// Appends the member `providerUserInfo`, including the derived providers, or nothing if the user has no
  /// providers. The telephone is last, as after an import in Identity Toolkit.
  package func appendProviders(to json: inout JSONWriter) {
    guard hasPasswordProvider || phoneNumber != nil || !providers.isEmpty else { return }
    json.key("providerUserInfo")
    json.beginArray()
    if hasPasswordProvider, let email {
      json.append(
        LinkedProvider(
          providerID: "password", rawID: email, email: email, displayName: displayName, photoURL: photoURL))
    }
    for provider in providers { json.append(provider) }
    if let phoneNumber {
      json.append(LinkedProvider(providerID: "phone", rawID: phoneNumber), phoneNumber: phoneNumber)
    }
    json.endArray()
  }

  /// Returns the record as stored. ``init(stored:)`` reads it.
  func stored() -> [UInt8] {
    var json = JSONWriter(.compact)
    append(to: &json, for: .store)
    return json.bytes
  }

  /// Reads a record that ``stored()`` wrote. Returns `nil` if it is not valid.
  init?(stored bytes: [UInt8]) {
    guard let tree = try? JSONTree(parsing: bytes), let uid = tree["localId"]?.text,
      let createdAt = tree["createdAt"]?.int64
    else { return nil }
    self.init(uid: uid, createdAt: createdAt)
    email = tree["email"]?.text
    isEmailVerified = tree["emailVerified"]?.flag ?? false
    displayName = tree["displayName"]?.text
    photoURL = tree["photoUrl"]?.text
    phoneNumber = tree["phoneNumber"]?.text
    if let text = tree["passwordHash"]?.text {
      guard let hash = PasswordHash(exported: text) else { return nil }
      passwordHash = hash
    }
    passwordUpdatedAt = tree["passwordUpdatedAt"]?.int64
    validSince = tree["validSince"]?.int64 ?? createdAt / 1000
    isDisabled = tree["disabled"]?.flag ?? false
    lastLoginAt = tree["lastLoginAt"]?.int64
    lastRefreshAt = tree["lastRefreshAt"]?.text.flatMap { Timestamp(rfc3339: $0.utf8) }.map { $0.microseconds / 1000 }
    customAttributes = tree["customAttributes"]?.text
    isCustomAuth = tree["customAuth"]?.flag ?? false
    hasEmailLinkSignIn = tree["emailLinkSignin"]?.flag ?? false
    initialEmail = tree["initialEmail"]?.text
    sessionGeneration = tree["sessionGeneration"]?.int64 ?? 0
    providers = (tree["providerUserInfo"]?.elements ?? []).compactMap(LinkedProvider.init)
  }
}

extension User.LinkedProvider {
  /// Reads an entry of `providerUserInfo`. Returns `nil` for a derived provider and for an entry without an ID at
  /// its provider.
  package init?(_ tree: JSONTree) {
    guard let id = tree["providerId"]?.text, id != "password", id != "phone", !id.isEmpty,
      let rawID = tree["rawId"]?.text ?? tree["federatedId"]?.text, !rawID.isEmpty
    else { return nil }
    self.init(
      providerID: id, rawID: rawID, email: tree["email"]?.text, displayName: tree["displayName"]?.text,
      photoURL: tree["photoUrl"]?.text, screenName: tree["screenName"]?.text)
  }

  /// The ID in the responses of sign-ins: a URL for Google, for historical reasons, and the plain ID for all
  /// others.
  package var federatedID: String {
    providerID == "google.com" ? "https://accounts.google.com/\(rawID)" : rawID
  }
}

extension JSONWriter {
  fileprivate mutating func append(_ provider: User.LinkedProvider, phoneNumber: String? = nil) {
    object { json in
      json.text("providerId", provider.providerID)
      json.text("rawId", provider.rawID)
      if phoneNumber == nil { json.text("federatedId", provider.rawID) }
      json.member("email", provider.email)
      json.member("displayName", provider.displayName)
      json.member("photoUrl", provider.photoURL)
      json.member("screenName", provider.screenName)
      json.member("phoneNumber", phoneNumber)
    }
  }
}
