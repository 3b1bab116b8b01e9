import Glibc

/// Checks whether a PostgreSQL server, with the rights and settings of a role, can hold the tables of a cluster.
package struct EngineCheck: Sendable {
  /// The oldest version of PostgreSQL whose behavior is known.
  package static let versionMin: Int64 = 13
  /// The connections that a node keeps open, with one to spare.
  package static let connectionsPerNode: Int64 = 5
  private static let milliseconds = 5000

  /// Returns the findings, one for each subject, or more than one if a subject has several mistakes.
  /// - Throws: ``PostgresFailure`` if PostgreSQL cannot be reached.
  package static func findings(at url: String) throws(PostgresFailure) -> [EngineFinding] {
    let connection = try PostgresConnection(url)
    var settings: [String: Setting] = [:]
    let result = try connection.perform(readSettings, milliseconds: milliseconds)
    for row in 0..<result.rows {
      guard let name = result.text(row, 0), let value = result.text(row, 1), let source = result.text(row, 2) else {
        throw .unexpectedAnswer
      }
      settings[name] = Setting(value: value, source: source)
    }
    let check = EngineCheck(settings: settings)
    var findings = check.version() + check.durability() + check.standbys() + check.isolation()
    findings += try check.connections(connection)
    findings += try rights(connection)
    findings += try encryption(connection)
    findings += try clock(connection)
    return findings
  }

  /// A setting as it is in force for the role in its database.
  struct Setting: Equatable, Sendable {
    let value: String
    /// The source of the value in PostgreSQL, such as `user`, `database` or `configuration file`.
    let source: String
  }

  let settings: [String: Setting]

  private func value(_ name: String) -> String { settings[name]?.value ?? "" }

  /// The place to change a setting: that of the role or the database wins over that of the server.
  private func remedy(_ name: String, _ value: String) -> String {
    switch settings[name]?.source {
    case "user", "database user": "ALTER ROLE … RESET \(name), or SET \(name) = \(value)."
    case "database": "ALTER DATABASE … RESET \(name), or SET \(name) = \(value)."
    case "client": "Remove it from the options of the URL and from PGOPTIONS."
    default: "Set \(name) = \(value) in postgresql.conf, and reload or restart PostgreSQL."
    }
  }

  // MARK: Settings

  func version() -> [EngineFinding] {
    let number = Int64(value("server_version_num")) ?? 0
    let text = "PostgreSQL \(value("server_version"))"
    guard number / 10_000 < Self.versionMin else { return [EngineFinding(.ok, "version", text)] }
    return [EngineFinding(.error, "version", text, "Use PostgreSQL \(Self.versionMin) or a later version.")]
  }

  /// The settings without which a crash of PostgreSQL's own machine loses commits.
  func durability() -> [EngineFinding] {
    var findings: [EngineFinding] = []
    for (name, effect) in [
      ("fsync", "off: a crash of the machine of PostgreSQL can damage everything"),
      ("full_page_writes", "off: a crash of the machine of PostgreSQL can damage pages"),
    ] {
      let isOn = value(name) == "on"
      findings.append(EngineFinding(isOn ? .ok : .loss, name, isOn ? "on" : effect, isOn ? nil : remedy(name, "on")))
    }
    let name = "synchronous_commit"
    let value = value(name)
    switch value {
    case "on", "remote_apply": findings.append(EngineFinding(.ok, name, value))
    case "remote_write":
      findings.append(
        EngineFinding(
          .warning, name, "remote_write: if both machines crash at once, acknowledged commits are lost",
          remedy(name, "on")))
    case "local" where self.value("synchronous_standby_names").isEmpty:
      // Without standbys, it means the same as on; the missing standby is a finding of its own.
      findings.append(EngineFinding(.ok, name, value))
    case "local":
      findings.append(
        EngineFinding(
          .loss, name, "local: commits do not wait for the standby, so a failover can lose them", remedy(name, "on")))
    default:
      findings.append(
        EngineFinding(
          .loss, name, "\(value): PostgreSQL acknowledges commits before they are on disk", remedy(name, "on")))
    }
    return findings
  }

  func standbys() -> [EngineFinding] {
    let name = "synchronous_standby_names"
    let value = value(name)
    guard value.isEmpty else { return [EngineFinding(.ok, name, value)] }
    return [
      EngineFinding(
        .loss, name, "empty: if the machine of PostgreSQL dies, acknowledged commits are lost with it",
        "Add a standby that replicates synchronously, such as with Patroni (synchronous_mode).")
    ]
  }

  func isolation() -> [EngineFinding] {
    let name = "default_transaction_isolation"
    var findings = [EngineFinding(.ok, name, value(name))]
    if value("default_transaction_read_only") == "on" {
      findings.append(
        EngineFinding(
          .error, "default_transaction_read_only", "on: nothing can be written",
          remedy("default_transaction_read_only", "off")))
    }
    return findings
  }

  // MARK: The role

  private func connections(_ connection: PostgresConnection) throws(PostgresFailure) -> [EngineFinding] {
    let result = try connection.perform(Self.readLimits, milliseconds: Self.milliseconds)
    let server = (Int64(value("max_connections")) ?? 0) - (Int64(value("superuser_reserved_connections")) ?? 0)
    // A negative limit of a role or a database means that it has none.
    let limits =
      [("max_connections", server)]
      + [("the connection limit of the role", 0), ("the connection limit of the database", 1)].compactMap {
        (name: String, column: Int) in
        result.integer(0, column).flatMap { $0 < 0 ? nil : (name, $0) }
      }
    guard let least = limits.min(by: { $0.1 < $1.1 }) else { return [] }
    let text = "\(least.0) admits \(least.1) connections, and a node needs \(Self.connectionsPerNode)"
    // Three nodes, and a few more for operators.
    guard least.1 < 4 * Self.connectionsPerNode else { return [EngineFinding(.ok, "connections", text)] }
    return [EngineFinding(.warning, "connections", text, "Raise it.")]
  }

  private static func rights(_ connection: PostgresConnection) throws(PostgresFailure) -> [EngineFinding] {
    let result = try connection.perform(readRights, milliseconds: milliseconds)
    guard let role = result.text(0, 0) else { throw .unexpectedAnswer }
    guard let schema = result.text(0, 1) else {
      return [
        EngineFinding(
          .error, "rights", "no schema of the search path exists, or the role \(role) may use none",
          "GRANT USAGE, CREATE ON SCHEMA public TO \(role).")
      ]
    }
    let missing = result.integer(0, 3) ?? 0
    // The tables exist already, and the role can use them.
    if result.integer(0, 4) ?? 0 > 0, missing == 0 {
      return [EngineFinding(.ok, "rights", "the role \(role) may use the tables in schema \(schema)")]
    }
    if missing > 0 {
      return [
        EngineFinding(
          .error, "rights", "the role \(role) may not read and write all tables of the cluster in schema \(schema)",
          "Connect as the role that made them, or GRANT SELECT, INSERT, UPDATE, DELETE on them.")
      ]
    }
    if result.boolean(0, 2) == true {
      return [EngineFinding(.ok, "rights", "the role \(role) may make tables in schema \(schema)")]
    }
    return [
      EngineFinding(
        .error, "rights", "the role \(role) may not make tables in schema \(schema)",
        "GRANT CREATE ON SCHEMA \(schema) TO \(role), or make it the owner of the database.")
    ]
  }

  private static func encryption(_ connection: PostgresConnection) throws(PostgresFailure) -> [EngineFinding] {
    let result = try connection.perform(readEncryption, milliseconds: milliseconds)
    guard let isEncrypted = result.boolean(0, 0), let isRemote = result.boolean(0, 1) else { return [] }
    if isEncrypted { return [EngineFinding(.ok, "connection", "encrypted")] }
    guard isRemote else { return [EngineFinding(.ok, "connection", "on this machine")] }
    return [
      EngineFinding(
        .warning, "connection", "not encrypted: documents and keys are readable on the network",
        "Enable TLS in PostgreSQL, and add sslmode=verify-full to the URL.")
    ]
  }

  private static func clock(_ connection: PostgresConnection) throws(PostgresFailure) -> [EngineFinding] {
    // The first exchange prepares the statement, the second one measures.
    _ = try connection.perform(readClock, milliseconds: milliseconds)
    let sent = now()
    guard let tables = try connection.perform(readClock, milliseconds: milliseconds).integer(0, 0) else {
      throw .unexpectedAnswer
    }
    let measured = ClockMeasurement(sent: sent, tables: tables, received: now(), at: 0)
    let side = measured.difference < 0 ? "behind" : "ahead of"
    guard measured.isBeyond(100_000) else {
      return [EngineFinding(.ok, "clock", "that of PostgreSQL and that of this machine agree")]
    }
    let text = "that of PostgreSQL is \(abs(measured.difference) / 1000) ms \(side) that of this machine"
    let advice = "Synchronize the clocks of both machines: above 500 ms, a node does not own the cluster."
    return [EngineFinding(.warning, "clock", text, advice)]
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  // MARK: SQL

  private static let readSettings = PostgresStatement(
    "settings",
    """
    SELECT name::text, setting::text, source::text FROM pg_settings WHERE name IN (
      'server_version', 'server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit',
      'synchronous_standby_names', 'default_transaction_isolation', 'default_transaction_read_only', 'max_connections',
      'superuser_reserved_connections')
    """)
  private static let readLimits = PostgresStatement(
    "limits",
    """
    SELECT (SELECT rolconnlimit::bigint FROM pg_roles WHERE rolname = current_user AND NOT rolsuper),
      (SELECT datconnlimit::bigint FROM pg_database WHERE datname = current_database())
    """)
  private static let readRights = PostgresStatement(
    "rights",
    """
    SELECT current_user::text, current_schema()::text, has_schema_privilege(current_schema(), 'CREATE'),
      (SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN (
        'hearth_meta', 'hearth_member', 'hearth_node', 'hearth_cluster', 'hearth_log', 'hearth_config',
        'hearth_snapshot', 'hearth_snapshot_part', 'hearth_snapshot_claim'
      ) AND NOT (
        has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'UPDATE')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE'))),
      (SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'hearth_meta')
    """)
  private static let readEncryption = PostgresStatement(
    "encryption",
    """
    SELECT (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()),
      inet_server_addr() IS NOT NULL AND NOT inet_server_addr() <<= '127.0.0.0/8'::inet
        AND host(inet_server_addr()) <> '::1'
    """)
  private static let readClock = PostgresStatement(
    "engine-clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
}
