package import Accounts
import Basics
import DocumentModel
import Synchronization

/// The state that requests to the Identity Toolkit API share: the accounts, the password hasher and the throttle.
package final class IdentityToolkit: Sendable {
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
    /// The other providers whose identities can sign in.
    package var identityProviders = IdentityProviders()
    /// The number of threads that hash passwords.
    package var passwordThreads = 1

    /// Creates options with their defaults.
    package init() {}
  }

  let accounts: AccountStore
  let passwords: Passwords
  let throttle: SignInThrottle
  let options: Options
  let mail: MailCommand?
  let identityProviders: IdentityProviders
  let settings: Mutex<AccountsSettings>
  /// Runs requests that hash passwords.
  let passwordQueue: BoundedWorkers
  /// Runs other requests.
  let callQueue = BoundedWorkers("accounts", unfinishedMax: WorkerLimits.accountsUnfinishedMax)
  /// Runs requests for many accounts at once.
  let batchQueue = BoundedWorkers("account-batches", unfinishedMax: WorkerLimits.accountBatchesUnfinishedMax)
  /// Codes for phone numbers, in emulator mode only.
  let phoneCodes = PhoneCodes()

  /// Starts the hashing queues and loads the settings that administrators have stored. A setting that `options`
  /// closes stays closed.
  ///
  /// - Throws: `AccountError` if there is not enough memory to hash passwords, or `StorageError` if the settings
  ///   cannot be read.
  package init(_ accounts: AccountStore, _ options: Options = Options()) throws {
    self.accounts = accounts
    self.options = options
    passwords = try Passwords(accounts.mode == .emulator ? .least : .standard)
    throttle = SignInThrottle(now: accounts.now)
    identityProviders = options.identityProviders
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
    passwordQueue = BoundedWorkers(
      "passwords", threads: options.passwordThreads, unfinishedMax: WorkerLimits.passwordsUnfinishedMax)
    var defaults = options.settings
    // As in the official emulator: tests expect to see whether an address is known.
    if accounts.mode == .emulator { defaults.hidesEmails = false }
    settings = Mutex(try accounts.users.settings(over: defaults).closed(by: options.settings))
  }

  /// The current settings.
  var currentSettings: AccountsSettings { settings.withLock { $0 } }

  /// Changes the settings and stores them.
  ///
  /// - Throws: the error of `change`, or a storage error if they cannot be stored.
  func changeSettings(_ change: (inout AccountsSettings) throws -> Void) throws -> AccountsSettings {
    var settings = currentSettings
    try change(&settings)
    try accounts.users.put(settings)
    let changed = settings.closed(by: options.settings)
    self.settings.withLock { $0 = changed }
    return changed
  }
}
