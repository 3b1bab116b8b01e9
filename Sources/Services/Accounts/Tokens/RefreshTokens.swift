package import DocumentModel
package import KeyValue

/// The session that a refresh token continues, with the facts that the next ID token repeats.
package struct RefreshSession: Equatable, Sendable {
  /// The user's ID.
  package var uid: String
  /// The provider of the sign-in.
  package var provider: String
  /// The time of the sign-in, in seconds since 1970.
  package var authTimeSeconds: Int64
  /// The time when the refresh token was issued, in seconds since 1970.
  package var issuedSeconds: Int64
  /// The user's `sessionGeneration` when the session began. If the user's number is higher now, the session has
  /// ended.
  package var generation: Int64 = 0
  /// The claims of the custom token.
  package var sessionClaims = MapValue()
  /// The kind of the second factor.
  package var secondFactorKind: String?
  package var secondFactorID: String?
  /// The tenant of the user, if any.
  package var tenant: String?

  /// Creates the session of a new sign-in.
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
/// A token is valid until it is revoked, its user is deleted or disabled, all sessions of the user are ended, or
/// the user's `validSince` moves past the time of issue (see ``UserState``). A user has at most ``perUserMax``
/// tokens; a new one replaces the oldest.
package final class RefreshTokens: Sendable {
  /// The most sessions of a user.
  package static let perUserMax = 200
  /// The prefix of every token. Secret scanners can search for it.
  private static let prefix = "hrt_"

  private let store: any KeyValueStore

  init(store: any KeyValueStore) { self.store = store }

  /// Creates a token in the write transaction of a sign-in.
  /// - Throws: ``StorageError`` if the write fails.
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

  /// Creates a token in a transaction of its own. Cost: a durable write.
  /// - Throws: ``StorageError`` if the write fails.
  package func create(_ session: RefreshSession) throws(StorageError) -> String {
    var token = ""
    try store.write { (txn) throws(StorageError) in token = try create(session, in: txn) }
    return token
  }

  /// Returns the session that a token continues, or `nil` if the token is unknown or was revoked. The caller must
  /// also check the state of the user. Cost: one point read.
  /// - Throws: ``StorageError`` if the read fails; `corruption` if the row is not valid.
  package func session(of token: some Sequence<UInt8>) throws(StorageError) -> RefreshSession? {
    let key = AccountsKey(.refreshTokens).ending(RandomBytes.sha256(token)).bytes
    guard let row = try store.read(key) else { return nil }
    guard let session = MapValue(json: row).flatMap(RefreshSession.init(row:)) else {
      throw .corruption(path: "the account store", detail: "the session of a refresh token is not valid")
    }
    return session
  }

  /// Ends one session. Returns whether it existed.
  /// - Throws: ``StorageError`` if the write fails.
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

  /// Ends all sessions of a user, in a write transaction. Cost: proportional to their number.
  /// - Throws: ``StorageError`` if the write fails.
  package func revokeAll(of uid: String, in txn: any KeyValueTransaction) throws(StorageError) {
    for row in try txn.rows(Self.prefix(of: uid), limit: .max) { try remove(uid: uid, rest: row.key, in: txn) }
  }

  private static func prefix(of uid: String) -> AccountsKey { AccountsKey(.refreshTokensOfUser).part(uid) }

  /// Removes a token. `rest` is the part of its key in `refreshTokensOfUser` after the uid.
  private func remove(uid: String, rest: [UInt8], in txn: any KeyValueTransaction) throws(StorageError) {
    try txn.remove(AccountsKey(.refreshTokens).ending(rest.dropFirst(8)).bytes)
    try txn.remove(Self.prefix(of: uid).ending(rest).bytes)
  }
}
