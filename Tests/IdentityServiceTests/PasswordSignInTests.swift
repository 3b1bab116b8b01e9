import Accounts
import DocumentModel
import IdentityService
import Testing
import TestSupport

/// Sign-in with a password: what failures reveal, how many are allowed, and how hashes are renewed.
@Suite struct PasswordSignInTests {
  @Test func hiddenAddressesFailLikeWrongPasswords() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann")
    #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidLoginCredentials)
    #expect(refusal { try world.signIn("nobody", "wrong-1") } == .invalidLoginCredentials)
    _ = try world.accounts.users.update(try world.signIn("ann").user.uid) { $0.isDisabled = true }
    #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidLoginCredentials)
    #expect(refusal { try world.signIn("ann") } == .userDisabled)
    // The log has the reason that the caller does not learn.
    #expect(
      world.events.filter { $0.kind == .signInFailed }.map(\.reason)
        == ["wrong password", "unknown email address", "wrong password", "disabled"])
    let shown = try world.service.createAuthURI(
      .init(identifier: "ann@example.com", continueURL: "http://x"), by: ServiceWorld.user)
    #expect(shown.isRegistered == nil)
    #expect(shown.account == nil)
  }

  @Test func shownAddressesFailInTheDocumentedOrder() throws {
    let world = try ServiceWorld()
    _ = try world.service.changeSettings(by: ServiceWorld.admin) { $0.hidesEmails = false }
    _ = try world.signUp("ann")
    #expect(refusal { try world.signIn("nobody", "wrong-1") } == .emailNotFound)
    #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidPassword)
    _ = try world.accounts.users.update(try world.signIn("ann").user.uid) { $0.isDisabled = true }
    #expect(refusal { try world.signIn("ann", "wrong-1") } == .userDisabled)
    let shown = try world.service.createAuthURI(
      .init(identifier: "ann@example.com", continueURL: "http://x"), by: ServiceWorld.user)
    #expect(shown.isRegistered == true)
    #expect(shown.account?.methods == ["password"])
  }

  @Test func guessesAreLimitedPerAddressAndRestoredByTime() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann")
    for _ in 0..<10 { #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidLoginCredentials) }
    #expect(refusal { try world.signIn("ann") } == .tooManyAttempts)
    // Another address is not affected, and an unknown account is limited in the same way.
    _ = try world.signIn("ann", by: AccountsCaller(.user, address: "192.0.2.2"))
    for _ in 0..<10 { _ = refusal { try world.signIn("nobody", "wrong-1") } }
    #expect(refusal { try world.signIn("nobody") } == .tooManyAttempts)
    // Each of the ten attempts is restored after a tenth of fifteen minutes.
    world.clock.advance(seconds: 89)
    #expect(refusal { try world.signIn("ann") } == .tooManyAttempts)
    world.clock.advance(seconds: 1)
    _ = try world.signIn("ann")
    // The correct password forgives the failures of this address.
    for _ in 0..<10 { #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidLoginCredentials) }
  }

  private static func at(_ address: String?) -> AccountsCaller { AccountsCaller(.user, address: address) }

  /// Tries wrong passwords from many addresses, until `count` were counted.
  private static func attack(_ world: ServiceWorld, guesses count: Int, from network: String = "198.51.100") {
    for number in 0..<count {
      _ = refusal { try world.signIn("ann", "wrong-1", by: at("\(network).\(number / 2)")) }
    }
  }

  @Test(arguments: [100, 300]) func wrongGuessesOfOthersDoNotLockTheUserOut(guesses: Int) throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann", address: "192.0.2.1")
    _ = try world.signIn("ann", by: Self.at("2001:db8::1"))
    Self.attack(world, guesses: guesses)
    #expect(try world.signIn("ann", by: Self.at("192.0.2.1")).user.email == "ann@example.com")
    // Another address of the same IPv6 network.
    _ = try world.signIn("ann", by: Self.at("2001:db8::2:1"))
    // The user's own mistakes are limited as before.
    for _ in 0..<10 { _ = refusal { try world.signIn("ann", "wrong-1", by: Self.at("192.0.2.1")) } }
    #expect(refusal { try world.signIn("ann", by: Self.at("192.0.2.1")) } == .tooManyAttempts)
  }

  @Test func strangersAreSlowedDownDuringAnAttack() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann", address: "192.0.2.1")
    Self.attack(world, guesses: 99)
    func guess(_ address: String) -> AccountError.Code? {
      refusal { try world.signIn("ann", "wrong-1", by: Self.at(address)) }
    }
    // Before the attack is large enough, a place has ten guesses.
    #expect(guess("203.0.113.1") == .invalidLoginCredentials)
    // Then two. The first place has used one.
    #expect([guess("203.0.113.1"), guess("203.0.113.1")] == [.invalidLoginCredentials, .tooManyAttempts])
    #expect(
      [guess("203.0.113.2"), guess("203.0.113.2"), guess("203.0.113.2")]
        == [.invalidLoginCredentials, .invalidLoginCredentials, .tooManyAttempts])
    // A user at a new place still signs in, and that place is known from then on.
    _ = try world.signIn("ann", by: Self.at("203.0.113.3"))
    for _ in 0..<3 { #expect(guess("203.0.113.3") == .invalidLoginCredentials) }
  }

  @Test func aLargeAttackClosesTheAccountToStrangersUntilTimePassesOrTheUserResetsThePassword() throws {
    for reset in [false, true] {
      let world = try ServiceWorld()
      _ = try world.signUp("ann", address: "192.0.2.1")
      Self.attack(world, guesses: 300)
      let stranger = Self.at("203.0.113.9")
      #expect(refusal { try world.signIn("ann", by: stranger) } == .tooManyAttempts)
      if reset {
        _ = try world.service.sendOobCode(
          .init(.resetPassword, email: "ann@example.com"), by: ServiceWorld.user)
        _ = try world.service.resetPassword(
          .init(code: try world.code(.resetPassword), newPassword: "secret-1"), by: stranger)
      } else {
        world.clock.advance(seconds: 3)
      }
      _ = try world.signIn("ann", by: stranger)
    }
  }

  @Test func rejectedAttemptsAreLoggedOnceAMinute() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann", address: "192.0.2.7")
    for _ in 0..<30 { _ = refusal { try world.signIn("ann", "wrong-1") } }
    func rejections() -> [AccountEvent] { world.events.filter { $0.reason?.hasPrefix("too many") ?? false } }
    #expect(rejections().map(\.email) == ["ann@example.com"])
    #expect(rejections().map(\.client) == ["192.0.2.1"])
    #expect(rejections().map(\.kind) == [.signInFailed])
    world.clock.advance(seconds: 60)
    for _ in 0..<3 { _ = refusal { try world.signIn("ann", "wrong-1") } }
    #expect(rejections().count == 2)
    // An address that guesses for many accounts is logged under its address.
    for number in 0..<200 {
      _ = refusal { try world.signIn("user\(number)", "wrong-1", by: Self.at("203.0.113.1")) }
    }
    #expect(rejections().count == 3)
    #expect(rejections().last?.reason == "too many wrong passwords from this address")
  }

  @Test func newAccountsAreLimitedPerAddress() throws {
    let world = try ServiceWorld()
    func signUp(_ address: String?) throws {
      _ = try world.service.signUp(.init(), by: AccountsCaller(.user, address: address))
    }
    for _ in 0..<100 { try signUp("192.0.2.1") }
    #expect(refusal { try signUp("192.0.2.1") } == .tooManyAttempts)
    try signUp("192.0.2.2")
    try signUp(nil)
    world.clock.advance(seconds: 36)
    try signUp("192.0.2.1")
  }

  @Test func emulatorsLimitNothing() throws {
    let world = try ServiceWorld(.emulator)
    _ = try world.signUp("ann")
    for _ in 0..<200 { #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidPassword) }
    _ = try world.signIn("ann")
  }

  @Test func outdatedHashesAreReplacedAtTheNextSignIn() throws {
    let world = try ServiceWorld()
    var ann = User(uid: "ann", createdAt: world.accounts.nowMilliseconds)
    ann.email = "ann@example.com"
    ann.passwordHash = try Passwords(.least).hash("secret-1")
    try world.accounts.users.insert(ann)
    func stored() throws -> PasswordHash? { try world.accounts.users.user("ann")?.passwordHash }
    #expect(refusal { try world.signIn("ann", "wrong-1") } == .invalidLoginCredentials)
    #expect(try stored() == ann.passwordHash)
    _ = try world.signIn("ann")
    let renewed = try #require(try stored())
    #expect(renewed != ann.passwordHash)
    #expect(!renewed.isOutdated(for: .standard))
    _ = try world.signIn("ann")
    #expect(try stored() == renewed)
  }

  @Test func requestsNeedAnAddressAndAPassword() throws {
    let world = try ServiceWorld()
    func signIn(_ email: String?, _ password: String?) -> AccountError.Code? {
      refusal {
        try world.service.signInWithPassword(.init(email: email, password: password), by: ServiceWorld.user)
      }
    }
    #expect(signIn(nil, "secret-1") == .missingEmail)
    #expect(signIn("ann", "secret-1") == .invalidEmail)
    #expect(signIn("ann@example.com", nil) == .missingPassword)
    _ = try world.service.changeSettings(by: ServiceWorld.admin) { $0.allowsPassword = false }
    #expect(signIn(nil, nil) == .passwordLoginDisabled)
  }
}
