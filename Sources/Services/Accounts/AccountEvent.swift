import WireFormat

/// An operation on an account or a key, as it is logged. An event contains no secret: no password, token or code.
package struct AccountEvent: Equatable, Sendable {
  /// The kind of operation.
  package enum Kind: Equatable, Sendable {
    case created, signedIn, signInFailed, linked, changed, deleted
    /// The server created a code, and sent it if the project sends mail; or it failed to.
    case codeSent, codeFailed
    case cookieIssued, tokenIssued
    case imported, emptied, settingsChanged
    case keyCreated, keyRevoked, keysRotated
    case mailFailed
    case operatorSignedIn, operatorSignInFailed, operatorSignedOut
    case operatorAdded, operatorChanged, operatorRemoved
    /// An operator made a request that can change something.
    case operatorActed
  }

  /// The kind of caller that did it.
  package enum Actor: String, Sendable {
    case user, admin
    case testSuite = "test suite"
  }

  package var kind: Kind
  /// The affected user.
  package var uid: String?
  /// The recipient of a mail.
  package var email: String?
  /// The means of authentication: `password`, `anonymous`, `custom`, `phone`, `emailLink`, `emailCode`, or a
  /// provider ID.
  package var method: String?
  /// The purpose of a code, such as `PASSWORD_RESET`.
  package var purpose: String?
  /// The names of the changed fields, never their values.
  package var fields: [String] = []
  /// The name of a service key.
  package var key: String?
  /// The name of an operator, as the client sent it.
  package var operatorName: String?
  /// The method and path of a request.
  package var request: String?
  /// The number of accounts.
  package var count: Int?
  /// The reason for a failure, or a detail of how the operation was done.
  package var reason: String?
  /// The caller, or `nil` for the server itself.
  package var actor: Actor?
  /// The client's address, or `nil` for this machine.
  package var client: String?

  /// Creates an event. Set the other properties if they apply.
  package init(_ kind: Kind, uid: String? = nil, by actor: Actor? = nil, from client: String? = nil) {
    self.kind = kind
    self.uid = uid
    self.actor = actor
    self.client = client
  }
}

extension AccountEvent: CustomStringConvertible {
  /// The event as a sentence. IDs and addresses are quoted as JSON, so a client cannot forge log text by choosing
  /// one.
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
      case .settingsChanged: "the account settings changed"
      case .keyCreated: "service key \(key ?? "") was created"
      case .keyRevoked: "service key \(key ?? "") was revoked"
      case .keysRotated: "the signing keys were rotated"
      case .mailFailed: "a mail could not be sent"
      case .operatorSignedIn: "operator \(person) signed in to the console from \(place)"
      case .operatorSignInFailed: "operator \(person) failed to sign in to the console from \(place)"
      case .operatorSignedOut: "operator \(person) signed out of the console from \(place)"
      case .operatorAdded: "operator \(person) was added"
      case .operatorChanged: "operator \(person) was changed (\(fields.joined(separator: ", ")))"
      case .operatorRemoved: "operator \(person) was removed"
      case .operatorActed: "operator \(person) requested \(Self.quoted(request ?? "")) from \(place)"
      }
    let who = actor.map { " by \($0.rawValue) from \(place)" } ?? ""
    return what + (purpose.map { " (\($0))" } ?? "") + who + (reason.map { ": \($0)" } ?? "")
  }

  private var subject: String { (uid ?? email).map(Self.quoted) ?? "somebody" }

  private var place: String { client ?? "this machine" }

  private var person: String { Self.quoted(operatorName ?? "") }

  private static func quoted(_ text: String) -> String {
    var json = JSONWriter(.compact)
    json.string(text)
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
