import PostgresEngine

/// The PostgreSQL server of a cluster, as the verbs of `hearth cluster` take it.
enum ClusterAddress {
  /// The environment variable with the URL.
  static let variable = "HEARTH_CLUSTER"

  /// The option of verbs that need the key of the cluster.
  static let keyOption = Command.Option.value(
    "key", "FILE", "the key of the cluster (default: cluster.key here, or /etc/hearth/cluster.key)")

  /// The paragraphs that the help of each verb has.
  static let details = """
    POSTGRES-URL is such as postgres://hearth@pg1,pg2/hearth; without it, the environment variable \(variable)
    is read. If it names several hosts, the verb uses the one that accepts writes. Other users of the machine
    can see a password in the URL. PostgreSQL's library also takes it from PGPASSWORD or ~/.pgpass, and no
    output contains it.
    """

  /// Returns the URL: the operand, or the value of the environment variable.
  /// - Throws: ``CommandFailure`` if both are missing, or the text is not a URL of PostgreSQL.
  static func url(_ operand: String?) throws -> String {
    guard let url = operand ?? DatabaseChoice.environment(variable) else {
      throw CommandFailure.usage("an operand is missing: POSTGRES-URL, or set \(variable)")
    }
    // The text may have a password, so no message repeats it.
    guard PostgresURL.isOne(url) else { throw CommandFailure.usage(PostgresFailure.notAURL.description) }
    return url
  }

  /// Returns a URL as a word of a shell, without its password.
  static func shellWord(_ url: String) -> String {
    "'"
      + PostgresURL.withoutPassword(url).split(separator: "'", omittingEmptySubsequences: false).joined(
        separator: "'\\''")
      + "'"
  }
}
