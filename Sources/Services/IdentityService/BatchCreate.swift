package import Accounts
import Basics
import Dispatch
import DocumentModel
import Synchronization
import WireFormat

extension AccountsService {
  /// Imports accounts with their password hashes. For administrators.
  package struct BatchCreate: Sendable {
    /// The accounts, at most ``AccountsService/importedMax``.
    package var users: [ImportedUser]
    /// The algorithm of the password hashes, or the error in its parameters.
    package var hashParameters: Result<HashParameters, AccountError>
    /// Whether to reject the batch if two of its users have the same uid, email address or identity.
    package var rejectsDuplicates = false
    /// Whether to replace accounts that exist.
    package var overwrites = true

    package init(users: [ImportedUser], hashParameters: Result<HashParameters, AccountError>) {
      self.users = users
      self.hashParameters = hashParameters
    }
  }

  /// An account to import.
  package struct ImportedUser: Sendable {
    package var uid: String?
    package var email: String?
    package var isEmailVerified = false
    package var phoneNumber: String?
    package var displayName: String?
    package var photoURL: String?
    package var isDisabled = false
    /// In milliseconds since 1970.
    package var createdAt: Int64?
    /// In milliseconds since 1970.
    package var lastLoginAt: Int64?
    /// In seconds since 1970.
    package var validSince: Int64?
    /// Custom claims: a JSON object as text.
    package var customAttributes: String?
    package var hasEmailLinkSignIn = false
    package var isCustomAuth = false
    package var initialEmail: String?
    package var providers: [User.LinkedProvider] = []
    /// The password, which the server hashes.
    package var password: String?
    /// The hash of the password, in base64, if ``password`` is `nil`.
    package var passwordHash: String?
    /// The salt of the hash, in base64.
    package var salt: String?
    /// In milliseconds since 1970.
    package var passwordUpdatedAt: Int64?

    package init(uid: String?) { self.uid = uid }
  }

  /// Imports accounts. Returns an error for each that was not imported, in the order of the request.
  ///
  /// - Throws: `AccountError` if nothing was imported; `StorageError` if the server fails.
  package func batchCreate(_ request: BatchCreate, by caller: AccountsCaller) throws -> [BatchError] {
    try caller.requireAdmin()
    guard !request.users.isEmpty else { throw AccountError(.missingUserAccount) }
    guard request.users.count <= Self.importedMax else {
      throw AccountError(.invalidArgument, "A batch may have at most \(Self.importedMax) users.")
    }
    let parameters = try request.hashParameters.get()
    var errors: [BatchError] = []
    var users: [(index: Int, user: User)] = []
    for (index, record) in request.users.enumerated() {
      do { users.append((index, try user(record, parameters))) } catch let error as AccountError {
        errors.append(BatchError(index: index, error: error))
      }
    }
    if request.rejectsDuplicates { try Self.refuseDuplicates(users.map(\.user)) }
    try accounts.users.write { transaction in
      for (index, user) in users {
        do {
          if request.overwrites { try transaction.upsert(user) } else { try transaction.insert(user) }
        } catch let error as AccountError {
          errors.append(BatchError(index: index, error: error))
        } catch let error as QuotaError {
          errors.append(BatchError(index: index, error: AccountError(.quotaExceeded, error.message)))
        }
      }
    }
    audit(.imported, by: caller) { $0.count = request.users.count - errors.count }
    return errors.sorted { $0.index < $1.index }
  }

  /// The largest number of users in one batch.
  package static let importedMax = 1000

  private static func refuseDuplicates(_ users: [User]) throws {
    var emails = Set<[UInt8]>()
    var identities = Set<[UInt8]>()
    var ids = Set<[UInt8]>()
    for user in users {
      guard ids.insert(Array(user.uid.utf8)).inserted else { throw AccountError(.duplicateLocalID, user.uid) }
      if let email = user.email, !emails.insert(Array(email.utf8)).inserted {
        throw AccountError(.duplicateEmail, email)
      }
      for provider in user.providers
      where !identities.insert(Array((provider.providerID + "\0" + provider.rawID).utf8)).inserted {
        throw AccountError(.duplicateRawID, provider.rawID)
      }
    }
  }

  private func user(_ record: ImportedUser, _ parameters: HashParameters) throws -> User {
    guard let uid = record.uid else { throw AccountError(.missingLocalID) }
    let now = accounts.nowMilliseconds
    var user = User(uid: try UserFields.uid(uid), createdAt: min(record.createdAt ?? now, now))
    func text(_ text: String?, _ field: StaticString) throws -> String? {
      try text.map { try UserFields.text($0, field) }
    }
    user.email = try text(record.email, "email").map(UserFields.email)
    user.isEmailVerified = record.isEmailVerified
    user.phoneNumber = try text(record.phoneNumber, "phoneNumber").map(UserFields.phoneNumber)
    user.displayName = try text(record.displayName, "displayName")
    user.photoURL = try text(record.photoURL, "photoUrl")
    user.isDisabled = record.isDisabled
    user.lastLoginAt = record.lastLoginAt
    user.validSince = record.validSince ?? user.validSince
    user.customAttributes = try record.customAttributes.flatMap { try UserFields.customClaims($0) }
    user.hasEmailLinkSignIn = record.hasEmailLinkSignIn
    user.isCustomAuth = record.isCustomAuth
    user.initialEmail = try text(record.initialEmail, "initialEmail")
    user.passwordUpdatedAt = record.passwordUpdatedAt.map { min($0, now) }
    for provider in record.providers { user.link(provider) }
    if let password = record.password {
      user.setPassword(try hashInTurn(password), now: now)
    } else if let hash = try text(record.passwordHash, "passwordHash") {
      if let password = Self.emulatorPassword(hash), accounts.mode == .emulator {
        user.setPassword(try hashInTurn(password), now: now)
      } else {
        guard let bytes = Base64.decode(hash), let salt = Base64.decode(record.salt ?? "") else {
          throw AccountError(.invalidHashParameter, "passwordHash and salt must be base64")
        }
        user.passwordHash = try parameters.hash(bytes, salt: salt)
        user.passwordUpdatedAt = user.passwordUpdatedAt ?? now
      }
    }
    return user
  }

  /// The password in the text that other emulators store instead of a hash: `fakeHash:salt=S:password=P`.
  private static func emulatorPassword(_ hash: String) -> String? {
    guard hash.hasPrefix("fakeHash:salt=") else { return nil }
    let mark = Array(":password=".utf8)
    let bytes = Array(hash.utf8)
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
    return String(decoding: bytes[(start + mark.count)...], as: UTF8.self)
  }

  /// Hashes a password on the hashing threads, one queue entry per password, so that sign-ins do not wait for a
  /// whole batch.
  private func hashInTurn(_ password: String) throws -> PasswordHash {
    let outcome = Mutex<Result<PasswordHash, AccountError>?>(nil)
    let done = DispatchSemaphore(value: 0)
    let passwords = passwords
    let checked = try UserFields.newPassword(password)
    let isTaken = submit(.password) {
      let made = Result { () throws(AccountError) in try passwords.hash(checked) }
      outcome.withLock { $0 = made }
      done.signal()
    }
    guard isTaken else {
      throw AccountError(.quotaExceeded, "Too many passwords are waiting to be hashed. Try again later.")
    }
    done.wait()
    return try outcome.withLock { $0 }?.get() ?? passwords.hash(checked)
  }
}
