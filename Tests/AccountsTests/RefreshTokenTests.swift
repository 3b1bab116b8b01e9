import Accounts
import DocumentModel
import KeyValue
import Testing

/// Refresh tokens: random, stored as a hash, revoked one by one or all together.
@Suite struct RefreshTokenTests {
  @Test func sessionsKeepEveryField() throws {
    let test = try TestAccounts()
    var user = test.user
    user.sessionClaims = MapValue([("role", .string("editor")), ("level", .integer(3))])
    user.secondFactor = ("phone", "enrolled-1")
    user.tenant = "t1"
    let session = RefreshSession(of: user, issuedSeconds: test.accounts.nowSeconds)
    let token = try test.accounts.refreshTokens.create(session)
    #expect(token.utf8.count == 68)
    #expect(try test.reopened().accounts.refreshTokens.session(of: token.utf8) == session)
    for wrong in ["", "x", token + "x", String(token.dropLast()), token.uppercased()] {
      #expect(try test.accounts.refreshTokens.session(of: wrong.utf8) == nil)
    }
  }

  @Test func storeContainsNoTokens() throws {
    let test = try TestAccounts()
    let token = try test.accounts.refreshTokens.create(RefreshSession(of: test.user, issuedSeconds: 1))
    for row in try test.store.rows(AccountsKey(.refreshTokens), limit: .max) {
      let text = String(decoding: row.key + row.value, as: UTF8.self)
      #expect(!text.contains(token) && !text.contains(token.dropFirst(4)))
    }
  }

  @Test func sessionsEndOneByOneOrTogether() throws {
    let test = try TestAccounts()
    let tokens = test.accounts.refreshTokens
    func make(_ uid: String) throws -> String {
      try tokens.create(
        RefreshSession(of: SignedInUser(uid: uid, provider: "custom", authTimeSeconds: 1), issuedSeconds: 1))
    }
    let all = try ["ann", "ann", "anna", "an"].map(make)
    #expect(try tokens.revoke(all[0].utf8))
    #expect(try !tokens.revoke(all[0].utf8))
    #expect(try all.map { try tokens.session(of: $0.utf8)?.uid } == [nil, "ann", "anna", "an"])
    try test.store.write { txn throws(StorageError) in try tokens.revokeAll(of: "ann", in: txn) }
    #expect(try all.map { try tokens.session(of: $0.utf8)?.uid } == [nil, nil, "anna", "an"])
    try test.store.write { txn throws(StorageError) in
      for uid in ["an", "anna"] { try tokens.revokeAll(of: uid, in: txn) }
    }
    #expect(try test.store.rows(AccountsKey(.refreshTokens), limit: .max).isEmpty)
    #expect(try test.store.rows(AccountsKey(.refreshTokensOfUser), limit: .max).isEmpty)
  }

  @Test func oldestSessionsOfAUserEndFirst() throws {
    let test = try TestAccounts()
    let tokens = test.accounts.refreshTokens
    var made: [String] = []
    for second in 0..<RefreshTokens.perUserMax + 5 {
      made.append(try tokens.create(RefreshSession(of: test.user, issuedSeconds: Int64(second))))
    }
    let live = try made.map { try tokens.session(of: $0.utf8) != nil }
    #expect(live == Array(repeating: false, count: 5) + Array(repeating: true, count: RefreshTokens.perUserMax))
  }
}
