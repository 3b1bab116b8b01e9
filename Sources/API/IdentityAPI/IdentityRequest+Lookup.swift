import Accounts
import WireFormat

/// Requests that read or delete accounts.
extension IdentityRequest {
  func lookup() throws -> Response {
    guard isAdmin else {
      guard fields["localId"] == nil, fields["email"] == nil, fields["phoneNumber"] == nil else {
        throw AccountError(.insufficientPermission)
      }
      let (user, _) = try owner()
      return users([user], for: .owner)
    }
    if text("idToken") != nil { return users([try owner().user], for: .admin) }
    var found: [User] = []
    func add(_ user: User?) {
      guard let user, !found.contains(where: { $0.uid.utf8.elementsEqual(user.uid.utf8) }) else { return }
      found.append(user)
    }
    let store = accounts.users
    let ids = texts("localId")
    let emails = texts("email")
    let numbers = texts("phoneNumber")
    let identities = fields["federatedUserId"]?.elements ?? []
    guard ids.count + emails.count + numbers.count + identities.count <= Self.lookupsMax else {
      throw AccountError(.localIDListExceedsLimit)
    }
    for uid in ids { add(try store.user(uid)) }
    for email in emails { add(try store.user(email: email.lowercased())) }
    for number in numbers { add(try store.user(phoneNumber: number)) }
    for identity in identities {
      guard let providerID = identity["providerId"]?.text, let rawID = identity["rawId"]?.text else { continue }
      switch providerID {
      case "password": add(try store.user(email: rawID.lowercased()))
      case "phone": add(try store.user(phoneNumber: rawID))
      default: add(try store.user(providerID: providerID, rawID: rawID))
      }
    }
    return users(found, for: .admin)
  }

  /// The largest number of accounts in one lookup.
  private static let lookupsMax = 1000

  /// The strings in a repeated field, which may also be a single string.
  func texts(_ field: StaticString) -> [String] {
    guard let value = fields[field] else { return [] }
    return value.text.map { [$0] } ?? value.elements.compactMap(\.text)
  }

  /// A response with a list of users. The list is omitted if it is empty, because clients take an empty list for a
  /// user.
  private func users(_ users: [User], for reader: User.Reader) -> Response {
    response("GetAccountInfoResponse") { json in
      guard !users.isEmpty else { return }
      json.key("users")
      json.beginArray()
      for user in users { user.append(to: &json, for: reader) }
      json.endArray()
    }
  }

  /// Returns the sign-in methods of an address. If email addresses are hidden, the response contains none.
  func createAuthUri() throws -> Response {
    if text("providerId") != nil {
      throw AccountError(.notImplemented, "The app itself must open the sign-in pages of other providers.")
    }
    guard let identifier = text("identifier") else { throw AccountError(.missingIdentifier) }
    guard text("continueUri") != nil else { throw AccountError(.missingContinueURI) }
    let email: String
    do { email = try UserFields.email(identifier) } catch { throw AccountError(.invalidIdentifier) }
    let sessionID = RandomBytes.text(16)
    guard !settings.hidesEmails else {
      return response("CreateAuthUriResponse") { $0.text("sessionId", sessionID) }
    }
    let user = try accounts.users.user(email: email)
    return response("CreateAuthUriResponse") { json in
      json.boolean("registered", user != nil)
      json.text("sessionId", sessionID)
      guard let user else { return }
      var methods = user.passwordHash == nil ? [] : ["password"]
      if user.hasEmailLinkSignIn { methods.append("emailLink") }
      methods += user.providers.map(\.providerID)
      for (name, values) in [
        ("allProviders", user.providerIDs.filter { $0 != "phone" }), ("signinMethods", methods),
      ] as [(StaticString, [String])] {
        json.key(name)
        json.beginArray()
        for value in values { json.string(value) }
        json.endArray()
      }
    }
  }

  func delete() throws -> Response {
    let uid: String
    if isAdmin, let id = text("localId") {
      uid = id
    } else {
      guard fields["localId"] == nil else { throw AccountError(.insufficientPermission) }
      guard text("idToken") != nil else { throw AccountError(isAdmin ? .missingLocalID : .missingIDToken) }
      let (user, token) = try owner()
      guard settings.allowsDeletion else { throw AccountError(.adminOnlyOperation) }
      if !user.isAnonymous { try requireRecent(token) }
      uid = user.uid
    }
    guard try accounts.remove([uid]).isEmpty == false else { throw AccountError(.userNotFound) }
    audit(.deleted, uid)
    return response("DeleteAccountResponse") { _ in }
  }
}
