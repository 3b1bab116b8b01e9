import Basics
import LogEngine
package import SharedLog

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
///     hearth_meta(k, v)                                    'format', 'project', 'cluster', 'secret', 'key', 'loss';
///                                                          after a loss also 'lost' and 'renewed', each a ``LogLoss``
///     hearth_member(node, place, address, software,        the nodes: where their data directory is, the address for other
///                   started, draining)                     nodes, and whether the operator asked one to own nothing
///     hearth_node(node, session, renewal, is_live)         the last session of each node, also of those removed
///     hearth_cluster(id, epoch, owner, owner_session,      one row: the owner, how far it confirmed the log, and the
///                    confirmed, log_from)                  sequence of the first entry that the log has
///     hearth_log(seq, epoch, kind, chain, body)            the log: its primary key admits one entry at a position
///     hearth_config(version, body)                         the configurations that were deployed
///     hearth_snapshot(id, seq, epoch, chain, parts,        the snapshots of the stores that are whole
///                     bytes, file_bytes, made, manifest)
///     hearth_snapshot_part(snapshot, part, body)           their parts
///     hearth_snapshot_claim(id, snapshot, until)           one row: the snapshot that a node writes now
package enum ClusterSchema {
  /// The format that this version makes and knows.
  package static let format: Int64 = 2
  /// The names of the tables.
  package static let tableNames = [
    "hearth_meta", "hearth_member", "hearth_node", "hearth_cluster", "hearth_log", "hearth_config",
    "hearth_snapshot", "hearth_snapshot_part", "hearth_snapshot_claim",
  ]
  private static let milliseconds = 10_000

  /// Makes the tables, with version 1 of the configuration, in one transaction. With `first`, the log begins with that entry:
  /// the data before it come with a snapshot, without which no node becomes the owner.
  /// - Throws: ``PostgresFailure/tablesExist``; ``PostgresFailure/configurationTooLarge``; another ``PostgresFailure`` if
  ///   PostgreSQL cannot be reached or refuses. Only after a refusal it is certain that no tables were made.
  package static func create(
    at url: String, _ identity: ClusterIdentity, configuration: ClusterConfiguration = ClusterConfiguration(),
    first: SharedEntry? = nil
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
        guard let first else { return }
        try connection.perform(
          insertFirst,
          [
            .bits(first.position.sequence), .bits(first.position.epoch), .integer(Int64(first.kind.rawValue)),
            .bits(first.position.chain), .bytes(first.body),
          ], milliseconds: milliseconds)
        try connection.perform(setFirst, [.bits(first.position.sequence)], milliseconds: milliseconds)
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

  /// Removes the tables of a cluster that was just made, with everything in them, if no node has begun a session.
  /// - Throws: ``PostgresFailure`` if it is another cluster, a node uses it, or PostgreSQL does not do it.
  package static func remove(at url: String, _ identity: ClusterIdentity) throws(PostgresFailure) {
    let connection = try PostgresConnection(url)
    guard try check(connection) == identity else { throw .otherCluster(project: identity.project) }
    try connection.transaction(milliseconds: milliseconds) { () throws(PostgresFailure) in
      guard try connection.perform(countSessions, milliseconds: milliseconds).integer(0, 0) == 0 else {
        throw .otherCluster(project: identity.project)
      }
      try connection.perform(dropTables, milliseconds: milliseconds)
    }
  }

  private static let countSessions = PostgresStatement("count-sessions", "SELECT count(*) FROM hearth_node")
  private static let dropTables = PostgresStatement(
    "drop-tables",
    """
    DROP TABLE hearth_meta, hearth_member, hearth_node, hearth_cluster, hearth_log, hearth_config, hearth_snapshot,
      hearth_snapshot_part, hearth_snapshot_claim
    """)

  /// Adds what the tables of the format before lack. Nodes of the former version that run go on until they stop.
  /// - Throws: ``PostgresFailure`` as ``check(at:)``, or if the role may not make tables. Nothing has changed then.
  package static func upgrade(at url: String) throws(PostgresFailure) {
    let connection = try PostgresConnection(url)
    do throws(PostgresFailure) {
      _ = try check(connection)
      return
    } catch { guard error == .formerFormat else { throw error } }
    try connection.transaction(milliseconds: milliseconds) { () throws(PostgresFailure) in
      let changed = try connection.perform(
        setFormat, [.text("\(format)"), .text("\(format - 1)")], milliseconds: milliseconds)
      guard changed.changedRows == 1 else { throw .unexpectedAnswer }
      for statement in snapshotTables { try connection.perform(statement, milliseconds: milliseconds) }
    }
    _ = try check(connection)
  }

  static func check(_ connection: PostgresConnection) throws(PostgresFailure) -> ClusterIdentity {
    do throws(PostgresFailure) {
      let result = try connection.perform(readMeta, milliseconds: milliseconds)
      func value(_ key: String) -> String? {
        (0..<result.rows).first { result.text($0, 0) == key }.flatMap { result.text($0, 1) }
      }
      guard let found = value("format") else { throw .foreignTables }
      guard let number = Int64(found), number == format else {
        throw found == "1" ? .formerFormat : .unknownFormat(found)
      }
      guard let project = value("project"), DatabaseIDPart.isValid(project),
        let id = value("cluster").flatMap({ Hexadecimal.bytes($0) }), id.count == ClusterIdentity.idBytes,
        let secret = value("secret").flatMap({ UInt64($0, radix: 16) }),
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
    LEFT JOIN hearth_snapshot s ON s.id = 0 AND s.seq = s.epoch AND s.chain = s.parts AND s.bytes = s.file_bytes
      AND s.made = 0 AND octet_length(s.manifest) = 0
    LEFT JOIN hearth_snapshot_part t ON t.snapshot = 0 AND t.part = 0 AND octet_length(t.body) = 0
    LEFT JOIN hearth_snapshot_claim k ON k.id = 0 AND k.snapshot = k.until
    WHERE c.id = 1 AND c.confirmed >= 0 AND c.log_from >= 0
    """)
  private static let insertMeta = PostgresStatement(
    "insert-meta", "INSERT INTO hearth_meta (k, v) VALUES ($1::text, $2::text)")
  private static let insertConfiguration = PostgresStatement(
    "insert-configuration", "INSERT INTO hearth_config (version, body) VALUES (1, $1::bytea)")

  private static let insertFirst = PostgresStatement(
    "insert-first",
    """
    INSERT INTO hearth_log (seq, epoch, kind, chain, body)
    VALUES ($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea)
    """)
  private static let setFirst = PostgresStatement(
    "set-first", "UPDATE hearth_cluster SET log_from = $1::bigint, confirmed = $1::bigint WHERE id = 1")

  private static let tables =
    [
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
    ] + snapshotTables

  /// The tables that format 2 added.
  private static let snapshotTables = [
    PostgresStatement(
      "make-snapshot",
      """
      CREATE TABLE hearth_snapshot (
        id bigint PRIMARY KEY, seq bigint NOT NULL, epoch bigint NOT NULL, chain bigint NOT NULL, parts bigint NOT NULL,
        bytes bigint NOT NULL, file_bytes bigint NOT NULL, made bigint NOT NULL, manifest bytea NOT NULL)
      """),
    PostgresStatement(
      "make-snapshot-part",
      """
      CREATE TABLE hearth_snapshot_part (
        snapshot bigint NOT NULL, part bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (snapshot, part))
      """),
    PostgresStatement(
      "make-snapshot-claim",
      "CREATE TABLE hearth_snapshot_claim (id bigint PRIMARY KEY, snapshot bigint, until bigint NOT NULL)"),
    PostgresStatement("make-claim", "INSERT INTO hearth_snapshot_claim VALUES (1, NULL, 0)"),
  ]
  private static let setFormat = PostgresStatement(
    "set-format", "UPDATE hearth_meta SET v = $1::text WHERE k = 'format' AND v = $2::text")
}
