import Accounts

extension LogEvent {
  /// Creates the log event of an account event.
  init(_ event: AccountEvent) {
    self.init(.info, event.kind.name, Self.oneLine("accounts: \(event)"))
    func add(_ name: StaticString, _ text: String?) {
      if let text { fields.append((name, .text(text))) }
    }
    add("uid", event.uid)
    add("email", event.email)
    add("method", event.method)
    add("purpose", event.purpose)
    if !event.fields.isEmpty { add("fields", event.fields.joined(separator: ",")) }
    add("key", event.key)
    add("operator", event.operatorName)
    add("request", event.request)
    if let count = event.count { fields.append(("count", .integer(count))) }
    add("by", event.actor?.rawValue)
    if event.actor != nil || event.operatorName != nil { add("client", event.client ?? "this machine") }
    add("reason", event.reason)
  }
}

extension AccountEvent.Kind {
  /// The event name, which programs that read the log match.
  fileprivate var name: StaticString {
    switch self {
    case .created: "accounts.created"
    case .signedIn: "accounts.signed-in"
    case .signInFailed: "accounts.sign-in-failed"
    case .linked: "accounts.linked"
    case .changed: "accounts.changed"
    case .deleted: "accounts.deleted"
    case .codeSent: "accounts.code-sent"
    case .codeFailed: "accounts.code-failed"
    case .cookieIssued: "accounts.cookie-issued"
    case .tokenIssued: "accounts.token-issued"
    case .imported: "accounts.imported"
    case .emptied: "accounts.emptied"
    case .settingsChanged: "accounts.settings-changed"
    case .keyCreated: "keys.created"
    case .keyRevoked: "keys.revoked"
    case .keysRotated: "keys.rotated"
    case .mailFailed: "mail.failed"
    case .operatorSignedIn: "operators.signed-in"
    case .operatorSignInFailed: "operators.sign-in-failed"
    case .operatorSignedOut: "operators.signed-out"
    case .operatorAdded: "operators.added"
    case .operatorChanged: "operators.changed"
    case .operatorRemoved: "operators.removed"
    case .operatorActed: "operators.acted"
    }
  }
}
