import Accounts
import GatewayCore
import IdentityService
import WireFormat

/// The calls for many accounts at once.
extension IdentityCall {
  static let batchGet = IdentityCall(
    kind: "DownloadAccountResponse", work: .batch,
    { fields in
      let token = fields.parameters.value("nextPageToken") ?? fields.text("nextPageToken")
      return AccountsService.BatchGet(
        limit: fields.number("maxResults"), pageToken: token.flatMap { $0.isEmpty ? nil : $0 })
    }, AccountsService.batchGet
  ) { page, json in
    if !page.users.isEmpty { json.array("users", page.users) { $0.append(to: &$1, for: .admin) } }
    if let token = page.nextPageToken { json.text("nextPageToken", token) }
  }

  static let query = IdentityCall(
    work: .batch,
    { fields in
      var request = AccountsService.Query()
      request.limit = fields.number("limit")
      request.offset = Int(fields["offset"]?.int64 ?? 0)
      request.expressions = (fields["expression"]?.elements ?? []).map {
        .init(email: $0["email"]?.text, uid: $0["userId"]?.text, phoneNumber: $0["phoneNumber"]?.text)
      }
      request.order = .init(rawValue: fields.text("sortBy") ?? "USER_ID")
      request.isDescending = fields.text("order") == "DESC"
      request.returnsUsers = fields.flag("returnUserInfo") ?? true
      return request
    }, AccountsService.query
  ) { found, json in
    json.text("recordsCount", "\(found.count)")
    if !found.users.isEmpty { json.array("userInfo", found.users) { $0.append(to: &$1, for: .admin) } }
  }

  static let batchDelete = IdentityCall(work: .batch) { service, caller, fields in
    let uids = fields.texts("localIds") ?? []
    let errors = try service.batchDelete(.init(uids: uids, isForced: fields.flag("force") ?? false), by: caller)
    return .object { json in
      if !errors.isEmpty { json.array("errors", errors) { append($0, uid: uids[$0.index], to: &$1) } }
    }
  }

  static let batchCreate = IdentityCall(
    kind: "UploadAccountResponse", work: .batch,
    { fields in
      var request = AccountsService.BatchCreate(
        users: (fields["users"]?.elements ?? []).map(importedUser),
        hashParameters: Result { () throws(AccountError) in try HashParameters(fields.fields) })
      request.rejectsDuplicates = fields.flag("sanityCheck") ?? false
      request.overwrites = fields.flag("allowOverwrite") ?? true
      return request
    }, AccountsService.batchCreate
  ) { errors, json in
    if !errors.isEmpty { json.array("error", errors) { append($0, to: &$1) } }
  }

  private static func append(_ error: AccountsService.BatchError, uid: String? = nil, to json: inout JSONWriter) {
    json.object { json in
      json.number("index", error.index)
      if let uid { json.text("localId", uid) }
      json.text("message", error.error.message)
    }
  }

  private static func importedUser(_ record: JSONTree) -> AccountsService.ImportedUser {
    var user = AccountsService.ImportedUser(uid: record["localId"]?.text)
    user.email = record.text("email")
    user.isEmailVerified = record["emailVerified"]?.flag ?? false
    user.phoneNumber = record.text("phoneNumber")
    user.displayName = record.text("displayName")
    user.photoURL = record.text("photoUrl")
    user.isDisabled = record["disabled"]?.flag ?? false
    user.createdAt = record["createdAt"]?.int64
    user.lastLoginAt = record["lastLoginAt"]?.int64 ?? record["lastSignedInAt"]?.int64
    user.validSince = record["validSince"]?.int64
    user.customAttributes = record["customAttributes"]?.text
    user.hasEmailLinkSignIn = record["emailLinkSignin"]?.flag ?? false
    user.isCustomAuth = record["customAuth"]?.flag ?? false
    user.initialEmail = record.text("initialEmail")
    for info in record["providerUserInfo"]?.elements ?? [] {
      if info["providerId"]?.text == "phone", user.phoneNumber == nil {
        user.phoneNumber = (info["phoneNumber"] ?? info["rawId"])?.text
      }
      if let provider = User.LinkedProvider(info) { user.providers.append(provider) }
    }
    user.password = record["rawPassword"]?.text
    user.passwordHash = record.text("passwordHash")
    user.salt = record["salt"]?.text
    user.passwordUpdatedAt = record["passwordUpdatedAt"]?.int64
    return user
  }
}
