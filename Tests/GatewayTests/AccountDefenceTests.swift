import Accounts
import DocumentStore
import Foundation
import HearthServer
import Testing
import TestSupport

/// Accounts in production mode under attack: old tokens, codes that outlive their purpose, and sessions that must
/// end.
@Suite struct AccountDefenceTests {
  /// A server whose clock only the test moves, with a client.
  private final class World {
    let session: IdentityTests.Session
    let time = SteppedTime()
    var accounts: AccountStore { session.server.server.accounts }

    init(_ mode: HearthConfiguration.Mode = .production) throws {
      let time = time
      session = try IdentityTests.Session(mode) {
        $0.clock = Clock { time.now }
      }
    }

    /// Creates an account. Returns its ID and its tokens.
    func signUp(_ name: String, isVerified: Bool = false) throws -> (uid: String, idToken: String, refreshToken: String)
    {
      let made = try session.user("signUp", #"{"email": "\#(name)@example.com", "password": "secret-1"}"#)
      let uid = made["localId"] as? String ?? ""
      if isVerified { _ = try accounts.users.update(uid) { $0.isEmailVerified = true } }
      return (uid, made["idToken"] as? String ?? "", made["refreshToken"] as? String ?? "")
    }

    /// The newest code of a kind.
    func code(_ kind: ActionCode.Kind) throws -> String? {
      try accounts.users.actionCodes(limit: 1000).last { $0.kind == kind }?.code
    }

    func send(_ kind: ActionCode.Kind, _ more: String) throws -> String {
      try session.user("sendOobCode", #"{"requestType": "\#(kind.rawValue)", \#(more)}"#)
      return try #require(try code(kind))
    }

    /// The error that the server returns for a refresh token, or `nil` if it accepts the token.
    func refusal(of refreshToken: String?) throws -> String? {
      let reply = try session.post(
        "/v1/token" + IdentityTests.key,
        #"{"grantType": "refresh_token", "refreshToken": "\#(refreshToken ?? "")"}"#)
      return reply.status == 200 ? nil : reply.message
    }

    func email(_ uid: String) throws -> String? { try accounts.users.user(uid)?.email }
  }

  @Test(arguments: ActionCode.Kind.allCases.filter { $0 != .emailSignIn })
  func codesBelongToAnAccountNotAnAddress(kind: ActionCode.Kind) throws {
    let world = try World()
    let ann = try world.signUp("ann", isVerified: true)
    let code: String
    switch kind {
    case .resetPassword: code = try world.send(kind, #""email": "ann@example.com""#)
    case .verifyAndChangeEmail:
      code = try world.send(kind, #""idToken": "\#(ann.idToken)", "newEmail": "new@example.com""#)
    case .recoverEmail:
      try world.session.user("update", #"{"idToken": "\#(ann.idToken)", "email": "new@example.com"}"#)
      code = try #require(try world.code(kind))
    default: code = try world.send(kind, #""idToken": "\#(ann.idToken)""#)
    }
    // Another account gets the address. Codes must not find their account by its address.
    _ = try world.accounts.users.update(ann.uid) { $0.email = "elsewhere@example.com" }
    world.time.advance(seconds: 1)
    let bob = try world.signUp(kind == .recoverEmail ? "new" : "ann")
    let before = try world.accounts.users.user(bob.uid)
    world.time.advance(seconds: 1)
    let body = #"{"oobCode": "\#(code)", "newPassword": "secret-2"}"#
    #expect(try world.session.failure(kind == .resetPassword ? "resetPassword" : "update", body) == "INVALID_OOB_CODE")
    #expect(try world.accounts.users.user(bob.uid) == before)
    #expect(try world.email(ann.uid) == "elsewhere@example.com")
  }

  @Test func deletingAUserDeletesItsCodes() throws {
    let world = try World()
    let ann = try world.signUp("ann")
    let code = try world.send(.verifyEmail, #""idToken": "\#(ann.idToken)""#)
    #expect(try world.accounts.remove([ann.uid]) == [ann.uid])
    var again = User(uid: ann.uid, createdAt: world.accounts.nowMilliseconds)
    again.email = "ann@example.com"
    try world.accounts.users.insert(again)
    #expect(try world.session.failure("update", #"{"oobCode": "\#(code)"}"#) == "INVALID_OOB_CODE")
    #expect(try world.accounts.users.actionCodes(limit: 10).isEmpty)
  }

  @Test func recoveryIsOfferedOnlyForActualChanges() throws {
    let world = try World()
    _ = try world.signUp("taken")
    for (name, isVerified, newEmail, isOffered) in [
      ("ann", true, "taken@example.com", false), ("bob", false, "bob2@example.com", false),
      ("cat", true, "cat2@example.com", true),
    ] {
      let user = try world.signUp(name, isVerified: isVerified)
      let body = #"{"idToken": "\#(user.idToken)", "email": "\#(newEmail)"}"#
      if newEmail == "taken@example.com" {
        #expect(try world.session.failure("update", body) == "EMAIL_EXISTS")
      } else {
        try world.session.user("update", body)
      }
      #expect((try world.code(.recoverEmail) != nil) == isOffered, "\(name)")
    }
    let code = try #require(try world.code(.recoverEmail))
    #expect(try world.session.user("update", #"{"oobCode": "\#(code)"}"#)["email"] as? String == "cat@example.com")
    #expect(try world.session.failure("update", #"{"oobCode": "\#(code)"}"#) == "INVALID_OOB_CODE")
  }

  @Test func recoveryMailsAreLimited() throws {
    let world = try World()
    let ann = try world.signUp("ann", isVerified: true)
    var token = ann.idToken
    var refused: String?
    for round in 0..<50 where refused == nil {
      let reply = try world.session.post(
        "/v1/accounts:update" + IdentityTests.key,
        #"{"idToken": "\#(token)", "email": "ann\#(round)@example.com", "returnSecureToken": true}"#)
      if reply.status != 200 { refused = reply.message }
      token = reply.json("idToken") ?? token
      _ = try world.accounts.users.update(ann.uid) { user in
        guard reply.status == 200 else { return }
        user.email = "ann@example.com"
        user.isEmailVerified = true
      }
    }
    #expect(refused == "RESET_PASSWORD_EXCEED_LIMIT")
    #expect(try world.email(ann.uid) == "ann@example.com")
  }

  @Test(arguments: [
    ("update", #""deleteProvider": ["password"]"#), ("update", #""deleteAttribute": ["EMAIL"]"#),
    ("update", #""deleteAttribute": ["PASSWORD"]"#), ("update", #""deleteAttribute": ["PROVIDER"]"#),
    ("update", #""deleteAttribute": [1]"#), ("update", #""deleteAttribute": [5]"#),
    ("update", #""email": "new@example.com""#), ("update", #""password": "secret-2""#),
    ("signUp", #""email": "new@example.com", "password": "secret-2""#),
  ])
  func oldTokensCannotChangeCredentials(call: String, change: String) throws {
    let world = try World()
    let ann = try world.signUp("ann")
    world.time.advance(seconds: 301)
    let body = #"{"idToken": "\#(ann.idToken)", \#(change)}"#
    let before = try world.accounts.users.user(ann.uid)
    #expect(try world.session.failure(call, body) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    #expect(try world.accounts.users.user(ann.uid) == before)
    world.time.advance(seconds: -1)
    try world.session.user(call, body)
  }

  @Test func oldTokensCannotReplaceTheLastProvider() throws {
    let world = try World()
    let guest = try world.session.user("signUp", "{}")
    let (uid, token) = (guest["localId"] as? String ?? "", guest["idToken"] as? String ?? "")
    _ = try world.accounts.users.update(uid) { user in
      for id in ["google.com", "apple.com"] { user.link(User.LinkedProvider(providerID: id, rawID: "1")) }
    }
    world.time.advance(seconds: 301)
    func body(_ change: String) -> String { #"{"idToken": "\#(token)", \#(change)}"# }
    let setsPassword = body(#""email": "ann@example.com", "password": "secret-1""#)
    try world.session.user("update", body(#""deleteProvider": ["apple.com"]"#))
    #expect(try world.session.failure("update", setsPassword) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    #expect(
      try world.session.failure("update", body(#""deleteProvider": ["google.com"]"#))
        == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    // A guest has no credential to lose, so the token may be old.
    _ = try world.accounts.users.update(uid) { $0.unlink("google.com") }
    try world.session.user("update", setsPassword)
  }

  @Test func movingAnAccountByMailedLinkNeedsAFreshToken() throws {
    let world = try World()
    let ann = try world.signUp("ann", isVerified: true)
    let code = try world.send(.emailSignIn, #""email": "new@example.com""#)
    let body = #"{"idToken": "\#(ann.idToken)", "email": "new@example.com", "oobCode": "\#(code)"}"#
    world.time.advance(seconds: 301)
    #expect(try world.session.failure("signInWithEmailLink", body) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    #expect(try world.email(ann.uid) == "ann@example.com")
    world.time.advance(seconds: -1)
    let moved = try world.session.user("signInWithEmailLink", body)
    #expect(moved["localId"] as? String == ann.uid)
    #expect(try world.session.failure("lookup", #"{"idToken": "\#(ann.idToken)"}"#) == "TOKEN_EXPIRED")
    #expect(try world.refusal(of: ann.refreshToken) == "TOKEN_EXPIRED")
    #expect(try world.refusal(of: moved["refreshToken"] as? String) == nil)
    let recovery = try #require(try world.code(.recoverEmail))
    try world.session.user("update", #"{"oobCode": "\#(recovery)"}"#)
    #expect(try world.email(ann.uid) == "ann@example.com")
  }

  @Test(arguments: ["password", "email", "reset", "revoke"])
  func sessionsBegunInTheSameSecondEnd(how: String) throws {
    // In emulator mode, the test is an administrator.
    let world = try World(how == "revoke" ? .emulator : .production)
    let ann = try world.signUp("ann")
    var fresh: String?
    switch how {
    case "reset":
      let code = try world.send(.resetPassword, #""email": "ann@example.com""#)
      try world.session.user("resetPassword", #"{"oobCode": "\#(code)", "newPassword": "secret-2"}"#)
    case "revoke":
      try world.session.admin(":update", #"{"localId": "\#(ann.uid)", "validSince": "\#(world.accounts.nowSeconds)"}"#)
    default:
      let value = how == "email" ? "new@example.com" : "secret-2"
      fresh =
        try world.session.user("update", #"{"idToken": "\#(ann.idToken)", "\#(how)": "\#(value)"}"#)["refreshToken"]
        as? String
      #expect(try world.refusal(of: fresh) == nil)
    }
    #expect(try world.refusal(of: ann.refreshToken) == "TOKEN_EXPIRED")
  }

  /// Test suites delete accounts and create them again under the same ID, often within a second.
  @Test(arguments: [0, 1, 5]) func accountCreatedAgainIsUsableAtOnce(seconds: Int) throws {
    let world = try World(.emulator)
    func create() throws -> (idToken: String, refreshToken: String) {
      try world.session.admin("", #"{"localId": "ann", "email": "ann@example.com", "password": "secret-1"}"#)
      let made = try world.session.user(
        "signInWithPassword", #"{"email": "ann@example.com", "password": "secret-1", "returnSecureToken": true}"#)
      return (made["idToken"] as? String ?? "", made["refreshToken"] as? String ?? "")
    }
    let old = try create()
    if seconds == 5 { world.time.advance(seconds: 5) }
    try world.session.admin(":delete", #"{"localId": "ann"}"#)
    #expect(try world.refusal(of: old.refreshToken) == "USER_NOT_FOUND")
    if seconds == 1 { world.time.advance(seconds: 1) }
    let new = try create()
    let users = try world.session.user("lookup", #"{"idToken": "\#(new.idToken)"}"#)["users"] as? [[String: Any]]
    #expect(users?.first?["localId"] as? String == "ann")
    #expect(try world.refusal(of: new.refreshToken) == nil)
    // The old session stays over. Within one second, an ID token does not show to which of the two it belongs.
    #expect(try world.refusal(of: old.refreshToken) == "TOKEN_EXPIRED")
    if seconds > 0 {
      #expect(try world.session.failure("lookup", #"{"idToken": "\#(old.idToken)"}"#) == "TOKEN_EXPIRED")
    }
    // Sessions of the new account end as before.
    try world.session.admin(":update", #"{"localId": "ann", "validSince": "\#(world.accounts.nowSeconds)"}"#)
    #expect(try world.refusal(of: new.refreshToken) == "TOKEN_EXPIRED")
    world.time.advance(seconds: 1)
    try world.session.admin(":update", #"{"localId": "ann", "validSince": "\#(world.accounts.nowSeconds)"}"#)
    #expect(try world.session.failure("lookup", #"{"idToken": "\#(new.idToken)"}"#) == "TOKEN_EXPIRED")
  }

  @Test func resetCodesEndWhenThePasswordChanges() throws {
    let world = try World()
    let ann = try world.signUp("ann")
    let codes = try (0..<2).map { _ -> String in
      world.time.advance(seconds: 1)
      return try world.send(.resetPassword, #""email": "ann@example.com""#)
    }
    func reset(_ code: String) -> String { #"{"oobCode": "\#(code)", "newPassword": "secret-3"}"# }
    world.time.advance(seconds: 1)
    try world.session.user("update", #"{"idToken": "\#(ann.idToken)", "password": "secret-2"}"#)
    for code in codes { #expect(try world.session.failure("resetPassword", reset(code)) == "INVALID_OOB_CODE") }
    // Two codes are created later. Using the first ends the second, even in the same millisecond.
    let first = try world.send(.resetPassword, #""email": "ann@example.com""#)
    let known = Set(try world.accounts.users.actionCodes(limit: 10).map(\.code))
    try world.session.user("sendOobCode", #"{"requestType": "PASSWORD_RESET", "email": "ann@example.com"}"#)
    let second = try #require(try world.accounts.users.actionCodes(limit: 10).first { !known.contains($0.code) }?.code)
    try world.session.user("resetPassword", reset(first))
    #expect(try world.session.failure("resetPassword", reset(second)) == "INVALID_OOB_CODE")
  }

  @Test func removingAnAddressRemovesItsVerification() throws {
    let world = try World()
    let ann = try world.signUp("ann", isVerified: true)
    let without = try world.session.user("update", #"{"idToken": "\#(ann.idToken)", "deleteAttribute": ["EMAIL"]}"#)
    #expect(without["emailVerified"] as? Bool == false)
    #expect(try world.accounts.users.user(ann.uid)?.isEmailVerified == false)
    try world.session.user("update", #"{"idToken": "\#(ann.idToken)", "email": "new@example.com"}"#)
    #expect(try world.accounts.users.user(ann.uid)?.isEmailVerified == false)
  }
}
