package import SharedLog
import Synchronization

/// Reads and changes the tables about the cluster itself: its nodes, its configurations, its state. It has a
/// connection of its own, and several threads may use it.
package final class ClusterCatalog: Sendable {
  /// The longest wait for an answer, in milliseconds.
  private static let milliseconds = 5000

  /// Whether the engine tells the size of a table.
  private let measuresLog = Atomic(true)
  private let connection: Mutex<PostgresConnection>

  /// Creates a catalog without a connection.
  /// - Throws: ``PostgresFailure/notAURL``, ``PostgresFailure/noLibrary(_:)``.
  package init(_ url: String) throws(PostgresFailure) { connection = Mutex(try PostgresConnection(url)) }

  /// Reads what the cluster is, see ``ClusterSchema/check(at:)``.
  /// - Throws: the errors of ``ClusterSchema/check(at:)``.
  package func identity() throws(PostgresFailure) -> ClusterIdentity {
    try connection.withLock { connection throws(PostgresFailure) in try ClusterSchema.check(connection) }
  }

  /// Reads the state of the cluster.
  /// - Throws: ``PostgresFailure``.
  package func state() throws(PostgresFailure) -> ClusterState {
    var logBytes: Int64?
    do throws(PostgresFailure) {
      if measuresLog.load(ordering: .relaxed) {
        logBytes = try perform(Self.measureLog, []) { (result) throws(PostgresFailure) in result.integer(0, 0) }
      }
    } catch {
      // Other engines do not have this function.
      guard case .refused = error else { throw error }
      measuresLog.store(false, ordering: .relaxed)
    }
    return try perform(Self.readState, []) { [logBytes] (result) throws(PostgresFailure) in
      try Self.state(in: result, logBytes: logBytes)
    }
  }

  private static func state(in result: PostgresResult, logBytes: Int64?) throws(PostgresFailure) -> ClusterState {
    guard let epoch = result.bits(0, 0), let confirmed = result.bits(0, 3), let first = result.bits(0, 4),
      let head = result.bits(0, 5), let configuration = result.integer(0, 6)
    else { throw .unexpectedAnswer }
    var members: [RegisteredNode] = []
    for row in 0..<result.rows {
      guard let number = result.integer(row, 9) else { break }
      guard let node = UInt32(exactly: number), let address = result.text(row, 10), let software = result.text(row, 11),
        let started = result.integer(row, 12), let isDraining = result.boolean(row, 13)
      else { throw .unexpectedAnswer }
      var session: RegisteredNode.Session?
      if let number = result.bits(row, 14), let renewal = result.ordered(row, 15), let isLive = result.boolean(row, 16)
      {
        session = RegisteredNode.Session(number: number, renewal: renewal, isLive: isLive)
      }
      members.append(
        RegisteredNode(
          node: node, address: address, software: software, started: started, isDraining: isDraining, session: session))
    }
    let owner = try result.integer(0, 1).map { number throws(PostgresFailure) in
      guard let node = UInt32(exactly: number) else { throw .unexpectedAnswer }
      return node
    }
    let session = members.first { $0.node == owner }?.session
    return ClusterState(
      epoch: epoch, owner: owner, isOwnerLive: session.map { $0.isLive && $0.number == result.bits(0, 2) } ?? false,
      confirmed: confirmed, firstSequence: first, head: head, logBytes: logBytes, configuration: configuration,
      loss: result.text(0, 7).flatMap { LogLoss($0) }, isLossAnswered: result.text(0, 7) == result.text(0, 8),
      members: members)
  }

  /// Notes that each database has a new incarnation after a loss.
  /// - Throws: ``PostgresFailure``.
  package func answer(_ loss: LogLoss) throws(PostgresFailure) {
    _ = try change(Self.noteRenewal, [.text(loss.text)])
  }

  /// Asks a node to own nothing, or takes that back. Returns `false` if no such node is registered.
  /// - Throws: ``PostgresFailure``.
  package func setDraining(_ isDraining: Bool, node: UInt32) throws(PostgresFailure) -> Bool {
    try change(Self.drain, [.integer(Int64(node)), .boolean(isDraining)])
  }

  /// Removes the registration of a node, if `session` is its last one and it has not renewed that since. Returns `false` if it
  /// has, if no other node has taken the cluster over from it, or if no such node is registered.
  ///
  /// A session stays in the tables, so no other node gets the number. A node that runs all the same registers again.
  /// - Throws: ``PostgresFailure``.
  package func remove(
    _ node: UInt32, lastSeen session: RegisteredNode.Session?
  ) throws(PostgresFailure) -> Bool {
    let values: [PostgresValue] = [
      .integer(Int64(node)), .bits(session?.number ?? 0), .ordered(session?.renewal ?? 0),
    ]
    return try perform(Self.removeMember, values) { (result) throws(PostgresFailure) in result.integer(0, 0) == 1 }
  }

  // MARK: Configurations

  /// Reads the newest configuration, if it is newer than a version; `nil` if it is not.
  /// - Throws: ``PostgresFailure``; ``PostgresFailure/damagedConfiguration(_:)`` if its stored form is damaged.
  package func configuration(
    newerThan version: Int64
  ) throws(PostgresFailure) -> (version: Int64, ClusterConfiguration)? {
    try perform(Self.readConfiguration, [.integer(version)], Self.configuration)
  }

  /// Reads the configuration with a version; `nil` if it does not exist.
  /// - Throws: ``PostgresFailure``; ``PostgresFailure/damagedConfiguration(_:)`` if its stored form is damaged.
  package func configuration(version: Int64) throws(PostgresFailure) -> ClusterConfiguration? {
    try perform(Self.readConfigurationOfVersion, [.integer(version)], Self.configuration)?.1
  }

  private static func configuration(
    in result: PostgresResult
  ) throws(PostgresFailure) -> (version: Int64, ClusterConfiguration)? {
    guard let found = result.integer(0, 0) else { return nil }
    guard let body = result.bytes(0, 1), let configuration = ClusterConfiguration(encoded: body) else {
      throw .damagedConfiguration(found)
    }
    return (found, configuration)
  }

  /// Stores a configuration as the next version after `last`. Returns that version, or `nil` if `last` is not the
  /// newest version any more: somebody else deployed one.
  /// - Throws: ``PostgresFailure/configurationTooLarge``; another ``PostgresFailure``: if it is not a refusal, the
  ///   configuration may have been stored.
  package func deploy(_ configuration: ClusterConfiguration, after last: Int64) throws(PostgresFailure) -> Int64? {
    guard let body = configuration.encoded() else { throw .configurationTooLarge }
    do throws(PostgresFailure) {
      return try change(Self.insertConfiguration, [.integer(last), .bytes(body)]) ? last + 1 : nil
    } catch {
      if error.isDuplicate { return nil }
      throw error
    }
  }

  // MARK: Members

  /// Returns the place of a node's data directory, or `nil` if no such node is registered.
  func place(of node: UInt32) throws(PostgresFailure) -> String? {
    try perform(Self.readPlace, [.integer(Int64(node))]) { (result) throws(PostgresFailure) in result.text(0, 0) }
  }

  /// The numbers that are in use, or were used by a node that was removed: its session may still be renewed.
  func usedNumbers() throws(PostgresFailure) -> Set<UInt32> {
    try perform(Self.readNumbers, []) { (result) throws(PostgresFailure) in
      var numbers: Set<UInt32> = []
      for row in 0..<result.rows {
        guard let number = result.integer(row, 0).flatMap({ UInt32(exactly: $0) }) else { throw .unexpectedAnswer }
        numbers.insert(number)
      }
      return numbers
    }
  }

  /// Registers a node under a number that is free. Returns `false` if the number is in use.
  func insert(_ node: UInt32, place: String, address: String, software: String) throws(PostgresFailure) -> Bool {
    try change(Self.insertMember, [.integer(Int64(node)), .text(place), .text(address), .text(software)])
  }

  /// Registers a node again. Returns `false` if the number belongs to a data directory in another place.
  func update(
    _ node: UInt32, from former: String, to place: String, address: String, software: String
  ) throws(PostgresFailure) -> Bool {
    try change(
      Self.updateMember, [.integer(Int64(node)), .text(former), .text(place), .text(address), .text(software)])
  }

  /// Performs a statement, and returns what `read` makes of its result.
  private func perform<R: Sendable>(
    _ statement: PostgresStatement, _ values: [PostgresValue],
    _ read: (PostgresResult) throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    try connection.withLock { connection throws(PostgresFailure) in
      try read(
        try connection.repeating { (connection) throws(PostgresFailure) in
          try connection.perform(statement, values, milliseconds: Self.milliseconds)
        })
    }
  }

  /// Performs a statement, and returns whether it changed one row.
  private func change(_ statement: PostgresStatement, _ values: [PostgresValue]) throws(PostgresFailure) -> Bool {
    try perform(statement, values) { (result) throws(PostgresFailure) in result.changedRows == 1 }
  }

  // MARK: SQL

  private static let readState = PostgresStatement(
    "state",
    """
    SELECT c.epoch, c.owner, c.owner_session, c.confirmed, c.log_from,
      coalesce((SELECT max(seq) FROM hearth_log), c.log_from - 1),
      coalesce((SELECT max(version) FROM hearth_config), 0::bigint),
      (SELECT v FROM hearth_meta WHERE k = 'lost'), (SELECT v FROM hearth_meta WHERE k = 'renewed'),
      m.node, m.address, m.software, m.started, m.draining, m.session, m.renewal, m.is_live
    FROM hearth_cluster c LEFT JOIN (
      SELECT m.node, m.address, m.software, m.started, m.draining, n.session, n.renewal, n.is_live
      FROM hearth_member m LEFT JOIN hearth_node n ON n.node = m.node
    ) m ON true WHERE c.id = 1 ORDER BY m.node
    """)
  private static let measureLog = PostgresStatement(
    "measure-log", "SELECT pg_total_relation_size('hearth_log')::bigint")
  private static let noteRenewal = PostgresStatement(
    "note-renewal",
    """
    INSERT INTO hearth_meta (k, v) VALUES ('renewed', $1::text) ON CONFLICT (k) DO UPDATE SET v = excluded.v
    """)
  private static let drain = PostgresStatement(
    "drain", "UPDATE hearth_member SET draining = $2::boolean WHERE node = $1::bigint")
  private static let readConfiguration = PostgresStatement(
    "read-configuration",
    "SELECT version, body FROM hearth_config WHERE version > $1::bigint ORDER BY version DESC LIMIT 1")
  private static let readConfigurationOfVersion = PostgresStatement(
    "read-configuration-of-version", "SELECT version, body FROM hearth_config WHERE version = $1::bigint")
  private static let insertConfiguration = PostgresStatement(
    "deploy",
    """
    INSERT INTO hearth_config (version, body) SELECT $1::bigint + 1, $2::bytea
    WHERE $1::bigint = coalesce((SELECT max(version) FROM hearth_config), 0)
    """)
  private static let readPlace = PostgresStatement(
    "read-place", "SELECT place FROM hearth_member WHERE node = $1::bigint")
  private static let readNumbers = PostgresStatement(
    "read-numbers", "SELECT node FROM hearth_member UNION SELECT node FROM hearth_node")
  private static let removeMember = PostgresStatement(
    "remove-member",
    """
    WITH removed AS (
      DELETE FROM hearth_member WHERE node = $1::bigint AND NOT EXISTS (
        SELECT 1 FROM hearth_node WHERE node = $1::bigint AND (session <> $2::bigint OR renewal <> $3::bigint)
      ) AND NOT EXISTS (
        SELECT 1 FROM hearth_cluster c JOIN hearth_node n ON n.node = c.owner AND n.session = c.owner_session
        WHERE c.id = 1 AND c.owner = $1::bigint AND n.is_live
      ) RETURNING node
    ), reserved AS (
      INSERT INTO hearth_node (node, session, renewal, is_live) SELECT node, 1, $3::bigint, false FROM removed
      ON CONFLICT (node) DO NOTHING RETURNING node
    ) SELECT count(*) FROM removed
    """)
  private static let insertMember = PostgresStatement(
    "insert-member",
    """
    INSERT INTO hearth_member (node, place, address, software, started, draining) VALUES (
      $1::bigint, $2::text, $3::text, $4::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, false)
    ON CONFLICT (node) DO NOTHING
    """)
  private static let updateMember = PostgresStatement(
    "update-member",
    """
    UPDATE hearth_member SET place = $3::text, address = $4::text, software = $5::text,
      started = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    WHERE node = $1::bigint AND (place = $2::text OR place = $3::text)
    """)
}
