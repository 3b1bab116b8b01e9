/// Whether a server is for tests or for real users. All layers get the same value, and decide by the answers below.
package enum ServerMode: Sendable {
  /// For development and tests: callers need neither rules nor valid credentials.
  case emulator
  /// For real users.
  case production

  /// Whether all callers may use a database that has no rules. Otherwise only administrators may.
  package var admitsCallersWithoutRules: Bool { self == .emulator }
  /// Whether the error for a denied request contains the reasons. They may reveal the rules and other documents.
  package var explainsDenials: Bool { self == .emulator }
  /// Whether tokens are unsigned, and every well-formed token is accepted. Otherwise signatures are verified.
  package var acceptsUnsignedTokens: Bool { self == .emulator }
  /// Whether requests of the storage API without credentials come from an administrator.
  package var trustsMissingCredentials: Bool { self == .emulator }
  /// Whether databases and buckets exist as soon as a request names them. Otherwise only declared ones exist.
  package var createsWhatRequestsName: Bool { self == .emulator }
}
