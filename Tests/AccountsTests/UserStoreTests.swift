import Accounts
import DocumentModel
import KeyValue
import LMDBEngine
import Testing
import TestSupport
import WireFormat

@Suite struct UserStoreTests {
  /// Creates accounts in memory.
  static func make(now: @escaping @Sendable () -> Int64 = { 1_700_000_000_000_000 }) throws -> AccountStore {
    try AccountStore(
      store: LMDBStore.open(.inMemory(mapBytes: 64 << 20)), project: AccountsProject("p"), mode: .production, now: now)
  }

  private static func user(_ uid: String, _ change: (inout User) -> Void = { _ in }) -> User {
    var user = User(uid: uid, createdAt: 1_700_000_000_000)
    change(&user)
    return user
  }

  private static func full(_ uid: String) -> User {
    user(uid) { user in
      user.email = "\(uid)@example.com"
      user.isEmailVerified = true
      user.phoneNumber = "+390555\(uid.utf8.reduce(0) { $0 + Int($1) })"
      user.displayName = "Zoë \"Z\" 😀"
      user.photoURL = "https://example.com/z.png"
      user.isDisabled = true
      user.passwordHash = PasswordHash(text: "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA")
      user.passwordUpdatedAt = 1_700_000_000_500
      user.validSince = 1_700_000_100
      user.lastLoginAt = 1_700_000_000_600
      user.lastRefreshAt = 1_700_000_000_700
      user.customAttributes = #"{"admin":true}"#
      user.providers = [User.LinkedProvider(providerID: "google.com", rawID: "g-\(uid)", email: "z@gmail.com")]
      user.hasEmailLinkSignIn = true
      user.isCustomAuth = true
      user.initialEmail = "first@example.com"
    }
  }

  @Test func storesEveryField() throws {
    let users = try Self.make().users
    let user = Self.full("u1")
    try users.insert(user)
    #expect(try users.user("u1") == user)
    #expect(try users.user(email: "u1@example.com") == user)
    #expect(try users.user(phoneNumber: user.phoneNumber ?? "") == user)
    #expect(try users.user(providerID: "google.com", rawID: "g-u1") == user)
    #expect(try users.user("u2") == nil)
    #expect(try users.user(String(repeating: "x", count: 40_000)) == nil)
    #expect(try users.user(email: String(repeating: "x", count: 40_000)) == nil)
  }

