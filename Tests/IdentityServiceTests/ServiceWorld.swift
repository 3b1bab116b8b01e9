import Accounts
import DocumentModel
import IdentityService
import LMDBEngine
import Synchronization
import TestSupport

/// An accounts service in memory, with a clock that stands still until a test advances it.
final class ServiceWorld: Sendable {
  let clock: SteppedTime
  let service: AccountsService
  private let logged: Logged

  /// The events that the service has logged.
  private final class Logged: Sendable {
    let events = Mutex<[AccountEvent]>([])
  }

  var accounts: AccountStore { service.accounts }
  var events: [AccountEvent] { logged.events.withLock { $0 } }

  static let user = AccountsCaller(.user, address: "192.0.2.1")
  static let admin = AccountsCaller(.admin, address: "192.0.2.1")

  init(
    _ mode: ServerMode = .production, clock: SteppedTime = SteppedTime(),
    change: (inout AccountsService.Options) -> Void = { _ in }
  ) throws {
    let logged = Logged()
    (self.clock, self.logged) = (clock, logged)
    let accounts = try AccountStore(
      store: try LMDBStore.open(.inMemory(mapBytes: 64 << 20)), project: AccountsProject("demo"), mode: mode,
      now: { clock.now }, audit: { event in logged.events.withLock { $0.append(event) } })
    var options = AccountsService.Options()
    change(&options)
    service = try AccountsService(accounts, options)
  }

  /// Creates an account with the password `secret-1` and returns its session.
  func signUp(_ name: String, address: String? = nil) throws -> SignInOutcome? {
    try service.signUp(
      .init(email: "\(name)@example.com", password: "secret-1"), by: AccountsCaller(.user, address: address)
    ).session
  }

  func signIn(
    _ name: String, _ password: String = "secret-1", by caller: AccountsCaller = ServiceWorld.user
  ) throws -> SignInOutcome {
    try service.signInWithPassword(.init(email: "\(name)@example.com", password: password), by: caller)
  }

  /// The newest code of a kind.
  func code(_ kind: ActionCode.Kind) throws -> String? {
    try accounts.users.actionCodes(limit: 1000).last { $0.kind == kind }?.code
  }
}

/// Returns the code of the account error that `body` throws, or `nil` if it throws none.
func refusal<R>(_ body: () throws -> R) -> AccountError.Code? {
  do { _ = try body() } catch let error as AccountError { return error.code } catch {}
  return nil
}
