import Synchronization

/// Computes and verifies password hashes of one cost. Calls block; run them on `BoundedWorkers`.
package struct Passwords: Sendable {
  /// The cost of a new hash.
  package let work: PasswordWork
  /// The hash of a random password. It is verified if no user exists, so the response takes as long.
  private let decoy: PasswordHash

  /// The decoys of all hashers in the process. No client sees one, so projects share them.
  private static let decoys = Mutex<[(work: PasswordWork, hash: PasswordHash)]>([])

  /// Creates the hasher. Cost: one hash for the first hasher of a cost in the process.
  /// - Throws: ``AccountError`` `INTERNAL_ERROR` if there is not enough memory.
  package init(_ work: PasswordWork) throws(AccountError) {
    self.work = work
    if let known = Self.decoys.withLock({ decoys in decoys.first { $0.work == work }?.hash }) {
      decoy = known
      return
    }
    let new = try Argon2.hash(RandomBytes.alphanumeric(32), work)
    decoy = new
    Self.decoys.withLock { $0.append((work, new)) }
  }

  /// Returns the hash of a new password.
  /// - Throws: ``AccountError`` `INTERNAL_ERROR` if there is not enough memory.
  package func hash(_ password: String) throws(AccountError) -> PasswordHash { try Argon2.hash(password, work) }

  /// Returns whether a password matches a hash. If `hash` is `nil`, returns `false` after the time of a real check.
  /// A wrong password for a hash of another cost takes at least that long too.
  package func accepts(_ password: String, for hash: PasswordHash?) -> Bool {
    guard password.utf8.count <= UserLimits.passwordBytesMax else { return false }
    guard let hash else {
      _ = decoy.accepts(password)
      return false
    }
    if hash.accepts(password) { return true }
    // Many imported hashes are cheap. A fast response must not reveal that the account exists.
    if hash.isOutdated(for: work) { _ = decoy.accepts(password) }
    return false
  }

  /// Returns the hash to store after a password matched `hash`, or `nil` if `hash` is up to date.
  /// - Throws: ``AccountError`` `INTERNAL_ERROR` if there is not enough memory.
  package func replacement(of hash: PasswordHash, _ password: String) throws(AccountError) -> PasswordHash? {
    hash.isOutdated(for: work) ? try Argon2.hash(password, work) : nil
  }
}
