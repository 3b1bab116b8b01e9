package import GatewayCore
import Transport

// The URLs of the Identity Toolkit and Secure Token APIs (auth-api.md, sections 1 and 4). Clients add the host names
// of the services in emulator mode.
extension IdentityHandler {
  /// The requests that the API handles.
  package static var routes: [Route<IdentityHandler>] {
    let rows = userRows + projectRows + otherRows + emulatorRows
    // Below `accounts:` and the paths of projects every other path gets an error that says so.
    let prefix = "/v1/projects/{project}"
    return rows + [
      row(unimplementedMethods, hosted("/v1/{call...}"), .unimplemented, when: { begins($0, "accounts:", after: 1) }),
      row(unimplementedMethods, hosted("/v2/{call...}"), .unimplemented, when: { begins($0, "accounts", after: 1) }),
      row(
        unimplementedMethods, hosted("\(prefix)/{call...}"), .unimplemented, access: .administrator,
        when: { begins($0, "accounts:", after: 3) }),
      row(
        unimplementedMethods, hosted("\(prefix)/tenants/{tenant}") + hosted("\(prefix)/tenants/{tenant}/{call...}"),
        .unimplemented, access: .administrator),
      row(
        unimplementedMethods, hosted("/v2/projects/{project}/{call...}"), .unimplemented, access: .administrator),
    ]
  }

  /// The calls of users, by their names in v1 and in v3.
  private static var userRows: [Route<IdentityHandler>] {
    let calls: [(name: String, oldName: String, call: IdentityCall)] = [
      ("signUp", "signupNewUser", .signUp), ("signInWithPassword", "verifyPassword", .signInWithPassword),
      ("signInWithCustomToken", "verifyCustomToken", .signInWithCustomToken),
      ("signInWithIdp", "verifyAssertion", .signInWithIdp),
      ("signInWithEmailLink", "emailLinkSignin", .signInWithEmailLink),
      ("signInWithPhoneNumber", "verifyPhoneNumber", .signInWithPhoneNumber),
      ("sendVerificationCode", "sendVerificationCode", .sendVerificationCode),
      ("lookup", "getAccountInfo", .lookup), ("update", "setAccountInfo", .update),
      ("delete", "deleteAccount", .delete), ("createAuthUri", "createAuthUri", .createAuthURI),
      ("sendOobCode", "getOobConfirmationCode", .sendOobCode), ("resetPassword", "resetPassword", .resetPassword),
    ]
    return calls.flatMap { name, oldName, call in
      let paths = hosted("/v1/accounts:\(name)")
      return [
        row(
          .post, paths + version3(oldName), call, kind: name.hasPrefix("sign") ? .signIn : .accounts,
          repeatedCalls.contains(name) ? .always : .never),
        otherMethods(paths),
      ]
    }
  }

  /// The calls of administrators, whose paths name the project.
  private static var projectRows: [Route<IdentityHandler>] {
    let project = "/v1/projects/{project}"
    let calls: [(name: String, methods: HTTPMethods, call: IdentityCall)] = [
      (":lookup", .post, .lookup), (":update", .post, .update), (":delete", .post, .delete),
      (":sendOobCode", .post, .sendOobCode), (":batchGet", [.get, .post], .batchGet),
      (":batchCreate", .post, .batchCreate), (":batchDelete", .post, .batchDelete), (":query", .post, .query),
      (":createSessionCookie", .post, .createSessionCookie), (":signUp", .post, .signUp), ("", .post, .signUp),
    ]
    return calls.flatMap { name, methods, call in
      let paths = hosted("\(project)/accounts\(name)")
      let kind: RequestKind = ["", ":signUp"].contains(name) ? .signIn : .accounts
      let repetition = repeatedCalls.contains(String(name.dropFirst())) ? RequestRepetition.always : .never
      return [row(methods, paths, call, kind: kind, access: .administrator, repetition), otherMethods(paths)]
    } + [
      row(.post, hosted("\(project):createSessionCookie"), .createSessionCookie, access: .administrator, .always),
      row(.post, hosted("\(project):queryAccounts"), .query, access: .administrator, .always),
      row(.post, version3("uploadAccount"), .batchCreate, access: .administrator),
      row([.get, .post], version3("downloadAccount"), .batchGet, access: .administrator, .always),
      row(.get, hosted("/v2/projects/{project}/config"), .config, access: .administrator),
      row(.patch, hosted("/v2/projects/{project}/config"), .changeConfig, access: .administrator),
      otherMethods(hosted("/v2/projects/{project}/config")),
    ]
  }

