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
