/// Makes and checks hashes of passwords, with one amount of work. Blocks for its time: see ``BoundedQueue``.
package struct Passwords: Sendable {
  /// The work of a new hash.
  package let work: PasswordWork
  /// The hash of a password that nobody has: what is checked where there is no user, so that it takes as long.
  private let decoy: PasswordHash

  /// Creates a maker of hashes. Cost: one hash.
  /// - Throws: ``AccountError`` where there is not enough memory.
  package init(_ work: PasswordWork) throws(AccountError) {
    self.work = work
    decoy = try Argon2.hash(RandomBytes.alphanumeric(32), work)
  }

  /// The hash of a new password.
  /// - Throws: ``AccountError`` where there is not enough memory.
  package func hash(_ password: String) throws(AccountError) -> PasswordHash { try Argon2.hash(password, work) }

  /// Whether a password is right for a hash. Without a hash it is wrong, and takes as long to tell; so does a wrong one
  /// for a hash of other work, or longer.
  package func accepts(_ password: String, for hash: PasswordHash?) -> Bool {
    guard password.utf8.count <= UserLimits.passwordBytesMax else { return false }
    guard let hash else {
      _ = decoy.accepts(password)
      return false
    }
    if hash.accepts(password) { return true }
    // Many imported hashes are cheap. That the answer comes early must not tell that there is such an account.
    if hash.isOutdated(for: work) { _ = decoy.accepts(password) }
    return false
  }

  /// The hash to store where a password was right for `hash`; `nil` where that one is good.
  package func replacement(of hash: PasswordHash, _ password: String) throws(AccountError) -> PasswordHash? {
    hash.isOutdated(for: work) ? try Argon2.hash(password, work) : nil
  }
}