  /// The calls that leave the same state, or only a spare token, if a client's request is done twice.
  private static let repeatedCalls: Set<String> = [
    "signInWithPassword", "lookup", "createAuthUri", "batchGet", "query", "createSessionCookie",
  ]

  private static var otherRows: [Route<IdentityHandler>] {
    [
      row(.post, hosted("/v1/token") + ["/securetoken.googleapis.com/v1/token"], .token, .always),
      row([.get, .post], hosted("/v1/projects") + version3("getProjectConfig"), .projectConfig, .always),
      row(.get, hosted("/v1/recaptchaParams"), .recaptchaParameters),
      row(.get, hosted("/v2/recaptchaConfig"), .recaptchaConfig),
      row(.get, hosted("/v2/passwordPolicy"), .passwordPolicy),
      row(unimplementedMethods, version3("signOutUser"), .unimplemented),
    ]
  }

  /// The calls of test suites. Administrators may read the codes that were sent in every mode.
  private static var emulatorRows: [Route<IdentityHandler>] {
    let project = "/emulator/v1/projects/{project}"
    return [
      row(.get, hosted("/emulator/action"), .emulatorAction, access: .emulator),
      row(.delete, hosted("\(project)/accounts"), .emulatorAccounts, access: .emulator),
      row(.get, hosted("\(project)/config"), .emulatorConfig, access: .administratorOrEmulator),
      row(.patch, hosted("\(project)/config"), .changeEmulatorConfig, access: .administratorOrEmulator),
      row(.get, hosted("\(project)/oobCodes"), .emulatorOobCodes, access: .administratorOrEmulator),
      row(
        .get, hosted("\(project)/verificationCodes"), .emulatorVerificationCodes, access: .administratorOrEmulator),
    ]
  }

  // MARK: Rows

  private static func row(
    _ methods: HTTPMethods, _ paths: [String], _ call: IdentityCall, kind: RequestKind = .accounts,
    access: RouteAccess = .caller, _ repetition: RequestRepetition = .never,
    when condition: Route<IdentityHandler>.Condition? = nil
  ) -> Route<IdentityHandler> {
    let namesProject = paths.allSatisfy(namesProject)
    return Route(methods, paths, kind: kind, access: access, repetition: repetition, when: condition) {
      handler, request, routed in
      try handler.handle(call, request, routed, namesProject: namesProject)
    }
  }

  /// Whether the project is a segment of a path. Compares bytes: a server does this for many paths when it starts.
  private static func namesProject(_ path: String) -> Bool {
    path.utf8.split(separator: UInt8(ascii: "/")).contains { $0.starts(with: "{project}".utf8) }
  }

  /// Refuses the other methods of paths that the rows for unimplemented calls would match too.
  private static func otherMethods(_ paths: [String]) -> Route<IdentityHandler> {
    Route(.all, paths, kind: .accounts, access: .everyone) { _, _, _ in throw RouteError.wrongMethod }
  }

  private static let unimplementedMethods: HTTPMethods = [.get, .head, .post, .put, .patch, .delete]

  /// A path with and without the host name that clients add.
  private static func hosted(_ path: String) -> [String] { [path, "/identitytoolkit.googleapis.com\(path)"] }

  /// The paths of a call of version 3.
  private static func version3(_ name: String) -> [String] {
    ["", "/www.googleapis.com"].map { "\($0)/identitytoolkit/v3/relyingparty/\(name)" }
  }

  /// Whether a text follows the first segments of a path, not counting the host name.
  private static func begins(_ request: borrowing HTTPRequest, _ text: StaticString, after count: Int) -> Bool {
    let path = request.target.pathAndQuery.path
    let own = path.dropping("/identitytoolkit.googleapis.com") ?? path
    let parts = own.split(separator: UInt8(ascii: "/"), maxSplits: count + 1, omittingEmptySubsequences: false)
    guard parts.count == count + 2, let last = parts.last else { return false }
    return UnsafeRawBufferPointer(rebasing: last).dropping(text) != nil
  }
}
