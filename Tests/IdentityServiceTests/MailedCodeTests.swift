import Accounts
import DocumentModel
import IdentityService
import Testing
import TestSupport

/// Codes that are mailed: which are made, how many, what they permit, and that they work once.
@Suite struct MailedCodeTests {
  @Test func aCodeIsMadeForUnknownAddressesTooButPermitsNothing() throws {
    let world = try ServiceWorld()
    let sent = try world.service.sendOobCode(
      .init(.resetPassword, email: "nobody@example.com"), by: ServiceWorld.user)
    #expect(sent.email == "nobody@example.com")
    #expect(sent.code == nil)
    #expect(world.events.last?.kind == .codeFailed)
    let code = try #require(try world.code(.resetPassword))
    #expect(refusal { try world.service.resetPassword(.init(code: code), by: ServiceWorld.user) } == .invalidOobCode)
    // Administrators learn that the address is unknown, and may read links.
    #expect(
      refusal {
        try world.service.sendOobCode(.init(.resetPassword, email: "nobody@example.com"), by: ServiceWorld.admin)
      } == .emailNotFound)
    var request = AccountsService.SendOobCode(.emailSignIn, email: "ann@example.com")
    request.returnsLink = true
    #expect(refusal { try world.service.sendOobCode(request, by: ServiceWorld.user) } == .insufficientPermission)
    var admin = ServiceWorld.admin
    admin.makeLink = { kind, code, next in "\(kind.mode) \(code) \(next ?? "-")" }
    request.continueURL = "http://app.example/"
    let link = try #require(try world.service.sendOobCode(request, by: admin).code)
    #expect(link.link == "signIn \(link.code) http://app.example/")
  }

  @Test func passwordsAreResetOnce() throws {
    let world = try ServiceWorld()
    let old = try #require(try world.signUp("ann"))
    _ = try world.service.sendOobCode(.init(.resetPassword, email: "ann@example.com"), by: ServiceWorld.user)
    let code = try #require(try world.code(.resetPassword))
    #expect(try world.service.resetPassword(.init(code: code), by: ServiceWorld.user).email == "ann@example.com")
    world.clock.advance(seconds: 1)
    let reset = AccountsService.ResetPassword(code: code, newPassword: "secret-2")
    _ = try world.service.resetPassword(reset, by: ServiceWorld.user)
    #expect(refusal { try world.service.resetPassword(reset, by: ServiceWorld.user) } == .invalidOobCode)
    #expect(refusal { try world.signIn("ann") } == .invalidLoginCredentials)
    #expect(try world.signIn("ann", "secret-2").user.isEmailVerified)
    #expect(
      refusal { try world.service.refreshToken(.init(refreshToken: old.refreshToken), by: ServiceWorld.user) }
        == .tokenExpired)
  }

  @Test func codesExpire() throws {
    let world = try ServiceWorld()
    _ = try world.signUp("ann")
    for (kind, seconds) in [(ActionCode.Kind.resetPassword, 3600), (.emailSignIn, 6 * 3600)] {
      _ = try world.service.sendOobCode(.init(kind, email: "ann@example.com"), by: ServiceWorld.user)
      let code = try #require(try world.code(kind))
      world.clock.advance(seconds: seconds)
      _ = try world.service.resetPassword(.init(code: code), by: ServiceWorld.user)
      world.clock.advance(seconds: 1)
      #expect(refusal { try world.service.resetPassword(.init(code: code), by: ServiceWorld.user) } == .expiredOobCode)
    }
  }

  @Test func mailsAreLimitedPerRecipient() throws {
    let world = try ServiceWorld()
    func send(_ email: String) throws {
      _ = try world.service.sendOobCode(.init(.emailSignIn, email: email), by: ServiceWorld.user)
    }
    for _ in 0..<10 { try send("ann@example.com") }
    #expect(refusal { try send("ann@example.com") } == .resetPasswordExceedLimit)
    try send("bob@example.com")
    world.clock.advance(seconds: 360)
    try send("ann@example.com")
  }

  @Test func mailedLinksSignInAndTakeOverUnverifiedAccounts() throws {
    let world = try ServiceWorld()
    let squatter = try #require(try world.signUp("ann"))
    _ = try world.service.sendOobCode(.init(.emailSignIn, email: "ann@example.com"), by: ServiceWorld.user)
    let code = try #require(try world.code(.emailSignIn))
    world.clock.advance(seconds: 1)
    let wrong = AccountsService.SignInWithEmailLink(email: "bob@example.com", code: code)
    #expect(refusal { try world.service.signInWithEmailLink(wrong, by: ServiceWorld.user) } == .invalidEmail)
    let outcome = try world.service.signInWithEmailLink(
      .init(email: "ann@example.com", code: code), by: ServiceWorld.user)
    #expect(!outcome.isNew)
    #expect(outcome.user.uid == squatter.user.uid)
    #expect(outcome.user.passwordHash == nil)
    #expect(refusal { try world.signIn("ann") } == .invalidLoginCredentials)
  }

  @Test func changedAddressesCanBeRestored() throws {
    let world = try ServiceWorld()
    let ann = try #require(try world.signUp("ann"))
    _ = try world.accounts.users.update(ann.user.uid) { $0.isEmailVerified = true }
    var update = AccountsService.Update(idToken: ann.idToken)
    update.email = "thief@example.com"
    _ = try world.service.update(update, by: ServiceWorld.user)
    let code = try #require(try world.code(.recoverEmail))
    #expect(try world.service.applyCode(code, by: ServiceWorld.user).email == "ann@example.com")
    #expect(refusal { try world.service.applyCode(code, by: ServiceWorld.user) } == .invalidOobCode)
  }

  @Test func phoneCodesWorkOnceInEmulatorsOnly() throws {
    let production = try ServiceWorld()
    #expect(
      refusal { try production.service.sendVerificationCode(.init(phoneNumber: "+4912345"), by: ServiceWorld.user) }
        == .operationNotAllowed)
    let world = try ServiceWorld(.emulator)
    let sent = try world.service.sendVerificationCode(.init(phoneNumber: "+49 123 45"), by: ServiceWorld.user)
    #expect(try world.service.phoneCodes(by: ServiceWorld.user).map(\.code) == [sent.code])
    func signIn(_ code: String) throws -> SignInOutcome {
      try world.service.signInWithPhoneNumber(.init(sessionInfo: sent.sessionInfo, code: code), by: ServiceWorld.user)
    }
    #expect(refusal { try signIn("wrong") } == .invalidCode)
    #expect(try signIn(sent.code).user.phoneNumber == "+4912345")
    #expect(refusal { try signIn(sent.code) } == .invalidSessionInfo)
  }

  @Test func phoneCodesExpireAfterTenMinutes() throws {
    let world = try ServiceWorld(.emulator)
    for (seconds, expected) in [(599, nil), (600, .sessionExpired), (100_000, .sessionExpired)]
      as [(Int, AccountError.Code?)]
    {
      let sent = try world.service.sendVerificationCode(.init(phoneNumber: "+4912345"), by: ServiceWorld.user)
      world.clock.advance(seconds: seconds)
      #expect(try world.service.phoneCodes(by: ServiceWorld.user).isEmpty == (expected != nil))
      func signIn() throws -> SignInOutcome {
        try world.service.signInWithPhoneNumber(
          .init(sessionInfo: sent.sessionInfo, code: sent.code), by: ServiceWorld.user)
      }
      #expect(refusal { try signIn() } == expected, "\(seconds)")
      #expect(refusal { try signIn() } == .invalidSessionInfo, "\(seconds)")
    }
  }
}
