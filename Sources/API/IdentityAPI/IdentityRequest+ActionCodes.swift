import GatewayCore
import Accounts
import DocumentModel
import Transport
import WireFormat

/// Codes that are sent by email: to reset a password, to verify an address, to sign in.
extension IdentityRequest {
  func sendOobCode() throws -> Response {
    let kind = try actionKind()
    let wantsLink = fields["returnOobLink"]?.flag ?? false
    if wantsLink, !isAdmin { throw AccountError(.insufficientPermission) }
    let continueURL = try text("continueUrl").map { try checkContinueURL($0) }
    let (email, uid) = try recipient(kind)
    var newEmail: String?
    if kind == .verifyAndChangeEmail {
      guard let address = try self.email("newEmail") else { throw AccountError(.missingNewEmail) }
      guard try accounts.users.user(email: address) == nil else { throw AccountError(.emailExists) }
      newEmail = address
    }
    try countMail(email)
    // If responses must not reveal whether an account exists, create a code even for an unknown address: the
    // request must take the same time.
    let code = newCode(kind, uid: uid, email: email, newEmail: newEmail, continueURL: continueURL)
    try accounts.users.write { try $0.put(code) }
    let isKnown = uid != nil || kind == .emailSignIn
    if isKnown, !wantsLink { try toolkit.mail?.send(code) }
    audit(isKnown ? .codeSent : .codeFailed) { event in
      event.email = email
      event.purpose = kind.rawValue
      if !isKnown { event.reason = "no account has this address" }
    }
    return response("GetOobConfirmationCodeResponse") { json in
      json.text("email", email)
      guard wantsLink else { return }
      json.text("oobCode", code.code)
      json.text("oobLink", code.link)
    }
  }

  private func actionKind() throws -> ActionCode.Kind {
    guard let type = fields["requestType"] else { throw AccountError(.missingReqType) }
    let kind = ActionCode.Kind.allCases.first { kind in
      type.text == kind.rawValue || type.int64 == kind.number
        || (type.text == "NEW_EMAIL" && kind == .verifyAndChangeEmail)
    }
    guard let kind, kind != .recoverEmail else { throw AccountError(.invalidReqType) }
    return kind
  }

  /// The address that receives the code, and the user it belongs to.
  private func recipient(_ kind: ActionCode.Kind) throws -> (email: String, uid: String?) {
    switch kind {
    case .resetPassword:
      guard let email = try email() else { throw AccountError(.missingEmail) }
      let user = try accounts.users.user(email: email)
      if user == nil, isAdmin || !settings.hidesEmails { throw AccountError(.emailNotFound) }
      return (email, user?.uid)
    case .emailSignIn:
      guard settings.allowsEmailLink, settings.allowsPassword || isAdmin else {
        throw AccountError(.operationNotAllowed)
      }
      guard let email = try email() else { throw AccountError(.missingEmail) }
      return (email, nil)
    case .verifyEmail, .verifyAndChangeEmail, .recoverEmail:
      if isAdmin, text("idToken") == nil {
        guard let email = try email() else { throw AccountError(.missingEmail) }
        guard let user = try accounts.users.user(email: email) else { throw AccountError(.emailNotFound) }
        return (email, user.uid)
      }
      let (user, token) = try owner()
      if kind == .verifyAndChangeEmail { try requireRecent(token) }
      guard let email = user.email else { throw AccountError(.missingEmail) }
      return (email, user.uid)
    }
  }

  /// Creates a code with its link, without storing it.
  private func newCode(
    _ kind: ActionCode.Kind, uid: String?, email: String, newEmail: String?, continueURL: String? = nil
  ) -> ActionCode {
    let code = ActionCode.make()
    let base = toolkit.options.actionURL ?? "\(origin)/emulator/action"
    var link = "\(base)\(base.contains("?") ? "&" : "?")mode=\(kind.mode)&lang=en&oobCode=\(code)"
    link += "&apiKey=\(PercentEncoding.encode((parameters.value("key") ?? "fake-api-key").utf8))"
    if let continueURL { link += "&continueUrl=\(PercentEncoding.encode(continueURL.utf8))" }
    return ActionCode(
      code: code, kind: kind, uid: uid, email: email, newEmail: newEmail, link: link,
      createdAt: accounts.nowMilliseconds)
  }

