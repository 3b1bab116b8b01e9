package import KeyValue
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
  /// Whose account it changes; `nil` where there is none yet, as for a sign-in. Never told apart by the address: it may
  /// be another's by the time the code is used.
  package var uid: String?
  /// The address it was sent to.
  package var email: String
  /// The address that is to take the place of ``email``.
  package var newEmail: String?
  /// The link that was sent.
  package var link: String
  /// When it was made, in milliseconds since 1970.
  package var createdAt: Int64

  /// Creates a code.
  package init(
    code: String, kind: Kind, uid: String? = nil, email: String, newEmail: String? = nil, link: String, createdAt: Int64
  ) {
    self.code = code
    self.kind = kind
    self.uid = uid
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
    json.member("localId", uid)
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
    guard let tree = try? AccountsJSON(parsing: bytes), let code = tree["oobCode"]?.text,
      let kind = tree["requestType"]?.text.flatMap(Kind.init), let email = tree["email"]?.text,
      let createdAt = tree["createdAt"]?.int64
    else { return nil }
    self.init(
      code: code, kind: kind, uid: tree["localId"]?.text, email: email, newEmail: tree["newEmail"]?.text,
      link: tree["oobLink"]?.text ?? "", createdAt: createdAt)
  }
}

extension UserTransaction {
  /// Keeps a code; codes whose time is over are forgotten on the way, a hundred at most.
  package func put(_ code: ActionCode) throws {
    let rows = try transaction.rows(AccountsKey(.actionCodes), limit: 100)
    for row in rows {
      let old = ActionCode(stored: row.value)
      if let old, !old.isExpired(now: code.createdAt) { continue }
      try transaction.remove(AccountsKey(.actionCodes).ending(row.key).bytes)
      if let old { try removeEntry(of: old) }
    }
    var json = JSONWriter(.compact)
    code.append(to: &json)
    try transaction.put(AccountsKey(.actionCodes).ending(code.code).bytes, json.bytes)
    if let uid = code.uid { try transaction.put(ActionCode.prefix(of: uid).ending(code.code).bytes, []) }
  }

  /// Takes a code away, so that it is used once.
  /// - Throws: as ``UserStore/actionCode(_:now:)``.
  package func spend(_ code: String, now: Int64) throws -> ActionCode {
    let found = try ActionCode.find(code, in: transaction, now: now)
    try transaction.remove(AccountsKey(.actionCodes).ending(code).bytes)
    try removeEntry(of: found)
    return found
  }

  /// Forgets the codes of a user: all, or those of one kind. Cost: their number.
  package func removeCodes(of uid: String, _ kind: ActionCode.Kind? = nil) throws {
    for row in try transaction.rows(ActionCode.prefix(of: uid), limit: .max) {
      let key = AccountsKey(.actionCodes).ending(row.key).bytes
      if let kind, let code = try transaction.read(key).flatMap(ActionCode.init(stored:)), code.kind != kind { continue }
      try transaction.remove(key)
      try transaction.remove(ActionCode.prefix(of: uid).ending(row.key).bytes)
    }
  }

  private func removeEntry(of code: ActionCode) throws {
    if let uid = code.uid { try transaction.remove(ActionCode.prefix(of: uid).ending(code.code).bytes) }
  }
}

extension UserStore {
  /// The code, which stays good. It is good as long as its user is there and has the address that it was made for; one
  /// to reset a password, until the password is changed or sessions are ended in another way.
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
    guard try found.kind == .emailSignIn || found.holds(in: UserView(snapshot: snapshot)) else {
      throw AccountError(.invalidOobCode)
    }
    return found
  }

  /// Whether the user is still the one, with the address, that the code was made for.
  private func holds(in view: UserView) throws(StorageError) -> Bool {
    guard let uid, let user = try view.user(uid) else { return false }
    let expected = kind == .recoverEmail ? newEmail : email
    guard let expected, user.hasEmail(expected) else { return false }
    guard kind == .resetPassword else { return true }
    return createdAt >= user.passwordUpdatedAt ?? 0 && createdAt / 1000 >= user.validSince
  }

  fileprivate static func prefix(of uid: String) -> AccountsKey { AccountsKey(.actionCodesOfUser).part(uid) }
}
