import Accounts
import WireFormat

/// Requests about the project: its settings, and the requests with which test suites control an emulator.
extension IdentityRequest {
  /// The project's number, which parts of the API use instead of its ID. It is derived from the ID.
  var projectNumber: String {
    let hash = accounts.project.id.utf8.reduce(UInt64(14_695_981_039_346_656_037)) {
      ($0 ^ UInt64($1)) &* 1_099_511_628_211
    }
    return "\(100_000_000_000 + hash % 900_000_000_000)"
  }

  func projectConfig() -> Response {
    response(nil) { json in
      json.text("projectId", projectNumber)
      json.key("authorizedDomains")
      json.beginArray()
      json.string("localhost")
      let host = origin.split(separator: "/").last.map { $0.prefix { $0 != ":" } } ?? ""
      if !host.isEmpty, host != "localhost" { json.string(String(host)) }
      json.endArray()
    }
  }

  func config(isForEmulator: Bool) throws -> Response {
    let fields = fields
    let settings = isRead ? settings : try toolkit.changeSettings { try $0.apply(fields) }
    if !isRead { audit(.settingsChanged) { $0.actor = isForEmulator ? .testSuite : .admin } }
    var json = JSONWriter(.compact)
    guard isForEmulator else {
      settings.append(to: &json, project: accounts.project.id)
      return Response(body: json.bytes)
    }
    return response(nil) { json in
      json.key("signIn")
      json.beginObject()
      json.boolean("allowDuplicateEmails", false)
      json.endObject()
      json.key("emailPrivacyConfig")
      json.beginObject()
      json.boolean("enableImprovedEmailPrivacy", settings.hidesEmails)
      json.endObject()
    }
  }

  func fixedResponse(_ call: IdentityRoute.Call) -> Response {
    switch call {
    case .recaptchaParams:
      response("GetRecaptchaParamResponse") { json in
        json.text("recaptchaStoken", "")
        json.text("recaptchaSiteKey", "")
      }
    case .recaptchaConfig:
      response(nil) { json in
        json.key("recaptchaEnforcementState")
        json.beginArray()
        json.endArray()
      }
    default:
      response(nil) { json in
        json.key("customStrengthOptions")
        json.beginObject()
        json.key("minPasswordLength")
        json.number(UserLimits.passwordCharactersMin)
        json.key("maxPasswordLength")
        json.number(UserLimits.passwordBytesMax)
        json.endObject()
        json.key("allowedNonAlphanumericCharacters")
        json.beginArray()
        json.endArray()
        json.key("schemaVersion")
        json.number(1)
        json.text("enforcementState", "OFF")
        json.boolean("forceUpgradeOnSignin", false)
      }
    }
  }

  func emulatorAccounts() throws -> Response {
    guard isDelete else { throw AccountError(.notFound) }
    try accounts.users.removeAll()
    accounts.audit(AccountEvent(.emptied, by: .testSuite, from: address))
    return response(nil) { _ in }
  }
}