  /// Creates and stores a code with which users can recover an account after another party changes its email
  /// address. Call it in the transaction of the change; after the commit, ``send(recovery:)`` sends the code to the
  /// old address.
  ///
  /// Returns `nil` if the address stays the same, if an administrator changes it, or if the old address was not
  /// verified: an email to it could reach a stranger.
  ///
  /// - Throws: `RESET_PASSWORD_EXCEED_LIMIT` if the old address received too many emails; a storage error if a
  ///   write fails.
  func recovery(of user: User, movedTo newEmail: String, in users: UserTransaction) throws -> ActionCode? {
    guard !isAdmin, let email = user.email, user.isEmailVerified, !user.hasEmail(newEmail) else { return nil }
    try countMail(email)
    let code = newCode(.recoverEmail, uid: user.uid, email: email, newEmail: newEmail)
    try users.put(code)
    return code
  }

  /// Sends the code of ``recovery(of:movedTo:in:)``. The change is already committed, so a failure is only logged.
  func send(recovery code: ActionCode?) {
    guard let code, let mail = toolkit.mail else { return }
    do throws(AccountError) { try mail.send(code) } catch {
      audit(.codeFailed) { event in
        event.email = code.email
        event.purpose = code.kind.rawValue
        event.reason = error.message
      }
    }
  }

  private func countMail(_ email: String) throws {
    guard accounts.mode == .production, !isAdmin else { return }
    guard toolkit.throttle.allows(.mail, email) else { throw AccountError(.resetPasswordExceedLimit) }
    toolkit.throttle.count(.mail, email)
    guard let address else { return }
    guard toolkit.throttle.allows(.mailsFromAddress, address) else { throw AccountError(.resetPasswordExceedLimit) }
    toolkit.throttle.count(.mailsFromAddress, address)
  }

