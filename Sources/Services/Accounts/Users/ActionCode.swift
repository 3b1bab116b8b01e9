package import KeyValue
package import WireFormat

/// A mailed code that permits one operation, once (auth-api.md, section 13).
package struct ActionCode: Equatable, Sendable {
  /// The operation that a code permits.
  package enum Kind: String, Sendable, CaseIterable {
    case resetPassword = "PASSWORD_RESET"
    case verifyEmail = "VERIFY_EMAIL"
    case recoverEmail = "RECOVER_EMAIL"
    case emailSignIn = "EMAIL_SIGNIN"
    case verifyAndChangeEmail = "VERIFY_AND_CHANGE_EMAIL"

    /// The `mode` parameter of the link.
    package var mode: String {
      switch self {
      case .resetPassword: "resetPassword"
      case .verifyEmail: "verifyEmail"
      case .recoverEmail: "recoverEmail"
      case .emailSignIn: "signIn"
      case .verifyAndChangeEmail: "verifyAndChangeEmail"
      }
    }

    /// The number in protobuf's enumeration, which some clients send.
    package var number: Int64 {
      switch self {
      case .resetPassword: 1
      case .verifyEmail: 4
      case .recoverEmail: 5
      case .emailSignIn: 6
      case .verifyAndChangeEmail: 7
      }
    }

    /// The lifetime of a code, in seconds.
    package var lifetimeSeconds: Int64 {
      switch self {
      case .resetPassword: 3600
      case .emailSignIn: 6 * 3600
      case .verifyEmail, .verifyAndChangeEmail: 3 * 86400
      case .recoverEmail: 30 * 86400
      }
    }
  }

  package var code: String
  package var kind: Kind
  /// The user whose account the code changes, or `nil` if the account does not exist yet, as for a sign-in. The
  /// address is not enough: it may belong to another user when the code is used.
  package var uid: String?
  /// The recipient.
  package var email: String
  /// The address that replaces ``email``.
  package var newEmail: String?
  package var link: String
  /// The creation time, in milliseconds since 1970.
  package var createdAt: Int64

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

  /// Returns a new random code.
  package static func make() -> String { RandomBytes.alphanumeric(40) }

  /// Appends the code in the form that the control endpoint lists.
  package func append(to json: inout JSONWriter) {
    json.object { json in
      json.text("email", email)
      json.member("newEmail", newEmail)
      json.member("localId", uid)
      json.text("requestType", kind.rawValue)
      json.text("oobCode", code)
      json.text("oobLink", link)
      json.int64("createdAt", createdAt)
    }
  }

  fileprivate init?(stored bytes: [UInt8]) {
    guard let tree = try? JSONTree(parsing: bytes), let code = tree["oobCode"]?.text,
      let kind = tree["requestType"]?.text.flatMap(Kind.init), let email = tree["email"]?.text,
      let createdAt = tree["createdAt"]?.int64
    else { return nil }
    self.init(
      code: code, kind: kind, uid: tree["localId"]?.text, email: email, newEmail: tree["newEmail"]?.text,
      link: tree["oobLink"]?.text ?? "", createdAt: createdAt)
  }
}

extension UserTransaction {
  /// Stores a code. Also removes expired codes, at most a hundred.
  /// - Throws: ``StorageError`` if the write fails.
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

  /// Removes a code, so it can be used only once, and returns it.
  /// - Throws: as ``UserStore/actionCode(_:now:)``; ``StorageError`` if the write fails.
  package func spend(_ code: String, now: Int64) throws -> ActionCode {
    let found = try ActionCode.find(code, in: transaction, now: now)
    try transaction.remove(AccountsKey(.actionCodes).ending(code).bytes)
    try removeEntry(of: found)
    return found
  }

  /// Removes the codes of a user: all, or those of one kind. Cost: proportional to their number.
  /// - Throws: ``StorageError`` if the write fails.
  package func removeCodes(of uid: String, _ kind: ActionCode.Kind? = nil) throws {
    for row in try transaction.rows(ActionCode.prefix(of: uid), limit: .max) {
      let key = AccountsKey(.actionCodes).ending(row.key).bytes
      if let kind, let code = try transaction.read(key).flatMap(ActionCode.init(stored:)), code.kind != kind {
        continue
      }
      try transaction.remove(key)
      try transaction.remove(ActionCode.prefix(of: uid).ending(row.key).bytes)
    }
  }

  private func removeEntry(of code: ActionCode) throws {
    if let uid = code.uid { try transaction.remove(ActionCode.prefix(of: uid).ending(code.code).bytes) }
  }
}

extension UserStore {
  /// Returns a code without using it up. A code is valid while its user exists and has the address that it was made
  /// for. A code that resets a password also becomes invalid if the password is changed or the sessions are ended
  /// otherwise.
  /// - Parameter now: in milliseconds since 1970.
  /// - Throws: ``AccountError`` `INVALID_OOB_CODE` or `EXPIRED_OOB_CODE`; ``StorageError`` if the read fails.
  package func actionCode(_ code: String, now: Int64) throws -> ActionCode {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try ActionCode.find(code, in: snapshot, now: now)
  }

  /// Returns the unused codes, oldest first, from at most `limit` rows.
  /// - Throws: ``StorageError`` if the read fails.
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

  /// Returns whether the user that the code was made for still exists and still has the address.
  private func holds(in view: UserView) throws(StorageError) -> Bool {
    guard let uid, let user = try view.user(uid) else { return false }
    let expected = kind == .recoverEmail ? newEmail : email
    guard let expected, user.hasEmail(expected) else { return false }
    guard kind == .resetPassword else { return true }
    return createdAt >= user.passwordUpdatedAt ?? 0 && createdAt / 1000 >= user.validSince
  }

  fileprivate static func prefix(of uid: String) -> AccountsKey { AccountsKey(.actionCodesOfUser).part(uid) }
}
