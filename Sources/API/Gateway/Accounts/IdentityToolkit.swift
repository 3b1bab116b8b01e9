package import Accounts
import Synchronization

/// What the calls of the identity toolkit share: the accounts, what hashes passwords, what slows guessing down.
package final class IdentityToolkit: Sendable {
  /// How people's accounts are run; what is not said is as in a new project.
  package struct Options: Sendable {
    /// What people may do by themselves, until an administrator changes it.
    package var settings = AccountsSettings()
    /// The command that sends a mail, which it reads from its standard input; none is sent without.
    package var mailCommand: String?
    /// Who mails are from.
    package var mailSender = "noreply@localhost"
    /// Where links in mails lead: a page of the app's, or this server's own under its public address.
    package var actionURL: String?
    /// Who may sign people in beside this server.
    package var identityProviders = IdentityProviders()
    /// Threads that hash passwords.
    package var passwordThreads = 1

    /// Creates options.
    package init() {}
  }

  let accounts: AccountStore
  let passwords: Passwords
  let throttle: SignInThrottle
  let options: Options
  let mail: MailCommand?
  let identityProviders: IdentityProviders
  let settings: Mutex<AccountsSettings>
  /// Hashes passwords.
  let passwordQueue: BoundedQueue
  /// Reads and changes accounts.
  let callQueue = BoundedQueue("accounts", waitingMax: 1024)
  /// Works on many accounts at once.
  let batchQueue = BoundedQueue("account-batches", waitingMax: 16)
  /// Codes sent to telephones: those of emulator mode, which nobody sends.
  let phoneCodes = PhoneCodes()

  /// Gets ready. What administrators set while a server ran is in force again; but what `options` close stays closed.
  /// - Throws: `AccountError` where there is not enough memory to hash, and `StorageError`.
  package init(_ accounts: AccountStore, _ options: Options = Options()) throws {
    self.accounts = accounts
    self.options = options
    passwords = try Passwords(accounts.mode == .emulator ? .least : .standard)
    throttle = SignInThrottle(now: accounts.now)
    identityProviders = options.identityProviders
    let audit = accounts.audit
    // What an emulator would send is read through its control endpoint.
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
    passwordQueue = BoundedQueue("passwords", threads: options.passwordThreads, waitingMax: 128)
    var defaults = options.settings
    // As the emulator has it: tests ask whether an address is known.
    if accounts.mode == .emulator { defaults.hidesEmails = false }
    settings = Mutex(try accounts.users.settings(over: defaults).closed(by: options.settings))
  }

  /// The settings in force.
  var currentSettings: AccountsSettings { settings.withLock { $0 } }

  /// Changes settings, and keeps them.
  func changeSettings(_ change: (inout AccountsSettings) throws -> Void) throws -> AccountsSettings {
    var settings = currentSettings
    try change(&settings)
    try accounts.users.put(settings)
    let changed = settings.closed(by: options.settings)
    self.settings.withLock { $0 = changed }
    return changed
  }
}
