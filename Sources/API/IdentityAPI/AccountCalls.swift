import Accounts
import IdentityService
import WireFormat

/// The calls that read and change one account, and those that send and use mailed codes.
extension IdentityCall {
  static let lookup = IdentityCall(
    kind: "GetAccountInfoResponse",
    { fields in
      var request = AccountsService.Lookup()
      request.idToken = fields.text("idToken")
      request.uids = fields.texts("localId")
      request.emails = fields.texts("email")
      request.phoneNumbers = fields.texts("phoneNumber")
      request.identities = (fields["federatedUserId"]?.elements ?? []).map {
        ($0["providerId"]?.text ?? "", $0["rawId"]?.text ?? "")
      }
      return request
    }, AccountsService.lookup
  ) { found, json in
    // Clients take an empty list for a user, so it is omitted.
    if !found.users.isEmpty { json.array("users", found.users) { $0.append(to: &$1, for: found.reader) } }
  }

  static let update = IdentityCall(
    kind: "SetAccountInfoResponse", work: .passwordIf("password"),
    { fields in
      var request = AccountsService.Update(idToken: fields.text("idToken"), uid: fields.text("localId"))
      request.code = fields.text("oobCode")
      request.email = fields.text("email")
      request.password = fields.text("password")
      request.displayName = fields["displayName"]?.text
      request.photoURL = fields["photoUrl"]?.text
      request.deletedAttributes = fields["deleteAttribute"]?.elements.compactMap { value in
        value.text ?? value.int64.map { "\($0)" }
      }
      request.deletedProviders = fields.texts("deleteProvider")
      request.administration = administration(fields)
      return request
    }, AccountsService.update
  ) { response, json in
    let user = response.user
    json.text("localId", user.uid)
    json.member("email", user.email)
    json.boolean("emailVerified", user.isEmailVerified)
    json.member("displayName", user.displayName)
    json.member("photoUrl", user.photoURL)
    if user.passwordHash != nil { json.text("passwordHash", User.redactedHash) }
    user.appendProviders(to: &json)
    if let session = response.session { json.members(session) }
  }

  /// The fields that only administrators may change, or `nil` if the request contains none.
  private static func administration(_ fields: IdentityRequest) -> AccountsService.Update.Administration? {
    let names: [StaticString] = [
      "customAttributes", "disableUser", "emailVerified", "validSince", "phoneNumber", "createdAt", "lastLoginAt",
      "linkProviderUserInfo", "mfa",
    ]
    guard names.contains(where: { fields[$0] != nil }) else { return nil }
    var changes = AccountsService.Update.Administration()
    changes.phoneNumber = fields.text("phoneNumber")
    changes.customAttributes = fields["customAttributes"]?.text
    changes.isEmailVerified = fields.flag("emailVerified")
    changes.isDisabled = fields.flag("disableUser")
    changes.validSince = fields["validSince"]?.int64
    changes.createdAt = fields["createdAt"]?.int64
    changes.lastLoginAt = fields["lastLoginAt"]?.int64
    changes.link = fields["linkProviderUserInfo"].map { link in
      if link["providerId"]?.text == "phone", let number = link["phoneNumber"]?.text ?? link["rawId"]?.text {
        return .phoneNumber(number)
      }
      return User.LinkedProvider(link).map { .provider($0) } ?? .invalid
    }
    changes.secondFactorCount = fields["mfa"]?["enrollments"]?.elements.count ?? 0
    return changes
  }

  static let delete = IdentityCall(
    kind: "DeleteAccountResponse",
    { AccountsService.Delete(idToken: $0.text("idToken"), uid: $0["localId"].map { $0.text ?? "" }) },
    AccountsService.delete
  ) { _, _ in }

  static let createAuthURI = IdentityCall(
    kind: "CreateAuthUriResponse", work: .providerIfNamed,
    { fields in
      var request = AccountsService.CreateAuthURI(
        identifier: fields.text("identifier"), continueURL: fields.text("continueUri"),
        providerID: fields.text("providerId"))
      request.scopes = (fields.text("oauthScope") ?? "").split { $0 == " " || $0 == "," }.prefix(50).map(String.init)
      request.parameters = (fields["customParameter"]?.members ?? []).prefix(20).compactMap { member in
        member.value.text.map { (name: member.name, value: $0) }
      }
      return request
    }, AccountsService.createAuthURI
  ) { response, json in
    if let page = response.page {
      json.text("providerId", page.providerID)
      json.text("authUri", page.url)
    }
    if let isRegistered = response.isRegistered { json.boolean("registered", isRegistered) }
    json.text("sessionId", response.sessionID)
    guard let account = response.account else { return }
    json.array("allProviders", account.providers) { $1.string($0) }
    json.array("signinMethods", account.methods) { $1.string($0) }
  }

  // MARK: Mailed codes

  static let sendOobCode = IdentityCall(
    kind: "GetOobConfirmationCodeResponse",
    { fields in
      var request = AccountsService.SendOobCode(email: fields.text("email"))
      request.requestType = fields["requestType"].map { type in type.text ?? type.int64.map { "\($0)" } ?? "" }
      request.newEmail = fields.text("newEmail")
      request.idToken = fields.text("idToken")
      request.continueURL = fields.text("continueUrl")
      request.returnsLink = fields.flag("returnOobLink") ?? false
      return request
    }, AccountsService.sendOobCode
  ) { sent, json in
    json.text("email", sent.email)
    guard let code = sent.code else { return }
    json.text("oobCode", code.code)
    json.text("oobLink", code.link)
  }

  static let resetPassword = IdentityCall(
    kind: "ResetPasswordResponse", work: .passwordIf("newPassword"),
    { AccountsService.ResetPassword(code: $0.text("oobCode"), newPassword: $0.text("newPassword")) },
    AccountsService.resetPassword
  ) { code, json in
    // A finder of the link must not learn the address: knowing the address completes the sign-in.
    if code.kind != .emailSignIn { json.text("email", code.email) }
    json.member("newEmail", code.newEmail)
    json.text("requestType", code.kind.rawValue)
  }
}
