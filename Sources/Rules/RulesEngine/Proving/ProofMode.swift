/// How queries are authorised.
package enum ProofMode: Sendable {
  /// A query is allowed only when every document it could return is allowed, and when ``emulator`` allows it.
  case sound
  /// As the official emulator does it: fields that the query does not mention count as absent, which also allows
  /// queries that can return forbidden documents (rules-language.md, section 14.3). For old test suites.
  case emulator
}
