/// The tables of a cluster in a PostgreSQL database. Their SQL is a portable subset: no sequences, functions, triggers or
/// advisory locks.
///
///     hearth_meta(k, v)                                    'format' and 'secret'
///     hearth_node(node, session, renewal, is_live)         the last session of each node
///     hearth_cluster(id, epoch, owner, owner_session,      one row: the owner, how far it confirmed the log, and the
///                    confirmed, log_from)                  sequence of the first entry that the log has
///     hearth_log(seq, epoch, kind, chain, body)            the log: its primary key admits one entry at a position
package enum ClusterSchema {
  /// The format that this version makes and knows.
  package static let format: Int64 = 1
  private static let milliseconds = 10_000

  /// Makes the tables. `secret` is a random number, with which the chains of the log begin.
  /// - Throws: ``PostgresFailure/tablesExist``; another ``PostgresFailure`` if PostgreSQL cannot be reached or refuses.
  package static func create(at url: String, secret: UInt64) throws(PostgresFailure) {
    let connection = try PostgresConnection(url)
    do throws(PostgresFailure) {
      try connection.transaction(milliseconds: milliseconds) { () throws(PostgresFailure) in
        for statement in tables { try connection.perform(statement, milliseconds: milliseconds) }
        for (key, value) in [("format", UInt64(format)), ("secret", secret)] {
          try connection.perform(
            PostgresStatement(
              "meta", "INSERT INTO hearth_meta (k, v) VALUES (convert_from($1::bytea, 'UTF8'), $2::bigint)"),
            [.bytes([UInt8](key.utf8)), .bits(value)], milliseconds: milliseconds)
        }
      }
    } catch {
      if case .refused("42P07", _) = error { throw .tablesExist }
      throw error
    }
  }

  /// Checks that the tables exist in a format that this version knows. Returns the secret of the log.
  /// - Throws: ``PostgresFailure/noTables``, ``PostgresFailure/unknownFormat(_:)``; another ``PostgresFailure`` if PostgreSQL
  ///   cannot be reached or refuses.
  package static func check(at url: String) throws(PostgresFailure) -> UInt64 {
    let connection = try PostgresConnection(url)
    let result: PostgresResult
    do throws(PostgresFailure) {
      result = try connection.perform(
        PostgresStatement(
          "open",
          """
          SELECT (SELECT v FROM hearth_meta WHERE k = 'format'), (SELECT v FROM hearth_meta WHERE k = 'secret'),
            (SELECT count(*) FROM hearth_cluster), (SELECT count(*) FROM hearth_node),
            (SELECT count(*) FROM hearth_log WHERE seq < 2)
          """), milliseconds: milliseconds)
    } catch {
      if error.isMissingTable { throw .noTables }
      throw error
    }
    guard let found = result.integer(0, 0), let secret = result.bits(0, 1), result.integer(0, 2) == 1 else {
      throw .unexpectedAnswer
    }
    guard found == format else { throw .unknownFormat(found) }
    return secret
  }

  private static let tables = [
    PostgresStatement("make-meta", "CREATE TABLE hearth_meta (k text PRIMARY KEY, v bigint NOT NULL)"),
    PostgresStatement(
      "make-node",
      """
      CREATE TABLE hearth_node (
        node bigint PRIMARY KEY, session bigint NOT NULL, renewal bigint NOT NULL, is_live boolean NOT NULL)
      """),
    PostgresStatement(
      "make-cluster",
      """
      CREATE TABLE hearth_cluster (
        id bigint PRIMARY KEY, epoch bigint NOT NULL, owner bigint, owner_session bigint, confirmed bigint NOT NULL,
        log_from bigint NOT NULL)
      """),
    PostgresStatement(
      "make-log",
      """
      CREATE TABLE hearth_log (
        seq bigint PRIMARY KEY, epoch bigint NOT NULL, kind bigint NOT NULL, chain bigint NOT NULL, body bytea NOT NULL)
      """),
    PostgresStatement("make-row", "INSERT INTO hearth_cluster VALUES (1, 0, NULL, NULL, 0, 1)"),
  ]
}
