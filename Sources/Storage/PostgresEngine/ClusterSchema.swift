import Basics

/// The facts about a cluster that never change, as `hearth_meta` has them.
package struct ClusterIdentity: Equatable, Sendable {
  /// The size of ``id``.
  package static let idBytes = 16

  /// The project that the cluster serves.
  package let project: String
  /// A random number of 16 bytes. Data directories name the cluster that they belong to with it.
  package let id: [UInt8]
  /// The random number with which the chains of the log begin.
  package let secret: UInt64
  /// The check value of the cluster's key, see ``ClusterKey/check()``.
  package let keyCheck: [UInt8]
  /// Whether the operator accepted that PostgreSQL may lose acknowledged commits.
  package let acceptsLoss: Bool

  /// Describes a new cluster, with a random ``id`` and ``secret`` unless they are given.
  package init(
    project: String, keyCheck: [UInt8], acceptsLoss: Bool, id: [UInt8]? = nil, secret: UInt64? = nil
  ) {
    var generator = SystemRandomNumberGenerator()
    self.project = project
    self.keyCheck = keyCheck
    self.acceptsLoss = acceptsLoss
    self.id = id ?? (0..<Self.idBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
    self.secret = secret ?? generator.next()
  }

  /// Checks that a key is that of the cluster.
  /// - Throws: ``PostgresFailure/otherKey`` if it is not.
  package func check(keyCheck other: [UInt8]) throws(PostgresFailure) {
    guard other == keyCheck else { throw .otherKey }
  }
}

/// The tables of a cluster in a PostgreSQL database. Their SQL is a portable subset: no sequences, functions,
/// triggers or advisory locks.
///
///     hearth_meta(k, v)                                    'format', 'project', 'cluster', 'secret', 'key', 'loss'
///     hearth_member(node, place, address, software,        the nodes: where their data directory is, the address for other
///                   started, draining)                     nodes, and whether the operator asked one to own nothing
///     hearth_node(node, session, renewal, is_live)         the last session of each node
///     hearth_cluster(id, epoch, owner, owner_session,      one row: the owner, how far it confirmed the log, and the
///                    confirmed, log_from)                  sequence of the first entry that the log has
///     hearth_log(seq, epoch, kind, chain, body)            the log: its primary key admits one entry at a position
///     hearth_config(version, body)                         the configurations that were deployed
package enum ClusterSchema {
  /// The format that this version makes and knows.
  package static let format: Int64 = 1
  /// The names of the tables.
  package static let tableNames = [
    "hearth_meta", "hearth_member", "hearth_node", "hearth_cluster", "hearth_log", "hearth_config",
  ]
  private static let milliseconds = 10_000

  /// Makes the tables, with version 1 of the configuration, in one transaction.
  /// - Throws: ``PostgresFailure/tablesExist``; ``PostgresFailure/configurationTooLarge``; another ``PostgresFailure`` if
  ///   PostgreSQL cannot be reached or refuses. Only after a refusal it is certain that no tables were made.
  package static func create(
    at url: String, _ identity: ClusterIdentity, configuration: ClusterConfiguration = ClusterConfiguration()
  ) throws(PostgresFailure) {
    guard let body = configuration.encoded() else { throw .configurationTooLarge }
    let connection = try PostgresConnection(url)
    do throws(PostgresFailure) {
      try connection.transaction(milliseconds: milliseconds) { () throws(PostgresFailure) in
        for statement in tables { try connection.perform(statement, milliseconds: milliseconds) }
        for (key, value) in meta(of: identity) {
          try connection.perform(insertMeta, [.text(key), .text(value)], milliseconds: milliseconds)
        }
        try connection.perform(insertConfiguration, [.bytes(body)], milliseconds: milliseconds)
      }
    } catch {
      var isTaken = error.isDuplicate
      if case .refused("42P07", _) = error { isTaken = true }
      // Of two transactions that make the tables at once, the second fails at an index of the catalog.
      guard isTaken else { throw error }
      do throws(PostgresFailure) { _ = try check(connection) } catch {
        // Hearth did not make the table that exists.
        throw error == .noTables ? .foreignTables : error
      }
      throw .tablesExist
    }
  }

  /// Checks that the tables exist in a format that this version knows, and reads what the cluster is.
  /// - Throws: ``PostgresFailure/noTables``, ``PostgresFailure/foreignTables``, ``PostgresFailure/unknownFormat(_:)``; another
  ///   ``PostgresFailure`` if PostgreSQL cannot be reached or refuses.
  package static func check(at url: String) throws(PostgresFailure) -> ClusterIdentity {
    try check(try PostgresConnection(url))
  }

  static func check(_ connection: PostgresConnection) throws(PostgresFailure) -> ClusterIdentity {
    do throws(PostgresFailure) {
      let result = try connection.perform(readMeta, milliseconds: milliseconds)
      func value(_ key: String) -> String? {
        (0..<result.rows).first { result.text($0, 0) == key }.flatMap { result.text($0, 1) }
      }
      guard let found = value("format") else { throw .foreignTables }
      guard let number = Int64(found), number == format else { throw .unknownFormat(found) }
      guard let project = value("project"), let id = value("cluster").flatMap({ Hexadecimal.bytes($0) }),
        id.count == ClusterIdentity.idBytes, let secret = value("secret").flatMap({ UInt64($0, radix: 16) }),
        let key = value("key").flatMap({ Hexadecimal.bytes($0) }), let loss = value("loss")
      else { throw .foreignTables }
      try connection.perform(probe, milliseconds: milliseconds)
      return ClusterIdentity(
        project: project, keyCheck: key, acceptsLoss: loss == "accepted", id: id, secret: secret)
    } catch {
      switch error {
      case .refused("42703", _), .refused("42804", _), .refused("42883", _): throw .foreignTables
      case .refused("42P01", let message): throw message.contains("hearth_meta") ? .noTables : .foreignTables
      default: throw error
      }
    }
  }

  private static func meta(of identity: ClusterIdentity) -> [(String, String)] {
    [
      ("format", "\(format)"), ("project", identity.project), ("cluster", Hexadecimal.text(identity.id)),
      ("secret", String(identity.secret, radix: 16)), ("key", Hexadecimal.text(identity.keyCheck)),
      ("loss", identity.acceptsLoss ? "accepted" : "refused"),
    ]
  }

  private static let readMeta = PostgresStatement("read-meta", "SELECT k::text, v::text FROM hearth_meta")
  /// It names each column that other statements use.
  private static let probe = PostgresStatement(
    "probe",
    """
    SELECT 1::bigint FROM hearth_cluster c
    LEFT JOIN hearth_node n ON n.node = c.owner AND n.session = c.owner_session AND n.renewal = 0 AND n.is_live
    LEFT JOIN hearth_member m ON m.node = n.node AND m.place = m.address AND m.software = '' AND m.started = 0 AND m.draining
    LEFT JOIN hearth_log l ON l.seq = 0 AND l.epoch = c.epoch AND l.kind = 0 AND l.chain = 0 AND octet_length(l.body) = 0
    LEFT JOIN hearth_config f ON f.version = 0 AND octet_length(f.body) = 0
    WHERE c.id = 1 AND c.confirmed >= 0 AND c.log_from >= 0
    """)
  private static let insertMeta = PostgresStatement(
    "insert-meta", "INSERT INTO hearth_meta (k, v) VALUES ($1::text, $2::text)")
  private static let insertConfiguration = PostgresStatement(
    "insert-configuration", "INSERT INTO hearth_config (version, body) VALUES (1, $1::bytea)")

  private static let tables = [
    PostgresStatement("make-meta", "CREATE TABLE hearth_meta (k text PRIMARY KEY, v text NOT NULL)"),
    PostgresStatement(
      "make-member",
      """
      CREATE TABLE hearth_member (
        node bigint PRIMARY KEY, place text NOT NULL, address text NOT NULL, software text NOT NULL,
        started bigint NOT NULL, draining boolean NOT NULL)
      """),
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
    PostgresStatement(
      "make-config", "CREATE TABLE hearth_config (version bigint PRIMARY KEY, body bytea NOT NULL)"),
    PostgresStatement("make-row", "INSERT INTO hearth_cluster VALUES (1, 0, NULL, NULL, 0, 1)"),
  ]
}
