/// How queries are authorized.
package enum ProofMode: Sendable {
  /// A query is allowed only if every document that it could return is allowed, and if ``emulator`` allows it.
  case sound
  /// A query is authorized as the official emulator does: a field that the query does not mention counts as absent.
  /// This also allows queries that can return forbidden documents (rules-language.md, section 14.3). For old test
  /// suites.
  case emulator
}
