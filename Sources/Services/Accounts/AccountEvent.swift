import WireFormat

/// Something that was done to an account or a key, as the log tells it. Nothing in it is secret: no password, no token,
/// no code.
package struct AccountEvent: Equatable, Sendable {
  /// What was done.
  package enum Kind: Equatable, Sendable {
    case created, signedIn, signInFailed, linked, changed, deleted
    /// A code was made, and sent where there is somebody to send it to; or it could not be.
    case codeSent, codeFailed
    case cookieIssued, tokenIssued
    case imported, emptied, settingsChanged
    case keyCreated, keyRevoked, keysRotated
    case mailFailed
  }

  /// Who did it.
  package enum Actor: String, Sendable {
    case user, admin
    case testSuite = "test suite"
  }

  /// What was done.
  package var kind: Kind
  /// The user it was done to.
  package var uid: String?
  /// The address that a mail is for.
  package var email: String?
  /// How somebody proved who they are: `password`, `anonymous`, `custom`, `phone`, `emailLink`, `emailCode`, or the id
  /// of a provider.
  package var method: String?
  /// What a code is for, such as `PASSWORD_RESET`.
  package var purpose: String?
  /// The names of the fields that were sent, never what stood in them.
  package var fields: [String] = []
  /// The name of a program's key.
  package var key: String?
  /// How many accounts.
  package var count: Int?
  /// Why it failed, or how it was done.
  package var reason: String?
  /// Who did it; `nil` for the server itself.
  package var actor: Actor?
  /// The address the request came from; `nil` for this machine.
  package var client: String?

  /// Describes what was done; the rest is set where there is more to say.
  package init(_ kind: Kind, uid: String? = nil, by actor: Actor? = nil, from client: String? = nil) {
    self.kind = kind
    self.uid = uid
    self.actor = actor
    self.client = client
  }
}

extension AccountEvent: CustomStringConvertible {
  /// The event as a sentence. Who chose an id or an address can write no sentence of their own with it.
  package var description: String {
    let what =
      switch kind {
      case .created: "\(subject) created\(means)"
      case .signedIn: "\(subject) signed in\(means)"
      case .signInFailed: "\(subject) failed to sign in\(means)"
      case .linked: "\(subject) linked\(method.map { $0 == "password" ? " to a password" : " to \($0)" } ?? "")"
      case .changed: "\(subject) changed\(fields.isEmpty ? "" : " (\(fields.joined(separator: ", ")))")\(means)"
      case .deleted: "\(subject) deleted"
      case .codeSent: "\(subject) was sent a code"
      case .codeFailed: "\(subject) could not be sent a code"
      case .cookieIssued: "\(subject) got a session cookie"
      case .tokenIssued: "an ID token was made for \(subject)"
      case .imported: "\(count ?? 0) imported"
      case .emptied: "all accounts deleted"
      case .settingsChanged: "the settings of accounts changed"
      case .keyCreated: "service key \(key ?? "") was created"
      case .keyRevoked: "service key \(key ?? "") was revoked"
      case .keysRotated: "the signing keys were rotated"
      case .mailFailed: "a mail could not be sent"
      }
    let who = actor.map { " by \($0.rawValue) from \(client ?? "this machine")" } ?? ""
    return what + (purpose.map { " (\($0))" } ?? "") + who + (reason.map { ": \($0)" } ?? "")
  }

  private var subject: String {
    guard let name = uid ?? email else { return "somebody" }
    var json = JSONWriter(.compact)
    json.string(name)
    return String(decoding: json.bytes, as: UTF8.self)
  }

  private var means: String {
    switch method {
    case nil: ""
    case "password": " with a password"
    case "anonymous": " as a guest"
    case "custom": " with a custom token"
    case "phone": " by telephone"
    case "emailLink": " by a mailed link"
    case "emailCode": " by a mailed code"
    case let provider?: " with \(provider)"
    }
  }
}
