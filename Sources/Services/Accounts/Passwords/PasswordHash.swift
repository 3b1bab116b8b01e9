import WireFormat

/// What tells whether a password is right, as one text that says by itself how it was made.
///
/// - `$argon2id$…`, `$argon2i$…`: ours, in the form libsodium writes; also Argon2 that was imported
/// - `$2a$…`, `$2b$…`, `$2y$…`: bcrypt
/// - `$firebase-scrypt$…`, `$scrypt$…`, `$pbkdf2$…`, `$digest$…`, `$hmac$…`: imported; see ``ImportedHash``
package struct PasswordHash: Equatable, Sendable {
  /// The text. A secret, near enough: it is never logged, and shown to administrators only.
  package let text: String

  /// Takes a text of one of the forms above; `nil` for any other.
  package init?(text: String) {
    guard PasswordScheme(of: text) != nil else { return nil }
    self.text = text
  }

  /// Takes the base64 of such a text: what exports hold.
  package init?(exported: String) {
    guard let bytes = Base64.decode(exported), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self.init(text: text)
  }

  init(unchecked text: String) { self.text = text }

  /// Whether `password` is the one. Cost: that of the scheme, tens of milliseconds and of mebibytes; never on an event
  /// loop.
  package func accepts(_ password: String) -> Bool {
    switch PasswordScheme(of: text) {
    case .argon2: Argon2.accepts(password, text)
    case .bcrypt: Bcrypt.accepts(password, text)
    case .imported(let hash): hash.accepts(Array(password.utf8))
    case nil: false
    }
  }

  /// Whether a new hash should take its place once the password is known: it was imported, or made with other work.
  package func isOutdated(for work: PasswordWork) -> Bool {
    switch PasswordScheme(of: text) {
    case .argon2: Argon2.isOutdated(text, work)
    default: true
    }
  }
}

/// How a hash was made.
enum PasswordScheme {
  case argon2
  case bcrypt
  case imported(ImportedHash)

  init?(of text: String) {
    if text.hasPrefix("$argon2id$") || text.hasPrefix("$argon2i$") {
      guard Argon2.isHash(text) else { return nil }
      self = .argon2
    } else if text.hasPrefix("$2") {
      guard Bcrypt.isHash(text) else { return nil }
      self = .bcrypt
    } else if let hash = ImportedHash(text: text) {
      self = .imported(hash)
    } else {
      return nil
    }
  }
}
