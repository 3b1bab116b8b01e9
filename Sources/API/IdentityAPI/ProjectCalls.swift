import Accounts
import IdentityService
import Transport
import WireFormat

/// The calls about the project, and those with which test suites control an emulator.
extension IdentityCall {
  static let projectConfig = IdentityCall { service, _, request in
    .object { json in
      json.text("projectId", "\(service.accounts.project.number)")
      let host = String(request.host.prefix { $0 != ":" })
      let domains = service.authorizedDomains
      json.array("authorizedDomains", domains + (host.isEmpty || domains.contains(host) ? [] : [host])) {
        $1.string($0)
      }
    }
  }

  static let config = IdentityCall { service, _, _ in response(service.currentSettings, service) }

  static let changeConfig = IdentityCall { service, caller, request in
    response(try service.changeSettings(by: caller) { try $0.apply(request.fields) }, service)
  }

  private static func response(_ settings: AccountsSettings, _ service: AccountsService) -> Response {
    var json = JSONWriter(.compact)
    settings.append(to: &json, project: service.accounts.project.id)
    return Response(body: json.bytes)
  }

  static let recaptchaParameters = IdentityCall { _, _, _ in
    .object("GetRecaptchaParamResponse") { json in
      json.text("recaptchaStoken", "")
      json.text("recaptchaSiteKey", "")
    }
  }

  static let recaptchaConfig = IdentityCall { _, _, _ in
    .object { $0.array("recaptchaEnforcementState", [String]()) { $1.string($0) } }
  }

  static let passwordPolicy = IdentityCall { _, _, _ in
    .object { json in
      json.object("customStrengthOptions") { json in
        json.number("minPasswordLength", UserLimits.passwordCharactersMin)
        json.number("maxPasswordLength", UserLimits.passwordBytesMax)
      }
      json.array("allowedNonAlphanumericCharacters", [String]()) { $1.string($0) }
      json.number("schemaVersion", 1)
      json.text("enforcementState", "OFF")
      json.boolean("forceUpgradeOnSignin", false)
    }
  }

  static let unimplemented = IdentityCall { _, _, _ in
    throw AccountError(.notImplemented, "This server does not support this part of the API.")
  }

  // MARK: Test suites

  static let emulatorConfig = IdentityCall { service, _, _ in emulatorResponse(service.currentSettings) }

  static let changeEmulatorConfig = IdentityCall { service, caller, request in
    var caller = caller
    caller.role = .testSuite
    return emulatorResponse(try service.changeSettings(by: caller) { try $0.apply(request.fields) })
  }

  private static func emulatorResponse(_ settings: AccountsSettings) -> Response {
    .object { json in
      json.object("signIn") { $0.boolean("allowDuplicateEmails", false) }
      json.object("emailPrivacyConfig") { $0.boolean("enableImprovedEmailPrivacy", settings.hidesEmails) }
    }
  }

  static let emulatorAccounts = IdentityCall { service, caller, _ in
    try service.deleteAll(by: caller)
    return .object()
  }

  static let emulatorOobCodes = IdentityCall { service, caller, _ in
    let codes = try service.mailedCodes(by: caller)
    return .object { $0.array("oobCodes", codes) { $0.append(to: &$1) } }
  }

  static let emulatorVerificationCodes = IdentityCall { service, caller, _ in
    let codes = try service.phoneCodes(by: caller)
    return .object { json in
      json.array("verificationCodes", codes) { code, json in
        json.object { json in
          json.text("phoneNumber", code.phoneNumber)
          json.text("sessionInfo", code.sessionInfo)
          json.text("code", code.code)
        }
      }
    }
  }

  static let emulatorAction = IdentityCall(work: .password) { service, caller, request in
    let (code, next) = try service.followLink(
      .init(
        code: request.parameter("oobCode"), newPassword: request.parameter("newPassword"),
        continueURL: request.parameter("continueUrl")), by: caller)
    var response = Response.object { json in
      json.object("authEmulator") { json in
        json.text("success", "The request was successful.")
        json.text("email", code.email)
      }
    }
    guard let next else { return response }
    guard code.kind == .emailSignIn else {
      response.location = next
      return response
    }
    // The app itself completes a sign-in: it receives the code in the redirect.
    let key = PercentEncoding.encode((request.parameter("apiKey") ?? "").utf8)
    response.location =
      "\(next)\(next.contains("?") ? "&" : "?")mode=signIn&lang=en&oobCode=\(code.code)&apiKey=\(key)"
    return response
  }
}
