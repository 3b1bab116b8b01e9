package import KeyValueStore
package import WireFormat

/// What a code that was mailed to somebody allows, once (auth-api.md, section 13).
package struct ActionCode: Equatable, Sendable {
  /// What a code is for.
  package enum Kind: String, Sendable, CaseIterable {
    case resetPassword = "PASSWORD_RESET"
    case verifyEmail = "VERIFY_EMAIL"
    case recoverEmail = "RECOVER_EMAIL"
    case emailSignIn = "EMAIL_SIGNIN"
    case verifyAndChangeEmail = "VERIFY_AND_CHANGE_EMAIL"

    /// The `mode` of its link.
    package var mode: String {
      switch self {
      case .resetPassword: "resetPassword"
      case .verifyEmail: "verifyEmail"
      case .recoverEmail: "recoverEmail"
      case .emailSignIn: "signIn"
      case .verifyAndChangeEmail: "verifyAndChangeEmail"
      }
    }

    /// The number of protobuf's enumeration, which some clients send.
    package var number: Int64 {
      switch self {
      case .resetPassword: 1
      case .verifyEmail: 4
      case .recoverEmail: 5
      case .emailSignIn: 6
      case .verifyAndChangeEmail: 7
      }
    }

    /// How long such a code is good, in seconds.
    package var lifetimeSeconds: Int64 {
      switch self {
      case .resetPassword: 3600
      case .emailSignIn: 6 * 3600
      case .verifyEmail, .verifyAndChangeEmail: 3 * 86400
      case .recoverEmail: 30 * 86400
      }
    }
  }

  /// The code itself.
  package var code: String
  /// What it is for.
  package var kind: Kind
  /// The address it was sent to.
  package var email: String
  /// The address that is to take the place of ``email``.
  package var newEmail: String?
  /// The link that was sent.
  package var link: String
  /// When it was made, in milliseconds since 1970.
  package var createdAt: Int64

  /// Creates a code.
  package init(code: String, kind: Kind, email: String, newEmail: String? = nil, link: String, createdAt: Int64) {
    self.code = code
    self.kind = kind
    self.email = email
    self.newEmail = newEmail
    self.link = link
    self.createdAt = createdAt
  }

  /// A code that nobody can guess.
  package static func make() -> String { RandomBytes.alphanumeric(40) }

  /// Appends the code as the control endpoint lists it.
  package func append(to json: inout JSONWriter) {
    json.beginObject()
    json.key("email")
    json.string(email)
    json.member("newEmail", newEmail)
    json.key("requestType")
    json.string(kind.rawValue)
    json.key("oobCode")
    json.string(code)
    json.key("oobLink")
    json.string(link)
    json.key("createdAt")
    json.int64(createdAt)
    json.endObject()
  }

  fileprivate init?(stored bytes: [UInt8]) {
    guard let tree = try? JSONTree(parsing: bytes), let code = tree["oobCode"]?.text,
      let kind = tree["requestType"]?.text.flatMap(Kind.init), let email = tree["email"]?.text,
      let createdAt = tree["createdAt"]?.int64
    else { return nil }
    self.init(
      code: code, kind: kind, email: email, newEmail: tree["newEmail"]?.text, link: tree["oobLink"]?.text ?? "",
      createdAt: createdAt)
  }
}

extension UserTransaction {
  /// Keeps a code; codes whose time is over are forgotten on the way, a hundred at most.
  package func put(_ code: ActionCode) throws {
    let rows = try transaction.rows(AccountsKey(.actionCodes), limit: 100)
    for row in rows {
      if let old = ActionCode(stored: row.value), !old.isExpired(now: code.createdAt) { continue }
      try transaction.remove(AccountsKey(.actionCodes).ending(row.key).bytes)
    }
    var json = JSONWriter(.compact)
    code.append(to: &json)
    try transaction.put(AccountsKey(.actionCodes).ending(code.code).bytes, json.bytes)
  }

  /// Takes a code away, so that it is used once.
  /// - Throws: as ``UserStore/actionCode(_:now:)``.
  package func spend(_ code: String, now: Int64) throws -> ActionCode {
    let found = try ActionCode.find(code, in: transaction, now: now)
    try transaction.remove(AccountsKey(.actionCodes).ending(code).bytes)
    return found
  }
}

extension UserStore {
  /// The code, which stays good.
  /// - Parameter now: in milliseconds since 1970.
  /// - Throws: `INVALID_OOB_CODE`, `EXPIRED_OOB_CODE`.
  package func actionCode(_ code: String, now: Int64) throws -> ActionCode {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try ActionCode.find(code, in: snapshot, now: now)
  }

  /// All codes that were made and not used, as many as `limit`.
  package func actionCodes(limit: Int) throws(StorageError) -> [ActionCode] {
    try store.rows(AccountsKey(.actionCodes), limit: limit).compactMap { ActionCode(stored: $0.value) }
      .sorted { $0.createdAt < $1.createdAt }
  }
}

extension ActionCode {
  fileprivate func isExpired(now: Int64) -> Bool { now - createdAt > kind.lifetimeSeconds * 1000 }

  fileprivate static func find(_ code: String, in snapshot: any KeyValueSnapshot, now: Int64) throws -> ActionCode {
    guard (1...128).contains(code.utf8.count),
      let found = try snapshot.read(AccountsKey(.actionCodes).ending(code).bytes).flatMap(ActionCode.init(stored:))
    else { throw AccountError(.invalidOobCode) }
    guard !found.isExpired(now: now) else { throw AccountError(.expiredOobCode) }
    return found
  }
}
