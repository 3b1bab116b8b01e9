package import LogEngine
package import SharedLog
import Synchronization

/// The snapshots of a cluster in PostgreSQL, and the shortening of its log. It has a connection of its own, so it delays no
/// commit. Several threads may use it, one after the other.
package final class PostgresSnapshots: SnapshotTables {
  /// The longest wait for an answer, in milliseconds.
  private static let milliseconds = 15_000
  /// The most attempts for a transaction that PostgreSQL ends in favor of others.
  private static let attemptsMax = 20

  private let connection: Mutex<PostgresConnection>

  /// Creates the tables without a connection.
  /// - Throws: ``PostgresFailure/notAURL``, ``PostgresFailure/noLibrary(_:)``.
  package init(_ url: String) throws(PostgresFailure) { connection = Mutex(try PostgresConnection(url)) }

  // MARK: Reading

  /// As ``SnapshotTables/snapshots()``.
  /// - Throws: ``SnapshotFailure``.
  package func snapshots() throws(SnapshotFailure) -> [SnapshotHead] {
    try call { (connection) throws(PostgresFailure) in
      let result = try Self.perform(Self.list, [], connection)
      return try (0..<result.rows).map { row throws(PostgresFailure) in
        guard let id = result.bits(row, 0), let sequence = result.bits(row, 1), let epoch = result.bits(row, 2),
          let chain = result.bits(row, 3), let parts = result.integer(row, 4).flatMap(Int.init(exactly:)),
          let bytes = result.integer(row, 5), let fileBytes = result.integer(row, 6)
        else { throw .unexpectedAnswer }
        return SnapshotHead(
          id: id, position: LogPosition(sequence: sequence, epoch: epoch, chain: chain), parts: parts, bytes: bytes,
          fileBytes: fileBytes)
      }
    }
  }

  /// As ``SnapshotTables/manifest(of:)``.
  /// - Throws: ``SnapshotFailure``.
  package func manifest(of id: UInt64) throws(SnapshotFailure) -> [UInt8]? {
    try call { (connection) throws(PostgresFailure) in
      try Self.perform(Self.readManifest, [.bits(id)], connection).bytes(0, 0)
    }
  }

  /// As ``SnapshotTables/part(_:of:)``.
  /// - Throws: ``SnapshotFailure``.
  package func part(_ number: Int, of id: UInt64) throws(SnapshotFailure) -> [UInt8]? {
    try call { (connection) throws(PostgresFailure) in
      try Self.perform(Self.readPart, [.bits(id), .integer(Int64(number))], connection).bytes(0, 0)
    }
  }

  /// As ``SnapshotTables/hasEntry(at:)``.
  /// - Throws: ``SnapshotFailure``.
  package func hasEntry(at position: LogPosition) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in try Self.hasEntry(at: position, connection) }
  }

  /// As ``SnapshotTables/logBytes(after:)``.
  /// - Throws: ``SnapshotFailure``.
  package func logBytes(after sequence: UInt64) throws(SnapshotFailure) -> Int64 {
    try call { (connection) throws(PostgresFailure) in
      try Self.perform(Self.logBytes, [.bits(sequence)], connection).integer(0, 0) ?? 0
    }
  }

  // MARK: Writing

  /// As ``SnapshotTables/claim(_:)``.
  /// - Throws: ``SnapshotFailure``.
  package func claim(_ id: UInt64) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      try Self.perform(Self.claim, [.bits(id)], connection).changedRows == 1
    }
  }

  /// As ``SnapshotTables/add(_:number:to:)``.
  /// - Throws: ``SnapshotFailure``.
  package func add(_ part: [UInt8], number: Int, to id: UInt64) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      try Self.perform(
        Self.addPart, [.bits(id), .integer(Int64(number)), .bytes(part)], connection
      ).changedRows == 1
    }
  }

  /// As ``SnapshotTables/finish(_:manifest:marks:)``.
  /// - Throws: ``SnapshotFailure``.
  package func finish(
    _ head: SnapshotHead, manifest: [UInt8], marks: [LogPosition]
  ) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      try Self.transaction(connection) { () throws(PostgresFailure) in
        // The removal of leftovers locks the same row.
        guard try Self.perform(Self.lockClaim, [], connection).bits(0, 0) == head.id else {
          return try Self.perform(Self.readManifest, [.bits(head.id)], connection).rows == 1
        }
        for mark in marks { guard try Self.hasEntry(at: mark, connection) else { return false } }
        let position = head.position
        let isWhole =
          try Self.perform(
            Self.insert,
            [
              .bits(head.id), .bits(position.sequence), .bits(position.epoch), .bits(position.chain),
              .integer(Int64(head.parts)), .integer(head.bytes), .integer(head.fileBytes), .bytes(manifest),
            ], connection
          ).changedRows == 1
        if isWhole { _ = try Self.perform(Self.release, [.bits(head.id)], connection) }
        return isWhole
      }
    }
  }

  /// As ``SnapshotTables/report(_:)``.
  /// - Throws: ``SnapshotFailure``.
  package func report(_ loss: LogLoss) throws(SnapshotFailure) {
    try call { (connection) throws(PostgresFailure) in _ = try Self.perform(Self.report, [.text(loss.text)], connection)
    }
  }

  /// As ``SnapshotTables/release(_:)``.
  /// - Throws: ``SnapshotFailure``.
  package func release(_ id: UInt64) throws(SnapshotFailure) {
    try call { (connection) throws(PostgresFailure) in _ = try Self.perform(Self.release, [.bits(id)], connection) }
  }

  // MARK: Removing

  /// As ``SnapshotTables/remove(_:)``.
  /// - Throws: ``SnapshotFailure``.
  package func remove(_ id: UInt64) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      // Without the row, the parts are leftovers, which each owner removes.
      _ = try Self.perform(Self.remove, [.bits(id)], connection)
      return try Self.perform(Self.removeParts, [.bits(id)], connection).changedRows > 0
    }
  }

  /// As ``SnapshotTables/removeLeftovers()``.
  /// - Throws: ``SnapshotFailure``.
  package func removeLeftovers() throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      // One look at the index for each snapshot, of which there are few.
      var last = Int64.min
      while let id = try Self.perform(Self.nextParts, [.integer(last)], connection).integer(0, 0) {
        last = id
        guard try Self.perform(Self.readManifest, [.integer(id)], connection).rows == 0 else { continue }
        let isRemoved = try Self.transaction(connection) { () throws(PostgresFailure) in
          let claim = try Self.perform(Self.lockClaim, [], connection)
          if claim.integer(0, 0) == id {
            guard claim.boolean(0, 1) == false else { return false }
            // The writer is silent. From now on it cannot finish.
            _ = try Self.perform(Self.release, [.integer(id)], connection)
          }
          guard try Self.perform(Self.readManifest, [.integer(id)], connection).rows == 0 else { return false }
          return try Self.perform(Self.removeParts, [.integer(id)], connection).changedRows > 0
        }
        if isRemoved { return true }
      }
      return false
    }
  }

  /// As ``SnapshotTables/truncate(before:by:epoch:)``.
  /// - Throws: ``SnapshotFailure``.
  package func truncate(
    before sequence: UInt64, by owner: NodeSession, epoch: UInt64
  ) throws(SnapshotFailure) -> Bool {
    try call { (connection) throws(PostgresFailure) in
      try Self.transaction(connection) { () throws(PostgresFailure) in
        guard try Self.perform(Self.truncate, [.bits(sequence)], connection).changedRows > 0 else { return false }
        // Observations see both or neither. The row is locked for a moment only, because renewals wait for it.
        let raised = try Self.perform(
          Self.raise, [.bits(epoch), .integer(Int64(owner.node)), .bits(owner.session)], connection)
        // Nothing is removed by a node that does not own the project.
        guard raised.changedRows == 1 else { throw .notOwner }
        return true
      }
    }
  }

  // MARK: Calls

  private static func hasEntry(
    at position: LogPosition, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> Bool {
    try perform(
      hasEntry, [.bits(position.sequence), .bits(position.epoch), .bits(position.chain)], connection
    ).rows == 1
  }

  private static func perform(
    _ statement: PostgresStatement, _ values: [PostgresValue], _ connection: PostgresConnection
  ) throws(PostgresFailure) -> PostgresResult {
    try connection.perform(statement, values, milliseconds: milliseconds)
  }

  private static func transaction<R>(
    _ connection: PostgresConnection, _ body: () throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    try connection.transaction(milliseconds: milliseconds, body)
  }

  private func call<R: Sendable>(
    _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(SnapshotFailure) -> R {
    let result = connection.withLock { connection -> Result<R, PostgresFailure> in
      var last = PostgresFailure.noAnswer
      for _ in 0..<Self.attemptsMax {
        do throws(PostgresFailure) { return .success(try body(connection)) } catch {
          last = error
          guard error.isConflict else { break }
        }
      }
      return .failure(last)
    }
    do throws(PostgresFailure) { return try result.get() } catch { throw SnapshotFailure(error.description) }
  }

  // MARK: SQL

  private static let report = PostgresStatement(
    "report-loss",
    """
    INSERT INTO hearth_meta (k, v) VALUES ('lost', $1::text) ON CONFLICT (k) DO UPDATE SET v = excluded.v
    """)
  private static let list = PostgresStatement(
    "snapshots",
    "SELECT id, seq, epoch, chain, parts, bytes, file_bytes FROM hearth_snapshot ORDER BY seq DESC, made DESC LIMIT 1000"
  )
  private static let readManifest = PostgresStatement(
    "snapshot-manifest", "SELECT manifest FROM hearth_snapshot WHERE id = $1::bigint")
  private static let readPart = PostgresStatement(
    "snapshot-part", "SELECT body FROM hearth_snapshot_part WHERE snapshot = $1::bigint AND part = $2::bigint")
  private static let hasEntry = PostgresStatement(
    "snapshot-entry",
    "SELECT seq FROM hearth_log WHERE seq = $1::bigint AND epoch = $2::bigint AND chain = $3::bigint")
  /// The length of a body that is stored apart is known without reading it.
  private static let logBytes = PostgresStatement(
    "snapshot-log-bytes",
    "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM hearth_log WHERE seq > $1::bigint")

  /// A claim lasts for a minute after its last use.
  private static let claim = PostgresStatement(
    "snapshot-claim",
    """
    UPDATE hearth_snapshot_claim SET snapshot = $1::bigint, until = extract(epoch FROM clock_timestamp())::bigint + 60
    WHERE id = 1 AND (snapshot IS NULL OR snapshot = $1::bigint OR until < extract(epoch FROM clock_timestamp())::bigint)
    """)
  private static let addPart = PostgresStatement(
    "snapshot-add-part",
    """
    WITH claimed AS (
      UPDATE hearth_snapshot_claim SET until = extract(epoch FROM clock_timestamp())::bigint + 60
      WHERE id = 1 AND snapshot = $1::bigint RETURNING id
    ) INSERT INTO hearth_snapshot_part (snapshot, part, body)
    SELECT $1::bigint, $2::bigint, $3::bytea WHERE EXISTS (SELECT 1 FROM claimed)
    ON CONFLICT (snapshot, part) DO UPDATE SET body = excluded.body
    """)
  private static let lockClaim = PostgresStatement(
    "snapshot-lock-claim",
    """
    SELECT snapshot, until >= extract(epoch FROM clock_timestamp())::bigint FROM hearth_snapshot_claim WHERE id = 1
    FOR UPDATE
    """)
  private static let insert = PostgresStatement(
    "snapshot-insert",
    """
    INSERT INTO hearth_snapshot (id, seq, epoch, chain, parts, bytes, file_bytes, made, manifest)
    SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint,
      extract(epoch FROM clock_timestamp())::bigint, $8::bytea
    WHERE (SELECT count(*) FROM hearth_snapshot_part WHERE snapshot = $1::bigint) = $5::bigint
      AND (SELECT coalesce(sum(octet_length(body)), 0) FROM hearth_snapshot_part WHERE snapshot = $1::bigint) = $6::bigint
    """)
  private static let release = PostgresStatement(
    "snapshot-release", "UPDATE hearth_snapshot_claim SET snapshot = NULL WHERE id = 1 AND snapshot = $1::bigint")

  private static let remove = PostgresStatement("snapshot-remove", "DELETE FROM hearth_snapshot WHERE id = $1::bigint")
  private static let removeParts = PostgresStatement(
    "snapshot-remove-parts",
    """
    DELETE FROM hearth_snapshot_part WHERE snapshot = $1::bigint AND part IN (
      SELECT part FROM hearth_snapshot_part WHERE snapshot = $1::bigint ORDER BY part LIMIT 64)
    """)
  private static let nextParts = PostgresStatement(
    "snapshot-next-parts", "SELECT min(snapshot) FROM hearth_snapshot_part WHERE snapshot > $1::bigint")
  private static let truncate = PostgresStatement(
    "snapshot-truncate",
    """
    DELETE FROM hearth_log WHERE seq IN (
      SELECT seq FROM hearth_log WHERE seq < $1::bigint ORDER BY seq LIMIT 2000)
    """)
  private static let raise = PostgresStatement(
    "snapshot-raise",
    """
    UPDATE hearth_cluster SET log_from = (SELECT min(seq) FROM hearth_log)
    WHERE id = 1 AND epoch = $1::bigint AND owner = $2::bigint AND owner_session = $3::bigint
    """)
}
