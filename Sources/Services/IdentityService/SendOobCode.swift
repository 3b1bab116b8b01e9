package import Accounts

extension AccountsService {
  /// Sends an email with a code: to reset a password, to verify or change an address, to sign in.
  package struct SendOobCode: Sendable {
    /// The kind of code: its name, or its number in protobuf's enumeration as text.
    package var requestType: String?
    package var email: String?
    package var newEmail: String?
    /// The user whose address to verify or to change.
    package var idToken: String?
    /// The URL to open after the link of the email.
    package var continueURL: String?
    /// Whether to return the link instead of sending it. For administrators.
    package var returnsLink = false

    /// Creates a request for a kind of code.
    package init(_ kind: ActionCode.Kind? = nil, email: String? = nil) {
      requestType = kind?.rawValue
      self.email = email
    }
  }

  /// Creates a code and sends it. The result contains the link only if the request asks for it.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func sendOobCode(
    _ request: SendOobCode, by caller: AccountsCaller
  ) throws -> (email: String, code: ActionCode?) {
    let kind = try kind(request.requestType)
    if request.returnsLink, !caller.isAdmin { throw AccountError(.insufficientPermission) }
    let continueURL = try request.continueURL.map { try checkContinueURL($0, caller) }
    let (email, uid) = try recipient(kind, request, caller)
    var newEmail: String?
    if kind == .verifyAndChangeEmail {
      guard let address = try request.newEmail.map(UserFields.email) else { throw AccountError(.missingNewEmail) }
      guard try accounts.users.user(email: address) == nil else { throw AccountError(.emailExists) }
      newEmail = address
    }
    try countMail(email, caller)
    // If responses must not reveal whether an account exists, create a code even for an unknown address: the
    // request must take the same time.
    let code = makeCode(kind, uid: uid, email: email, newEmail: newEmail, continueURL: continueURL, caller)
    try accounts.users.write { try $0.put(code) }
    let isKnown = uid != nil || kind == .emailSignIn
    if isKnown, !request.returnsLink { try mail?.send(code) }
    audit(isKnown ? .codeSent : .codeFailed, by: caller) { event in
      event.email = email
      event.purpose = kind.rawValue
      if !isKnown { event.reason = "no account has this address" }
    }
    return (email, request.returnsLink ? code : nil)
  }

  private func kind(_ type: String?) throws -> ActionCode.Kind {
    guard let type else { throw AccountError(.missingReqType) }
    let kind = ActionCode.Kind.allCases.first { kind in
      type == kind.rawValue || Int64(type) == kind.number || (type == "NEW_EMAIL" && kind == .verifyAndChangeEmail)
    }
    guard let kind, kind != .recoverEmail else { throw AccountError(.invalidReqType) }
    return kind
  }

  /// The address that receives the code, and the user it belongs to.
  private func recipient(
    _ kind: ActionCode.Kind, _ request: SendOobCode, _ caller: AccountsCaller
  ) throws -> (email: String, uid: String?) {
    func email() throws -> String {
      guard let email = request.email else { throw AccountError(.missingEmail) }
      return try UserFields.email(email)
    }
    let settings = currentSettings
    switch kind {
    case .resetPassword:
      let email = try email()
      let user = try accounts.users.user(email: email)
      if user == nil, caller.isAdmin || !settings.hidesEmails { throw AccountError(.emailNotFound) }
      return (email, user?.uid)
    case .emailSignIn:
      guard settings.allowsEmailLink, settings.allowsPassword || caller.isAdmin else {
        throw AccountError(.operationNotAllowed)
      }
      return (try email(), nil)
    case .verifyEmail, .verifyAndChangeEmail, .recoverEmail:
      if caller.isAdmin, request.idToken == nil {
        let email = try email()
        guard let user = try accounts.users.user(email: email) else { throw AccountError(.emailNotFound) }
        return (email, user.uid)
      }
      let (user, token) = try owner(of: request.idToken)
      if kind == .verifyAndChangeEmail { try requireRecent(token, caller) }
      guard let email = user.email else { throw AccountError(.missingEmail) }
      return (email, user.uid)
    }
  }
}