  @Test func refusesDuplicates() throws {
    let users = try Self.make().users
    let first = Self.full("u1")
    try users.insert(first)
    func code(_ body: () throws -> Void) -> AccountError.Code? {
      do {
        try body()
        return nil
      } catch { return (error as? AccountError)?.code }
    }
    #expect(code { try users.insert(Self.user("u1")) } == .duplicateLocalID)
    #expect(code { try users.insert(Self.user("u2") { $0.email = first.email }) } == .emailExists)
    #expect(code { try users.insert(Self.user("u2") { $0.phoneNumber = first.phoneNumber }) } == .phoneNumberExists)
    #expect(
      code { try users.insert(Self.user("u2") { $0.providers = first.providers }) } == .federatedUserIDAlreadyLinked)
    #expect(try users.user("u2") == nil)
    try users.insert(Self.user("u2"))
    #expect(code { _ = try users.update("u2") { $0.email = first.email } } == .emailExists)
    #expect(code { _ = try users.update("u3") { _ in } } == .userNotFound)
    #expect(try users.user("u2") == Self.user("u2"))
  }

  @Test func lookupsFollowChanges() throws {
    let users = try Self.make().users
    try users.insert(Self.full("u1"))
    _ = try users.update("u1") { user in
      user.email = "new@example.com"
      user.phoneNumber = nil
      user.link(User.LinkedProvider(providerID: "google.com", rawID: "other"))
    }
    #expect(try users.user(email: "u1@example.com") == nil)
    #expect(try users.user(email: "new@example.com")?.uid == "u1")
    #expect(try users.user(providerID: "google.com", rawID: "g-u1") == nil)
    #expect(try users.user(providerID: "google.com", rawID: "other")?.uid == "u1")
    // A released e-mail address is free for other users.
    try users.insert(Self.full("u1x").renamed("u9") { $0.email = "u1@example.com" })
    #expect(try users.remove("u1", now: 0)?.uid == "u1")
    #expect(try users.remove("u1", now: 0) == nil)
    for found in [try users.user("u1"), try users.user(email: "new@example.com")] { #expect(found == nil) }
  }

  @Test func equivalentEmailsAreDistinct() throws {
    let users = try Self.make().users
    try users.insert(Self.user("u1") { $0.email = "\u{E9}@x.org" })
    try users.insert(Self.user("u2") { $0.email = "e\u{301}@x.org" })
    _ = try users.update("u1") { $0.email = "other@x.org" }
    #expect(try users.user(email: "\u{E9}@x.org") == nil)
    #expect(try users.user(email: "e\u{301}@x.org")?.uid == "u2")
  }

  @Test func pagesAreSortedByID() throws {
    let users = try Self.make().users
    for uid in ["b", "aa", "é", "a", "c"] { try users.insert(Self.user(uid)) }
    var found: [String] = []
    var last: String?
    repeat {
      let page = try users.users(after: last, limit: 2)
      found += page.map(\.uid)
      last = page.count == 2 ? page.last?.uid : nil
    } while last != nil
    #expect(found == ["a", "aa", "b", "c", "é"])
    try users.removeAll()
    #expect(try users.users(after: nil, limit: 10).isEmpty)
  }

  @Test func stateChangesWithItsUser() throws {
    let accounts = try Self.make()
    let users = accounts.users
    func state() throws -> UserState { try accounts.userStates.state(of: "u1") }
    try users.insert(Self.user("u1"))
    #expect(try state() == UserState())
    let reported = Observed<[TokenRevocations.Concerned]>([])
    accounts.revocations.observe { concerned in reported.update { $0.append(concerned) } }
    let before = accounts.changes
    _ = try users.update("u1") { $0.displayName = "x" }
    #expect(accounts.changes == before && reported.value.isEmpty)
    _ = try users.update("u1") { $0.isDisabled = true }
    #expect(try state().isDisabled)
    #expect(accounts.changes > before && reported.value == [.users(["u1"])])
    _ = try users.update("u1") { user in
      user.isDisabled = false
      user.validSince = 1_700_000_005
    }
    #expect(try state() == UserState(validSinceSeconds: 1_700_000_005))
    _ = try users.remove("u1", now: 1_700_000_010_000)
    #expect(try state().deletedSeconds == 1_700_000_010)
    // A new user with the ID of a deleted one must not inherit its tokens.
    try users.insert(User(uid: "u1", createdAt: 1_700_000_020_000))
    #expect(try state() == UserState(validSinceSeconds: 1_700_000_020))
    _ = try users.update("u1") { $0.displayName = "y" }
    #expect(try state() == UserState(validSinceSeconds: 1_700_000_020))
  }

  @Test(arguments: [0, 1_700_000_009_000, 1_700_000_010_000, 4_000_000_000_000] as [Int64])
  func reusedIDDoesNotReviveTokens(createdAt: Int64) throws {
    let accounts = try Self.make { 1_700_000_011_000_000 }
    let users = accounts.users
    for isReplaced in [false, true] {
      try users.insert(Self.user("u\(isReplaced)"))
      _ = try users.remove("u\(isReplaced)", now: 1_700_000_010_000)
      let again = User(uid: "u\(isReplaced)", createdAt: createdAt)
      try users.write { if isReplaced { try $0.upsert(again) } else { try $0.insert(again) } }
      let state = try accounts.userStates.state(of: again.uid)
      #expect(state.deletedSeconds == nil)
      #expect(state.validSinceSeconds > 1_700_000_010)
      #expect(try users.user(again.uid)?.validSince ?? 0 > 1_700_000_010)
    }
  }

  /// A new user's tokens are valid at once, also in the second of the deletion or if the clock was set back. Only the
  /// generation of the sessions tells them from those of the deleted user.
  @Test(
    arguments: [
      (1_700_000_010, 1_700_000_010), (1_700_000_011, 1_700_000_011), (1_700_000_020, 1_700_000_011),
      (1_700_000_009, 1_700_000_010),
    ] as [(Int64, Int64)])
  func reusedIDBeginsInItsOwnSecond(now: Int64, validSince: Int64) throws {
    let accounts = try Self.make { now * 1_000_000 }
    let users = accounts.users
    try users.insert(Self.user("u1") { $0.sessionGeneration = 3 })
    for generation in [4, 5] as [Int64] {
      _ = try users.remove("u1", now: 1_700_000_010_000)
      try users.insert(Self.user("u1") { $0.createdAt = 1_600_000_000_000 })
      let user = try #require(try users.user("u1"))
      #expect(user.validSince == validSince && user.sessionGeneration == generation)
      #expect(try accounts.userStates.state(of: "u1") == UserState(validSinceSeconds: validSince))
    }
  }

  @Test(arguments: [1_600_000_000_000, 1_700_000_005_000, 4_000_000_000_000] as [Int64])
  func revocationIgnoresTheCreationTime(createdAt: Int64) throws {
    let accounts = try Self.make()
    try accounts.users.insert(Self.user("u1") { $0.createdAt = createdAt })
    _ = try accounts.users.update("u1") { $0.validSince = 1_700_000_006 }
    #expect(try accounts.userStates.state(of: "u1").validSinceSeconds == 1_700_000_006)
    // Importing the account again does not revive revoked tokens either.
    try accounts.users.write { try $0.upsert(Self.user("u1") { $0.createdAt = createdAt }) }
    #expect(try accounts.userStates.state(of: "u1").validSinceSeconds == 1_700_000_006)
  }

  @Test func codesWorkOnceAndExpire() throws {
    let users = try Self.make().users
    func code(_ name: String, _ at: Int64) -> ActionCode {
      ActionCode(code: name, kind: .resetPassword, uid: "u1", email: "a@b.c", link: "http://x/?a=b", createdAt: at)
    }
    var user = User(uid: "u1", createdAt: 0)
    user.email = "a@b.c"
    try users.insert(user)
    try users.write { try $0.put(code("one", 0)) }
    #expect(try users.actionCode("one", now: 3_600_000) == code("one", 0))
    #expect(throws: AccountError(.expiredOobCode)) { try users.actionCode("one", now: 3_600_001) }
    #expect(throws: AccountError(.invalidOobCode)) { try users.actionCode("two", now: 0) }
    #expect(try users.write { try $0.spend("one", now: 1) } == code("one", 0))
    #expect(throws: AccountError(.invalidOobCode)) { try users.write { try $0.spend("one", now: 1) } }
    // Adding a code removes expired ones.
    try users.write { try $0.put(code("old", 0)) }
    try users.write { try $0.put(code("new", 9_000_000)) }
    #expect(try users.actionCodes(limit: 10).map(\.code) == ["new"])
  }

  @Test func settingsAreStored() throws {
    let users = try Self.make().users
    var settings = try users.settings(over: AccountsSettings())
    #expect(settings == AccountsSettings())
    try settings.apply(
      JSONTree(
        parsing: Array(
          #"{"signIn": {"anonymous": {"enabled": false}}, "emailPrivacyConfig": {"enableImprovedEmailPrivacy": false}}"#
            .utf8)))
    try users.put(settings)
    let read = try users.settings(over: AccountsSettings())
    #expect(read == settings)
    #expect(!read.allowsAnonymous)
    #expect(!read.hidesEmails)
    #expect(read.allowsPassword)
  }

  @Test(
    arguments: [
      ("Ann@Example.COM", "ann@example.com"), ("a@b", "a@b"), ("é@ö.de", "é@ö.de"), ("a", nil), ("@b", nil),
      ("a@", nil), ("a@b@c", nil), ("", nil), ("a b@c", nil), ("a\r\nBcc:x@y", nil), ("<a@b>", nil), ("a,c@b", nil),
    ] as [(String, String?)])
  func normalizesEmails(text: String, kept: String?) {
    #expect((try? UserFields.email(text)) == kept)
  }

  @Test(
    arguments: [
      ("+39055123456", "+39055123456"), ("+1 (650) 555-3434", "+16505553434"), ("39055123456", nil), ("+12", nil),
      ("+1234567890123456", nil), ("+12345x", nil), ("", nil),
    ] as [(String, String?)])
  func normalizesPhoneNumbers(text: String, kept: String?) {
    #expect((try? UserFields.phoneNumber(text)) == kept)
  }

  @Test(
    arguments: [
      (#"{"a":1}"#, nil), ("{}", nil), ("", nil), ("[]", .invalidClaims), ("{", .invalidClaims),
      (#"{"sub":"x"}"#, .forbiddenClaim), (#"{"firebase":{}}"#, .forbiddenClaim), (#"{"email":"x"}"#, nil),
      (#"{"a":"\#(String(repeating: "x", count: 1000))"}"#, .claimsTooLarge),
    ] as [(String, AccountError.Code?)])
  func checksCustomClaims(text: String, code: AccountError.Code?) {
    do throws(AccountError) {
      _ = try UserFields.customClaims(text)
      #expect(code == nil)
    } catch {
      #expect(error.code == code)
    }
  }
}

extension User {
  /// Returns the same account with another ID.
  fileprivate func renamed(_ uid: String, _ change: (inout User) -> Void) -> User {
    var user = User(uid: uid, createdAt: createdAt)
    user.displayName = displayName
    change(&user)
    return user
  }
}
