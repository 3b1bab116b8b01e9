import DocumentModel
package import WireFormat

/// The record as JSON: what is stored, what the API answers with, and what is exported and imported are one form.
extension User {
  /// Who reads a record.
  package enum Reader: Sendable {
    /// The user: sees that there is a password and nothing of its hash.
    case owner
    /// An administrator: everything that can be imported again.
    case admin
    /// The store: everything.
    case store
  }

  /// What users see in the place of a hash: `REDACTED`. Clients take it to mean that there is a password.
  package static let redactedHash = "UkVEQUNURUQ="

  /// Appends the record as an object. Empty fields are left out.
  package func append(to json: inout JSONWriter, for reader: Reader) {
    json.beginObject()
    json.key("localId")
    json.string(uid)
    json.member("email", email)
    if email != nil {
      json.key("emailVerified")
      json.bool(isEmailVerified)
    }
    json.member("displayName", displayName)
    json.member("photoUrl", photoURL)
    json.member("phoneNumber", phoneNumber)
    if let passwordHash {
      json.member(
        "passwordHash",
        reader == .owner ? Self.redactedHash : Base64.encode(Array(passwordHash.text.utf8)))
    }
    if let passwordUpdatedAt {
      json.key("passwordUpdatedAt")
      json.number(Int(passwordUpdatedAt))
    }
    json.key("validSince")
    json.int64(validSince)
    if isDisabled {
      json.key("disabled")
      json.bool(true)
    }
    json.key("createdAt")
    json.int64(createdAt)
    if let lastLoginAt {
      json.key("lastLoginAt")
      json.int64(lastLoginAt)
    }
    if let lastRefreshAt {
      json.key("lastRefreshAt")
      json.timestamp(Timestamp(uncheckedMicroseconds: lastRefreshAt * 1000))
    }
    json.member("customAttributes", customAttributes)
    json.flag("customAuth", isCustomAuth)
    json.flag("emailLinkSignin", hasEmailLinkSignIn)
    json.member("initialEmail", initialEmail)
    if reader == .store, sessionGeneration != 0 {
      json.key("sessionGeneration")
      json.int64(sessionGeneration)
    }
    appendProviders(to: &json)
    json.endObject()
  }

  /// Appends the member `providerUserInfo`, the derived providers among them; nothing where there are none.
  package func appendProviders(to json: inout JSONWriter) {
    guard hasPasswordProvider || phoneNumber != nil || !providers.isEmpty else { return }
    json.key("providerUserInfo")
    json.beginArray()
    if hasPasswordProvider, let email {
      json.append(
        LinkedProvider(
          providerID: "password", rawID: email, email: email, displayName: displayName, photoURL: photoURL))
    }
    if let phoneNumber {
      json.append(LinkedProvider(providerID: "phone", rawID: phoneNumber), phoneNumber: phoneNumber)
    }
    for provider in providers { json.append(provider) }
    json.endArray()
  }

  /// The bytes to store. Reads back with ``init(stored:)``.
  func stored() -> [UInt8] {
    var json = JSONWriter(.compact)
    append(to: &json, for: .store)
    return json.bytes
  }

  /// Reads what ``stored()`` wrote; `nil` for anything else.
  init?(stored bytes: [UInt8]) {
    guard let tree = try? AccountsJSON(parsing: bytes), let uid = tree["localId"]?.text,
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
  /// Reads an entry of `providerUserInfo`; `nil` for the derived providers and for what has no id at its provider.
  package init?(_ tree: AccountsJSON) {
    guard let id = tree["providerId"]?.text, id != "password", id != "phone", !id.isEmpty,
      let rawID = tree["rawId"]?.text ?? tree["federatedId"]?.text, !rawID.isEmpty
    else { return nil }
    self.init(
      providerID: id, rawID: rawID, email: tree["email"]?.text, displayName: tree["displayName"]?.text,
      photoURL: tree["photoUrl"]?.text, screenName: tree["screenName"]?.text)
  }

  /// The id that the answers of sign-ins carry: an address for Google, as ever, and the plain id for all others.
  package var federatedID: String {
    providerID == "google.com" ? "https://accounts.google.com/\(rawID)" : rawID
  }
}

extension JSONWriter {
  /// Writes a text as a member; nothing where there is none.
  package mutating func member(_ name: StaticString, _ text: String?) {
    guard let text, !text.isEmpty else { return }
    key(name)
    string(text)
  }

  /// Writes a flag as a member; nothing where it is not set.
  package mutating func flag(_ name: StaticString, _ value: Bool) {
    guard value else { return }
    key(name)
    bool(true)
  }

  fileprivate mutating func append(_ provider: User.LinkedProvider, phoneNumber: String? = nil) {
    beginObject()
    key("providerId")
    string(provider.providerID)
    key("rawId")
    string(provider.rawID)
    if phoneNumber == nil {
      key("federatedId")
      string(provider.rawID)
    }
    member("email", provider.email)
    member("displayName", provider.displayName)
    member("photoUrl", provider.photoURL)
    member("screenName", provider.screenName)
    member("phoneNumber", phoneNumber)
    endObject()
  }
}
