import Accounts
import Dispatch
import DocumentModel
import IdentityService
import Testing
import TestSupport

/// The rights of end users, administrators and test suites, and the limits of their requests.
@Suite struct RightsTests {
  /// The calls that only administrators may make, each with a request that an administrator may make.
  static let administration: [(name: String, call: @Sendable (AccountsService, AccountsCaller) throws -> Void)] = [
    ("batchGet", { _ = try $0.batchGet(.init(), by: $1) }),
    ("batchDelete", { _ = try $0.batchDelete(.init(uids: ["x"]), by: $1) }),
    ("batchCreate", { _ = try $0.batchCreate(batch(1), by: $1) }),
    ("query", { _ = try $0.query(.init(), by: $1) }),
    ("changeSettings", { _ = try $0.changeSettings(by: $1) { $0.allowsAnonymous = false } }),
  ]

  static func batch(_ count: Int) -> AccountsService.BatchCreate {
    AccountsService.BatchCreate(
      users: (0..<count).map { .init(uid: "u\($0)") }, hashParameters: .failure(AccountError(.missingHashAlgorithm)))
  }

  @Test(arguments: [ServerMode.production, .emulator])
  func endUsersCannotAdminister(mode: ServerMode) throws {
    let world = try ServiceWorld(mode)
    for (name, call) in Self.administration {
      #expect(refusal { try call(world.service, ServiceWorld.user) } == .unauthenticated, "\(name)")
    }
    #expect(world.events.isEmpty)
    #expect(
      refusal { try world.service.createSessionCookie(.init(idToken: nil), by: ServiceWorld.user) } == .unauthenticated)
  }

  @Test func onlyTestSuitesEmptyAnEmulator() throws {
    for caller in [ServiceWorld.user, ServiceWorld.admin, AccountsCaller(.testSuite)] {
      let production = try ServiceWorld()
      #expect(refusal { try production.service.deleteAll(by: caller) } == .permissionDenied)
      #expect(refusal { try production.service.followLink(.init(code: "x"), by: caller) } == .permissionDenied)
      #expect((refusal { try production.service.mailedCodes(by: caller) } == nil) == (caller.role == .admin))
    }
    let world = try ServiceWorld(.emulator)
    _ = try world.signUp("ann")
    #expect(try world.service.mailedCodes(by: ServiceWorld.user).isEmpty)
    try world.service.deleteAll(by: AccountsCaller(.testSuite))
    #expect(try world.accounts.users.user(email: "ann@example.com") == nil)
    #expect(world.events.last?.kind == .emptied)
  }

  @Test func endUsersReadAndChangeOnlyThemselves() throws {
    let world = try ServiceWorld()
    let ann = try #require(try world.signUp("ann"))
    let bob = try #require(try world.signUp("bob"))
    var lookup = AccountsService.Lookup()
    lookup.idToken = ann.idToken
    #expect(try world.service.lookup(lookup, by: ServiceWorld.user).users.map(\.uid) == [ann.user.uid])
    lookup.uids = [bob.user.uid]
    #expect(refusal { try world.service.lookup(lookup, by: ServiceWorld.user) } == .insufficientPermission)
    lookup.idToken = nil
    #expect(try world.service.lookup(lookup, by: ServiceWorld.admin).users.map(\.uid) == [bob.user.uid])

    var update = AccountsService.Update(idToken: ann.idToken, uid: bob.user.uid)
    update.displayName = "Ann"
    #expect(refusal { try world.service.update(update, by: ServiceWorld.user) } == .unexpectedParameter)
    update.uid = nil
    update.administration = .init()
    #expect(refusal { try world.service.update(update, by: ServiceWorld.user) } == .insufficientPermission)
    update.administration = nil
    #expect(try world.service.update(update, by: ServiceWorld.user).user.displayName == "Ann")
    #expect(world.events.last?.fields == ["displayName"])

    #expect(
      refusal { try world.service.delete(.init(idToken: ann.idToken, uid: bob.user.uid), by: ServiceWorld.user) }
        == .insufficientPermission)
    var chosen = AccountsService.SignUp()
    chosen.uid = "mine"
    #expect(refusal { try world.service.signUp(chosen, by: ServiceWorld.user) } == .unexpectedParameter)
    #expect(try world.service.signUp(chosen, by: ServiceWorld.admin).user.uid == "mine")
  }

  @Test func sensitiveChangesNeedARecentSignIn() throws {
    let world = try ServiceWorld()
    let ann = try #require(try world.signUp("ann"))
    var update = AccountsService.Update(idToken: ann.idToken)
    update.email = "new@example.com"
    world.clock.advance(seconds: 301)
    #expect(refusal { try world.service.update(update, by: ServiceWorld.user) } == .credentialTooOld)
    #expect(
      refusal { try world.service.delete(.init(idToken: ann.idToken), by: ServiceWorld.user) } == .credentialTooOld)
    // A refreshed token keeps the time of the sign-in.
    let refreshed = try world.service.refreshToken(.init(refreshToken: ann.refreshToken), by: ServiceWorld.user)
    update.idToken = refreshed.idToken
    #expect(refusal { try world.service.update(update, by: ServiceWorld.user) } == .credentialTooOld)
    update.idToken = try world.signIn("ann").idToken
    #expect(try world.service.update(update, by: ServiceWorld.user).session != nil)
    // Administrators need no sign-in of the user.
    world.clock.advance(seconds: 301)
    var change = AccountsService.Update(uid: ann.user.uid)
    change.email = "ann@example.com"
    #expect(try world.service.update(change, by: ServiceWorld.admin).session == nil)
  }

  @Test func batchesAreLimited() throws {
    let world = try ServiceWorld()
    let (service, admin) = (world.service, ServiceWorld.admin)
    #expect(refusal { try service.batchCreate(Self.batch(0), by: admin) } == .missingUserAccount)
    #expect(refusal { try service.batchCreate(Self.batch(1001), by: admin) } == .invalidArgument)
    #expect(refusal { try service.batchCreate(Self.batch(1), by: admin) } == .missingHashAlgorithm)
    for count in [0, 1001] {
      let uids = (0..<count).map { "u\($0)" }
      #expect(refusal { try service.batchDelete(.init(uids: uids), by: admin) } == .localIDListExceedsLimit)
    }
    var lookup = AccountsService.Lookup()
    lookup.uids = (0..<1000).map { "u\($0)" }
    #expect(try service.lookup(lookup, by: admin).users.isEmpty)
    lookup.identities = [("google.com", "1")]
    #expect(refusal { try service.lookup(lookup, by: admin) } == .localIDListExceedsLimit)
    for limit in [-1, 0, 1001] {
      #expect(refusal { try service.batchGet(.init(limit: limit), by: admin) } == .invalidPageSelection)
    }
    for limit in [-1, 0, 501] {
      var query = AccountsService.Query()
      query.limit = limit
      #expect(refusal { try service.query(query, by: admin) } == .invalidPageSelection)
    }
  }

  @Test func batchesReportErrorsByIndex() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann")
    let uid = try #require(try world.accounts.users.user(email: "ann@example.com")?.uid)
    #expect(try world.service.batchDelete(.init(uids: ["x", uid]), by: ServiceWorld.admin).map(\.index) == [1])
    let forced = AccountsService.BatchDelete(uids: ["x", uid], isForced: true)
    #expect(try world.service.batchDelete(forced, by: ServiceWorld.admin).isEmpty)
    #expect(try world.accounts.users.user(uid) == nil)
    #expect(world.events.last == AccountEvent(.deleted, uid: uid, by: .admin, from: "192.0.2.1"))
  }

  @Test func settingsThatTheOptionsCloseStayClosed() throws {
    let world = try ServiceWorld { $0.settings.allowsAnonymous = false }
    #expect(refusal { try world.service.signUp(.init(), by: ServiceWorld.user) } == .adminOnlyOperation)
    let changed = try world.service.changeSettings(by: ServiceWorld.admin) {
      $0.allowsAnonymous = true
      $0.allowsDeletion = false
    }
    #expect(!changed.allowsAnonymous)
    #expect(!world.service.currentSettings.allowsDeletion)
    #expect(refusal { try world.service.signUp(.init(), by: ServiceWorld.user) } == .adminOnlyOperation)
    #expect(world.events.map(\.kind) == [.settingsChanged])
  }

  @Test func eachWorkloadHasAQueueWithALimit() throws {
    let world = try ServiceWorld()
    let (blocked, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    var taken = 0
    while world.service.submit(.batch, { blocked.wait() }) { taken += 1 }
    #expect(taken == 16)
    // A full queue does not delay the calls of others.
    let isTaken = world.service.submit(.short) { done.signal() }
    #expect(isTaken)
    done.wait()
    for _ in 0..<taken { blocked.signal() }
  }
}
