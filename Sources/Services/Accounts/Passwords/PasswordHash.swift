import WireFormat

/// A password hash, as one text that contains its algorithm and parameters.
///
/// - `$argon2id$…`, `$argon2i$…`: the server's own hashes, as libsodium writes them; also imported Argon2 hashes
/// - `$2a$…`, `$2b$…`, `$2y$…`: bcrypt
/// - `$firebase-scrypt$…`, `$scrypt$…`, `$pbkdf2$…`, `$digest$…`, `$hmac$…`: imported; see ``ImportedHash``
package struct PasswordHash: Equatable, Sendable {
  /// The text. Treat it as a secret: it is never logged, and only administrators can read it.
  package let text: String

  /// Creates a hash from a text of one of the forms above. Returns `nil` for any other text.
  package init?(text: String) {
    guard PasswordScheme(of: text) != nil else { return nil }
    self.text = text
  }

  /// Creates a hash from the base64 of its text, as exports contain it. Returns `nil` if it is not valid.
  package init?(exported: String) {
    guard let bytes = Base64.decode(exported), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self.init(text: text)
  }

  /// The text that responses contain in place of a hash. No password matches it. Its base64 is
  /// ``User/redactedHash``.
  package static let redacted = PasswordHash(unchecked: "REDACTED")

  init(unchecked text: String) { self.text = text }

  /// The salt, or `nil` if the hash has none, or if it is in another encoding, as in a bcrypt hash.
  package var salt: [UInt8]? {
    switch PasswordScheme(of: text) {
    case .argon2:
      // The base64 of the salt has no padding.
      text.split(separator: "$").dropFirst(3).first.flatMap { Base64.decode(String($0)) }
    case .imported(let hash): hash.salt.isEmpty ? nil : hash.salt
    case .bcrypt, nil: nil
    }
  }

  /// Returns whether `password` matches. Cost: depends on the scheme, tens of milliseconds and tens of MiB of
  /// memory. Do not call it on an event loop.
  package func accepts(_ password: String) -> Bool {
    switch PasswordScheme(of: text) {
    case .argon2: Argon2.accepts(password, text)
    case .bcrypt: Bcrypt.accepts(password, text)
    case .imported(let hash): hash.accepts(Array(password.utf8))
    case nil: false
    }
  }

  /// Returns whether to replace the hash when the password is next known: it was imported, or has another cost.
  package func isOutdated(for work: PasswordWork) -> Bool {
    switch PasswordScheme(of: text) {
    case .argon2: Argon2.isOutdated(text, work)
    default: true
    }
  }
}

/// The algorithm of a password hash.
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
