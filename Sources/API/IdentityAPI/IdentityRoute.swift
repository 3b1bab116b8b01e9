import GatewayCore
import Transport

/// The request that a path of the Identity Toolkit API names (auth-api.md, sections 1 and 4).
package struct IdentityRoute: Equatable {
  /// The kinds of requests, by their names in v1.
  package enum Call: String, CaseIterable {
    case signUp, signInWithPassword, signInWithCustomToken, signInWithIdp, signInWithEmailLink
    case signInWithPhoneNumber, sendVerificationCode
    case lookup, update, delete, createAuthUri, sendOobCode, resetPassword
    case batchGet, batchCreate, batchDelete, query, createSessionCookie
    case projectConfig, config, recaptchaParams, recaptchaConfig, passwordPolicy
    case token
    case emulatorAccounts, emulatorConfig, emulatorOobCodes, emulatorVerificationCodes, emulatorAction
    /// Known but not supported.
    case unimplemented
  }

  package var call: Call
  /// The project in the path.
  package var project: String?

  /// Whether only administrators may make the request.
  var isForAdmins: Bool {
    switch call {
    case .batchGet, .batchCreate, .batchDelete, .query, .createSessionCookie, .config: true
    default: project != nil && !isEmulatorOnly
    }
  }

  /// Whether the request signs a user in.
  package var isSignIn: Bool {
    switch call {
    case .signUp, .signInWithPassword, .signInWithCustomToken, .signInWithIdp, .signInWithEmailLink,
      .signInWithPhoneNumber:
      true
    default: false
    }
  }

  /// Whether the request exists only for test suites.
  var isEmulatorOnly: Bool {
    switch call {
    case .emulatorAccounts, .emulatorConfig, .emulatorOobCodes, .emulatorVerificationCodes, .emulatorAction: true
    default: false
    }
  }

  // MARK: Paths

  /// Returns the route of a path, or `nil` if the path belongs to another API. Then it costs a few comparisons.
  package static func find(_ path: UnsafeRawBufferPointer) -> IdentityRoute? {
    if let rest = path.dropping("/v1/") { return version1(rest) }
    if let rest = path.dropping("/emulator/") { return emulator(rest) }
    if let rest = path.dropping("/identitytoolkit.googleapis.com/") {
      if let rest = rest.dropping("v1/") { return version1(rest) }
      if let rest = rest.dropping("v2/") { return version2(rest) }
      return rest.dropping("emulator/").flatMap(emulator)
    }
    if let rest = path.dropping("/securetoken.googleapis.com/v1/") {
      return rest.elementsEqual("token".utf8) ? IdentityRoute(call: .token) : nil
    }
    if let rest = path.dropping("/v2/") { return version2(rest) }
    return
      (path.dropping("/www.googleapis.com/identitytoolkit/v3/relyingparty/")
      ?? path.dropping("/identitytoolkit/v3/relyingparty/")).flatMap(version3)
  }

  /// Parses a path after `v1/`. Firestore uses the same paths, unless a host name precedes them.
  private static func version1(_ rest: UnsafeRawBufferPointer) -> IdentityRoute? {
    if let verb = rest.dropping("accounts:") { return userCalls(verb) }
    if let rest = rest.dropping("projects/") {
      guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return projectVerb(rest) }
      let project = UnsafeRawBufferPointer(rebasing: rest[..<slash])
      return projectCalls(UnsafeRawBufferPointer(rebasing: rest[(slash + 1)...]), of: project)
    }
    switch String(decoding: rest.prefix(40), as: UTF8.self) {
    case "projects": return IdentityRoute(call: .projectConfig)
    case "token": return IdentityRoute(call: .token)
    case "recaptchaParams": return IdentityRoute(call: .recaptchaParams)
    default: return nil
    }
  }

  private static func version2(_ rest: UnsafeRawBufferPointer) -> IdentityRoute? {
    switch String(decoding: rest.prefix(40), as: UTF8.self) {
    case "recaptchaConfig": return IdentityRoute(call: .recaptchaConfig)
    case "passwordPolicy": return IdentityRoute(call: .passwordPolicy)
    default: break
    }
    if rest.dropping("accounts") != nil { return IdentityRoute(call: .unimplemented) }
    guard let rest = rest.dropping("projects/"), let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    let isConfig = rest[(slash + 1)...].elementsEqual("config".utf8)
    return IdentityRoute(call: isConfig ? .config : .unimplemented, project: text(rest[..<slash]))
  }

  private static func version3(_ rest: UnsafeRawBufferPointer) -> IdentityRoute? {
    let call: Call? =
      switch String(decoding: rest.prefix(40), as: UTF8.self) {
      case "signupNewUser": .signUp
      case "verifyPassword": .signInWithPassword
      case "verifyCustomToken": .signInWithCustomToken
      case "verifyAssertion": .signInWithIdp
      case "getAccountInfo": .lookup
      case "setAccountInfo": .update
      case "deleteAccount": .delete
      case "uploadAccount": .batchCreate
      case "downloadAccount": .batchGet
      case "getOobConfirmationCode": .sendOobCode
      case "resetPassword": .resetPassword
      case "createAuthUri": .createAuthUri
      case "emailLinkSignin": .signInWithEmailLink
      case "sendVerificationCode": .sendVerificationCode
      case "verifyPhoneNumber": .signInWithPhoneNumber
      case "getProjectConfig": .projectConfig
      case "signOutUser": .unimplemented
      default: nil
      }
    return call.map { IdentityRoute(call: $0) }
  }

  private static func emulator(_ rest: UnsafeRawBufferPointer) -> IdentityRoute? {
    if rest.elementsEqual("action".utf8) { return IdentityRoute(call: .emulatorAction) }
    guard let rest = rest.dropping("v1/projects/"), let slash = rest.firstIndex(of: UInt8(ascii: "/")) else {
      return nil
    }
    let call: Call? =
      switch String(decoding: rest[(slash + 1)...].prefix(40), as: UTF8.self) {
      case "accounts": .emulatorAccounts
      case "config": .emulatorConfig
      case "oobCodes": .emulatorOobCodes
      case "verificationCodes": .emulatorVerificationCodes
      default: nil
      }
    return call.flatMap { IdentityRoute(call: $0, project: text(rest[..<slash])) }
  }

  private static func userCalls(_ verb: UnsafeRawBufferPointer) -> IdentityRoute? {
    switch Call(rawValue: String(decoding: verb.prefix(40), as: UTF8.self)) {
    case .signUp?: IdentityRoute(call: .signUp)
    case let call?
    where [
      .signInWithPassword, .signInWithCustomToken, .signInWithIdp, .signInWithEmailLink, .signInWithPhoneNumber,
      .sendVerificationCode, .lookup, .update, .delete, .createAuthUri, .sendOobCode, .resetPassword,
    ].contains(call): IdentityRoute(call: call)
    default: IdentityRoute(call: .unimplemented)
    }
  }

  /// Parses `{project}:createSessionCookie` or `{project}:queryAccounts`.
  private static func projectVerb(_ rest: UnsafeRawBufferPointer) -> IdentityRoute? {
    guard let colon = rest.lastIndex(of: UInt8(ascii: ":")) else { return nil }
    switch String(decoding: rest[(colon + 1)...].prefix(40), as: UTF8.self) {
    case "createSessionCookie": return IdentityRoute(call: .createSessionCookie, project: text(rest[..<colon]))
    case "queryAccounts": return IdentityRoute(call: .query, project: text(rest[..<colon]))
    default: return nil
    }
  }

  private static func projectCalls(
    _ rest: UnsafeRawBufferPointer, of project: UnsafeRawBufferPointer
  ) -> IdentityRoute? {
    guard let rest = rest.dropping("accounts") else {
      return rest.dropping("tenants/").map { _ in IdentityRoute(call: .unimplemented, project: text(project[...])) }
    }
    if rest.isEmpty { return IdentityRoute(call: .signUp, project: text(project[...])) }
    guard let verb = rest.dropping(":") else { return nil }
    let call: Call =
      switch Call(rawValue: String(decoding: verb.prefix(40), as: UTF8.self)) {
      case let call?
      where [
        .lookup, .update, .delete, .sendOobCode, .batchGet, .batchCreate, .batchDelete, .query, .signUp,
        .createSessionCookie,
      ].contains(call): call
      default: .unimplemented
      }
    return IdentityRoute(call: call, project: text(project[...]))
  }

  private static func text(_ part: Slice<UnsafeRawBufferPointer>) -> String {
    var decoded: [UInt8] = []
    let part = UnsafeRawBufferPointer(rebasing: part)
    guard PercentEncoding.decode(part, into: &decoded) else { return String(decoding: part, as: UTF8.self) }
    return String(decoding: decoded, as: UTF8.self)
  }
}