  /// Returns the URL to open after the link of an email, if it is an HTTP URL without characters that could escape
  /// from their context.
  ///
  /// - Throws: `INVALID_CONTINUE_URI` if it is not.
  private func checkContinueURL(_ url: String) throws -> String {
    let rest = url.hasPrefix("https://") ? url.dropFirst(8) : url.hasPrefix("http://") ? url.dropFirst(7) : ""
    guard let first = rest.utf8.first, first != UInt8(ascii: "/"), url.utf8.count <= UserLimits.textBytesMax,
      url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "<") })
    else { throw AccountError(.invalidContinueURI) }
    return url
  }

  // MARK: Using a code

  func resetPassword() throws -> Response {
    guard let code = text("oobCode") else { throw AccountError(.missingOobCode) }
    let now = accounts.nowMilliseconds
    guard let password = text("newPassword") else {
      let found = try accounts.users.actionCode(code, now: now)
      return response("ResetPasswordResponse") { json in
        // A finder of the link must not learn the address: knowing the address completes the sign-in.
        if found.kind != .emailSignIn { json.text("email", found.email) }
        json.member("newEmail", found.newEmail)
        json.text("requestType", found.kind.rawValue)
      }
    }
    let found = try reset(code, password)
    return response("ResetPasswordResponse") { json in
      json.text("email", found.email)
      json.text("requestType", found.kind.rawValue)
    }
  }

  private func reset(_ code: String, _ password: String) throws -> ActionCode {
    let now = accounts.nowMilliseconds
    guard try accounts.users.actionCode(code, now: now).kind == .resetPassword else {
      throw AccountError(.invalidOobCode)
    }
    let hash = try hash(password)
    let (found, uid) = try accounts.users.write { users in
      let found = try users.spend(code, now: now)
      guard found.kind == .resetPassword, let uid = found.uid else { throw AccountError(.invalidOobCode) }
      try users.removeCodes(of: uid, .resetPassword)
      try users.update(uid) { user in
        user.takeOver(now: now)
        user.setPassword(hash, now: now)
      }
      return (found, uid)
    }
    toolkit.throttle.reset(.account, found.email)
    audit(.changed, uid) { event in
      event.fields = ["password"]
      event.method = "emailCode"
    }
    return found
  }

  func signInWithEmailLink() throws -> Response {
    guard settings.allowsEmailLink else { throw AccountError(.operationNotAllowed) }
    guard let email = try email() else { throw AccountError(.missingEmail) }
    guard let code = text("oobCode") else { throw AccountError(.missingOobCode) }
    let linked = try text("idToken").map { _ in try owner() }
    let allowsSignUp = settings.allowsSignUp
    let now = accounts.nowMilliseconds
    var isNew = false
    var recovery: ActionCode?
    let outcome = try accounts.signIn(provider: "password") { users in
      let found = try users.spend(code, now: now)
      guard found.kind == .emailSignIn else { throw AccountError(.invalidOobCode) }
      guard found.email.utf8.elementsEqual(email.utf8) else {
        throw AccountError(.invalidEmail, "The email provided does not match the sign-in email address.")
      }
      if let linked {
        guard let user = try users.user(linked.user.uid) else { throw AccountError(.userNotFound) }
        if !user.isAnonymous, !user.hasEmail(email) { try requireRecent(linked.token) }
        recovery = try self.recovery(of: user, movedTo: email, in: users)
        return user.uid
      }
      if let user = try users.user(email: email) { return user.uid }
      guard allowsSignUp else { throw AccountError(.adminOnlyOperation) }
      let user = User(uid: UserStore.makeUID(), createdAt: now)
      try users.insert(user)
      isNew = true
      return user.uid
    } change: { user in
      if user.hasEmail(email) {
        user.takeOver(now: now)
      } else if user.email != nil {
        user.move(to: email, isVerified: true, now: now)
      }
      user.email = email
      user.isEmailVerified = true
      user.hasEmailLinkSignIn = true
    }
    send(recovery: recovery)
    audit(isNew ? .created : .signedIn, outcome.user.uid, by: "emailLink")
    return response("EmailLinkSigninResponse") { json in
      json.text("localId", outcome.user.uid)
      json.text("email", email)
      json.boolean("isNewUser", isNew)
      json.members(outcome)
    }
  }

  // MARK: Emulator mode

  func emulatorOobCodes() throws -> Response {
    let codes = try accounts.users.actionCodes(limit: 10_000)
    return response(nil) { json in
      json.key("oobCodes")
      json.beginArray()
      for code in codes { code.append(to: &json) }
      json.endArray()
    }
  }

  /// Does what the page that a link leads to would do.
  func emulatorAction() throws -> Response {
    func parameter(_ name: StaticString) -> String? { parameters.value(name).flatMap { $0.isEmpty ? nil : $0 } }
    guard let code = parameter("oobCode") else { throw AccountError(.missingOobCode) }
    let found = try accounts.users.actionCode(code, now: accounts.nowMilliseconds)
    switch found.kind {
    case .resetPassword:
      guard let password = parameter("newPassword") else { throw AccountError(.missingPassword) }
      _ = try reset(code, password)
    case .verifyEmail, .recoverEmail, .verifyAndChangeEmail:
      let fields = JSONTree(.object([JSONTree.Member(name: "oobCode", value: JSONTree(.string(code)))]))
      _ = try with(fields).update()
    // The app itself completes a sign-in: it receives the code in the redirect.
    case .emailSignIn: break
    }
    var response = self.response(nil) { json in
      json.key("authEmulator")
      json.beginObject()
      json.text("success", "The request was successful.")
      json.text("email", found.email)
      json.endObject()
    }
    if let url = try parameter("continueUrl").map({ try checkContinueURL($0) }) {
      response.status = 303
      let key = PercentEncoding.encode((parameter("apiKey") ?? "").utf8)
      let signIn = "mode=signIn&lang=en&oobCode=\(code)&apiKey=\(key)"
      response.location = found.kind == .emailSignIn ? "\(url)\(url.contains("?") ? "&" : "?")\(signIn)" : url
    }
    return response
  }

  private func with(_ fields: JSONTree) -> IdentityRequest {
    IdentityRequest(
      toolkit: toolkit, isAdmin: isAdmin, fields: fields, parameters: parameters, isRead: isRead, isDelete: isDelete,
      address: address, origin: origin)
  }
}

extension User {
  /// Records that the caller has proved to own the address.
  ///
  /// If the address was not verified before, another party may have created the account in the hope that its owner
  /// would use it later. Therefore all earlier sign-in methods and sessions are removed.
  mutating func takeOver(now: Int64) {
    if !isEmailVerified {
      endSessions(now: now)
      providers = []
      phoneNumber = nil
      passwordHash = nil
      passwordUpdatedAt = nil
    }
    isEmailVerified = true
  }
}
