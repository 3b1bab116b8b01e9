package import Accounts
import Basics
import DocumentModel
import Synchronization

/// User accounts as a service: one function per call, without HTTP.
///
/// Each function takes a request, a plain struct that is nested in this class, and the caller. It checks the caller's
/// rights, so every way to call it is equally safe. Functions wait for the disk or hash passwords: do not call them
/// on an event loop, see ``submit(_:_:)``.
package final class AccountsService: Sendable {
  /// The options of user accounts. Their defaults are those of a new project.
  package struct Options: Sendable {
    /// The actions that users may take by themselves, until an administrator changes the settings.
    package var settings = AccountsSettings()
    /// The command that sends an email, which it reads from standard input. Without it no emails are sent.
    package var mailCommand: String?
    /// The sender of emails.
    package var mailSender = "noreply@localhost"
    /// The page that links in emails open: a page of the app, or this server under its public address.
    package var actionURL: String?
    /// The domains to which links in emails may lead, besides that of ``actionURL``; their subdomains are included.
    package var authorizedDomains: [String] = []
    /// The other providers whose identities can sign in.
    package var identityProviders = IdentityProviders()
    /// The other providers whose sign-in pages this server opens.
    package var signInProviders: [SignInProvider] = []
    /// Sends requests to these providers.
    package var providerFetch: ProviderFetch?
    /// The URL at which browsers reach this server.
    package var publicURL: String?

    /// Creates options with their defaults.
    package init() {}
  }

  /// The resource that a call mainly uses. A project has a bounded queue for each. The projects of the process share the
  /// threads, and take turns after each call.
  package enum Workload: Sendable {
    /// A few reads and at most one write.
    case short
    /// Hashes a password.
    case password
    /// Reads or writes many accounts.
    case batch
    /// Waits for another provider.
    case provider
  }

  package let accounts: AccountStore
  package let options: Options
  let passwords: Passwords
  let throttle: SignInThrottle
  let knownPlaces: KnownPlaces
  let mail: MailCommand?
  /// Codes for phone numbers, in emulator mode only.
  let phoneCodes: PhoneCodes
  /// Sign-in by the pages of other providers.
  package let providerSignIn: ProviderSignIn
  private let settings: Mutex<AccountsSettings>
  private static let shortWorkers = BoundedWorkers("accounts", threads: WorkerLimits.accountsThreadsMax)
  private static let passwordWorkers = BoundedWorkers("passwords", threads: WorkerLimits.passwordsThreadsMax)
  private static let batchWorkers = BoundedWorkers("account-batches", threads: WorkerLimits.accountBatchesThreadsMax)
  private let shortQueue = WorkerLane(on: shortWorkers, unfinishedMax: WorkerLimits.accountsUnfinishedMax)
  private let passwordQueue = WorkerLane(on: passwordWorkers, unfinishedMax: WorkerLimits.passwordsUnfinishedMax)
  private let batchQueue = WorkerLane(on: batchWorkers, unfinishedMax: WorkerLimits.accountBatchesUnfinishedMax)
  private let providerQueue = BoundedWorkers(
    "providers", threads: WorkerLimits.providersThreadsMax, unfinishedMax: WorkerLimits.providersUnfinishedMax)

  /// Creates the service and loads the settings that administrators have stored. A setting that `options` closes
  /// stays closed.
  ///
  /// - Throws: `AccountError` if there is not enough memory to hash passwords, or `StorageError` if the settings
  ///   cannot be read.
  package init(_ accounts: AccountStore, _ options: Options = Options()) throws {
    self.accounts = accounts
    self.options = options
    passwords = try Passwords(accounts.mode == .emulator ? .least : .standard)
    throttle = SignInThrottle(now: accounts.now, places: accounts.places.users)
    knownPlaces = KnownPlaces(now: accounts.now)
    let now = accounts.now
    phoneCodes = PhoneCodes(now: { now() / 1_000_000 })
    providerSignIn = ProviderSignIn(
      accounts.mode == .emulator ? [] : options.signInProviders, fetch: options.providerFetch,
      now: { now() / 1_000_000 })
    let audit = accounts.audit
    // In emulator mode tests read the codes from the control endpoint instead.
    mail =
      accounts.mode == .emulator
      ? nil
      : options.mailCommand.map { command in
        MailCommand(command, sender: options.mailSender) { reason in
          var event = AccountEvent(.mailFailed)
          event.reason = reason
          audit(event)
        }
      }
    var defaults = options.settings
    // As in the official emulator: tests expect to see whether an address is known.
    if accounts.mode == .emulator { defaults.hidesEmails = false }
    settings = Mutex(try accounts.users.settings(over: defaults).closed(by: options.settings))
  }

  /// Runs `work`, which makes a call, on a thread that may block. Returns `false`, and never runs it, if too many
  /// calls of that workload are unfinished.
  package func submit(_ workload: Workload, _ work: @escaping @Sendable () -> Void) -> Bool {
    switch workload {
    case .short: shortQueue.run(work)
    case .password: passwordQueue.run(work)
    case .batch: batchQueue.run(work)
    case .provider: providerQueue.run(work)
    }
  }

  // MARK: Settings

  /// The current settings.
  package var currentSettings: AccountsSettings { settings.withLock { $0 } }

  /// Changes the settings, stores them and returns them. For administrators and test suites.
  ///
  /// - Throws: `UNAUTHENTICATED` for end users, the error of `change`, or a storage error if they cannot be stored.
  package func changeSettings(
    by caller: AccountsCaller, _ change: (inout AccountsSettings) throws -> Void
  ) throws -> AccountsSettings {
    guard caller.role != .user else { throw AccountError(.unauthenticated) }
    var settings = currentSettings
    try change(&settings)
    try accounts.users.put(settings)
    let changed = settings.closed(by: options.settings)
    self.settings.withLock { $0 = changed }
    audit(.settingsChanged, by: caller)
    return changed
  }
}
