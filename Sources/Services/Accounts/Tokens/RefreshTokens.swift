package import DocumentModel
package import KeyValue

/// A session that a refresh token continues: what the next ID token must say again.
package struct RefreshSession: Equatable, Sendable {
  /// Whose session it is.
  package var uid: String
  /// How the user signed in.
  package var provider: String
  /// When the user signed in, in seconds since 1970.
  package var authTimeSeconds: Int64
  /// When the refresh token was issued, in seconds since 1970.
  package var issuedSeconds: Int64
  /// The user's `sessionGeneration` when the session began; it ends where that has grown.
  package var generation: Int64 = 0
  /// The claims that a custom token brought.
  package var sessionClaims = MapValue()
  /// The second factor of the sign-in: its kind and its enrollment id.
  package var secondFactorKind: String?
  /// The enrollment id of the second factor.
  package var secondFactorID: String?
  /// The tenant, if the user is one's.
  package var tenant: String?

  /// Creates the session of a user who has just signed in.
  package init(of user: SignedInUser, issuedSeconds: Int64) {
    uid = user.uid
    provider = user.provider
    authTimeSeconds = user.authTimeSeconds
    self.issuedSeconds = issuedSeconds
    sessionClaims = user.sessionClaims
    secondFactorKind = user.secondFactor?.kind
    secondFactorID = user.secondFactor?.id
    tenant = user.tenant
  }

  fileprivate var row: MapValue {
    var row = MapValue([
      ("uid", .string(uid)), ("provider", .string(provider)), ("authTime", .integer(authTimeSeconds)),
      ("issued", .integer(issuedSeconds)),
    ])
    if generation != 0 { row["generation"] = .integer(generation) }
    if !sessionClaims.entries.isEmpty { row["claims"] = .map(sessionClaims) }
    if let secondFactorKind { row["secondFactor"] = .string(secondFactorKind) }
    if let secondFactorID { row["secondFactorId"] = .string(secondFactorID) }
    if let tenant { row["tenant"] = .string(tenant) }
    return row
  }

  fileprivate init?(row: MapValue) {
    guard let uid = row.text("uid"), let provider = row.text("provider"), let authTime = row.integer("authTime"),
      let issued = row.integer("issued")
    else { return nil }
    var user = SignedInUser(uid: uid, provider: provider, authTimeSeconds: authTime)
    user.sessionClaims = row.map("claims") ?? MapValue()
    user.tenant = row.text("tenant")
    self.init(of: user, issuedSeconds: issued)
    generation = row.integer("generation") ?? 0
    secondFactorKind = row.text("secondFactor")
    secondFactorID = row.text("secondFactorId")
  }
}

/// Refresh tokens: random texts, of which the store keeps only the SHA-256.
///
/// A token lasts until it is revoked, its user is deleted or disabled, all sessions of the user are ended, or the user's
/// `validSince` moves past its issue (see ``UserState``). A user has ``perUserMax`` at most; the oldest end first.
package final class RefreshTokens: Sendable {
  /// The most sessions of a user.
  package static let perUserMax = 200
  /// What every token begins with, so that scanners of secrets can find one.
  private static let prefix = "hrt_"

  private let store: any KeyValueStore

  init(store: any KeyValueStore) { self.store = store }

  /// Makes a token in a write transaction, beside what else the sign-in changes.
  /// - Throws: ``StorageError``.
  package func create(_ session: RefreshSession, in txn: any KeyValueTransaction) throws(StorageError) -> String {
    let token = Self.prefix + RandomBytes.text(48)
    let hash = RandomBytes.sha256(token.utf8)
    let older = try txn.rows(Self.prefix(of: session.uid), limit: Self.perUserMax)
    for row in older.prefix(max(0, older.count - Self.perUserMax + 1)) {
      try remove(uid: session.uid, rest: row.key, in: txn)
    }
    try txn.put(AccountsKey(.refreshTokens).ending(hash).bytes, session.row.json)
    try txn.put(Self.prefix(of: session.uid).number(session.issuedSeconds).ending(hash).bytes, [])
    return token
  }

  /// Makes a token in a transaction of its own. Cost: a durable write.
  /// - Throws: ``StorageError``.
  package func create(_ session: RefreshSession) throws(StorageError) -> String {
    var token = ""
    try store.write { (txn) throws(StorageError) in token = try create(session, in: txn) }
    return token
  }

  /// The session that a token continues; `nil` for a token that is none, or no longer. What stands against its user is
  /// the caller's to check. Cost: a point read.
  /// - Throws: ``StorageError``.
  package func session(of token: some Sequence<UInt8>) throws(StorageError) -> RefreshSession? {
    let key = AccountsKey(.refreshTokens).ending(RandomBytes.sha256(token)).bytes
    guard let row = try store.read(key) else { return nil }
    guard let session = MapValue(json: row).flatMap(RefreshSession.init(row:)) else {
      throw .corruption(path: "the store of accounts", detail: "the session of a refresh token cannot be read")
    }
    return session
  }

  /// Ends one session. Returns whether there was one.
  /// - Throws: ``StorageError``.
  @discardableResult
  package func revoke(_ token: some Sequence<UInt8>) throws(StorageError) -> Bool {
    let hash = RandomBytes.sha256(token)
    var wasThere = false
    try store.write { (txn) throws(StorageError) in
      let key = AccountsKey(.refreshTokens).ending(hash).bytes
      guard let row = try txn.read(key), let session = MapValue(json: row).flatMap(RefreshSession.init(row:)) else {
        wasThere = try txn.remove(key)
        return
      }
      wasThere = try txn.remove(key)
      try txn.remove(Self.prefix(of: session.uid).number(session.issuedSeconds).ending(hash).bytes)
    }
    return wasThere
  }

  /// Ends all sessions of a user, in a write transaction. Cost: their number.
  /// - Throws: ``StorageError``.
  package func revokeAll(of uid: String, in txn: any KeyValueTransaction) throws(StorageError) {
    for row in try txn.rows(Self.prefix(of: uid), limit: .max) { try remove(uid: uid, rest: row.key, in: txn) }
  }

  private static func prefix(of uid: String) -> AccountsKey { AccountsKey(.refreshTokensOfUser).part(uid) }

  /// Removes a token by what stands behind the uid in its row of the user.
  private func remove(uid: String, rest: [UInt8], in txn: any KeyValueTransaction) throws(StorageError) {
    try txn.remove(AccountsKey(.refreshTokens).ending(rest.dropFirst(8)).bytes)
    try txn.remove(Self.prefix(of: uid).ending(rest).bytes)
  }
}
