import Glibc
import LogEngine
package import SharedLog
import Synchronization

/// The tables of a cluster in PostgreSQL, which ``ClusterSchema`` made.
///
/// Several threads may perform requests at once. Renewals, observations and appends have a connection each, so that
/// neither a long append nor a long observation delays a renewal. An append is one statement and one round trip.
package final class PostgresTables: SharedTables {
  /// The longest wait for the answer to a renewal or an observation, and to an append, in milliseconds.
  package struct Patience: Sendable {
    package var request = 2000
    package var append = 5000

    package init() {}
  }

  private let renewals: Mutex<PostgresConnection>
  private let observations: Mutex<PostgresConnection>
  private let appends: Mutex<PostgresConnection>
  private let failures = Mutex(RequestFailures())
  private let clock = Mutex<ClockMeasurement?>(nil)
  private let draining = Atomic(false)
  private let secret: UInt64
  private let skew: Int64
  private let patience: Patience
  private let timeOfDay: @Sendable () -> Int64

  /// Creates the tables without a connection. `secret` is that of the log, see ``ClusterSchema/check(at:)``, and `timeOfDay`
  /// this node's clock in microseconds since 1970, if not that of the system.
  /// - Throws: ``PostgresFailure/notAURL``.
  package init(
    _ url: String, secret: UInt64, timing: ClusterTiming = ClusterTiming(), patience: Patience = Patience(),
    timeOfDay: (@Sendable () -> Int64)? = nil
  ) throws(PostgresFailure) {
    renewals = Mutex(try PostgresConnection(url))
    observations = Mutex(try PostgresConnection(url))
    appends = Mutex(try PostgresConnection(url))
    self.secret = secret
    skew = timing.skew
    self.patience = patience
    self.timeOfDay = timeOfDay ?? { Self.now(CLOCK_REALTIME) }
  }

  /// The reason why the last request that got no answer got none.
  package var lastFailure: PostgresFailure? { failures.withLock { $0.last } }

  /// The reason why PostgreSQL refuses one kind of request again and again, although it may perform others, or `nil`.
  package var lastingFailure: PostgresFailure? { failures.withLock { $0.lasting } }

  /// The difference between this node's clock and PostgreSQL's, as renewals and observations measured it; `nil`
  /// before the first one.
  package var clockMeasurement: ClockMeasurement? { clock.withLock { $0 } }

  /// The time of day above which a commit of this node gets no time, in microseconds since 1970: that of PostgreSQL's clock and
  /// the greatest difference of an owner's clock. So if this node's clock jumps ahead, no commit gets a time of the future in
  /// the seconds until the node gives the cluster away. `nil` before the first measurement.
  package var timeLimit: Int64? { clockMeasurement.map { $0.latest(at: Self.now(CLOCK_BOOTTIME)) + skew } }

  /// By how much PostgreSQL's clock is ahead of this node's, in microseconds, or `nil` if that is unknown. See
  /// ``clockMeasurement`` for its error.
  package var clockDifference: Int64? { clockMeasurement?.difference }

  /// Whether the operator asked this node to own nothing, as of its last renewal.
  package var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Performs a request and waits for its answer, at most as long as ``Patience`` says. Returns `nil` if the answer
  /// was lost. PostgreSQL may have performed the request then, or may perform it later.
  package func perform(_ request: TableRequest) -> TableReply? {
    switch request {
    case .beginSession, .renew: perform(request, on: renewals)
    case .observe, .takeOver: perform(request, on: observations)
    case .append, .settle: perform(request, on: appends)
    }
  }

  /// The most attempts for a transaction that PostgreSQL ends in favor of others.
  private static let attemptsMax = 20

  private func perform(_ request: TableRequest, on connection: borrowing Mutex<PostgresConnection>) -> TableReply? {
    connection.withLock { connection in
      var failure = PostgresFailure.noAnswer
      for _ in 0..<Self.attemptsMax {
        do throws(PostgresFailure) {
          let reply = try perform(request, connection)
          failures.withLock { $0.noteReply(to: request) }
          return reply
        } catch {
          failure = error
          // A takeover that met an append of the former owner begins again, behind it.
          let isTakeover = if case .takeOver = request { true } else { false }
          guard error.isConflict || isTakeover && error.isDuplicate else { break }
        }
      }
      failures.withLock { $0.note(failure, of: request) }
      return nil
    }
  }

  private func perform(
    _ request: TableRequest, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    switch request {
    case .beginSession(let node, let last, let renewal):
      try beginSession(node, after: last, renewal: renewal, connection)
    case .renew(let session, let renewal, let confirmed): try renew(session, renewal, confirmed, connection)
    case .observe(let sequence): .observed(try observation(after: sequence, connection))
    case .append(let entry, let previous): try append(entry, behind: previous, connection)
    case .settle(let position): try settle(position, connection)
    case .takeOver(let session, let mark, let epoch): try takeOver(session, mark, epoch, connection)
    }
  }

  // MARK: Sessions

  private func beginSession(
    _ node: UInt32, after last: UInt64, renewal: UInt64, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    let statement = last == 0 ? Self.insertNode : Self.beginSession
    let result = try connection.perform(
      statement, [.integer(Int64(node)), .bits(last), .ordered(renewal)], milliseconds: patience.request)
    if result.changedRows == 1 { return .session(NodeSession(node: node, session: last + 1)) }
    return .sessionOver(last: try lastSession(of: node, connection))
  }

  private func renew(
    _ session: NodeSession, _ renewal: UInt64, _ confirmed: UInt64, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    let sent = timeOfDay()
    let result = try connection.perform(
      Self.renew,
      [.integer(Int64(session.node)), .bits(session.session), .ordered(renewal), .bits(confirmed)],
      milliseconds: patience.request)
    measureClock(sent, result.integer(0, 1))
    draining.store(result.boolean(0, 2) ?? false, ordering: .relaxed)
    if result.integer(0, 0) == 1 { return .renewed }
    return .sessionOver(last: try lastSession(of: session.node, connection))
  }

  private func lastSession(of node: UInt32, _ connection: PostgresConnection) throws(PostgresFailure) -> UInt64 {
    let result = try connection.perform(
      Self.lastSession, [.integer(Int64(node))], milliseconds: patience.request)
    return result.bits(0, 0) ?? 0
  }

  private static let insertNode = PostgresStatement(
    "insert-node",
    """
    INSERT INTO hearth_node (node, session, renewal, is_live) VALUES ($1::bigint, $2::bigint + 1, $3::bigint, true)
    ON CONFLICT (node) DO NOTHING
    """)
  private static let beginSession = PostgresStatement(
    "begin-session",
    """
    UPDATE hearth_node SET session = $2::bigint + 1, renewal = $3::bigint, is_live = true
    WHERE node = $1::bigint AND session = $2::bigint
    """)
  /// It always writes the row of the node, so that the answer says that the renewal is durable.
  private static let renew = PostgresStatement(
    "renew",
    """
    WITH renewed AS (
      UPDATE hearth_node SET renewal = CASE WHEN renewal < $3::bigint THEN $3::bigint ELSE renewal END
      WHERE node = $1::bigint AND session = $2::bigint AND is_live RETURNING node
    ), confirming AS (
      UPDATE hearth_cluster SET confirmed = $4::bigint
      WHERE owner = $1::bigint AND owner_session = $2::bigint AND confirmed < $4::bigint
        AND EXISTS (SELECT 1 FROM renewed) RETURNING id
    ) SELECT (SELECT count(*) FROM renewed), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
      (SELECT draining FROM hearth_member WHERE node = $1::bigint)
    """)
  private static let lastSession = PostgresStatement(
    "last-session", "SELECT session FROM hearth_node WHERE node = $1::bigint")

  // MARK: Reading

  /// Reads the state and the entries in one statement, and so in one snapshot. An observation has at most 1,024
  /// entries, and about 4 MiB after the first one: a long entry at the end of an epoch is confirmed only by the takeover after
  /// it, so it must not fill an observation alone.
  private func observation(
    after sequence: UInt64, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> StoreObservation {
    let sent = timeOfDay()
    let result = try connection.perform(Self.observe, [.bits(sequence)], milliseconds: patience.request)
    measureClock(sent, result.integer(0, 13))
    guard let epoch = result.bits(0, 0), let confirmed = result.bits(0, 3), let first = result.bits(0, 4) else {
      throw .unexpectedAnswer
    }
    var mark: OwnerMark?
    if let node = result.integer(0, 1), let session = result.bits(0, 2) {
      guard let node = UInt32(exactly: node) else { throw .unexpectedAnswer }
      let isCurrent = result.bits(0, 5) == session
      mark = OwnerMark(
        owner: NodeSession(node: node, session: session), renewal: isCurrent ? result.ordered(0, 6) ?? 0 : 0,
        isLive: isCurrent && result.integer(0, 7) == 1)
    }
    var entries: [SharedEntry] = []
    for row in 0..<result.rows {
      guard let sequence = result.bits(row, 8) else { break }
      guard let epoch = result.bits(row, 9), let kind = result.integer(row, 10).flatMap(UInt8.init(exactly:)),
        let kind = SharedEntry.Kind(rawValue: kind), let chain = result.bits(row, 11), let body = result.bytes(row, 12)
      else { throw .unexpectedAnswer }
      entries.append(
        SharedEntry(kind: kind, position: LogPosition(sequence: sequence, epoch: epoch, chain: chain), body: body))
    }
    let previous = result.bits(0, 14).flatMap { epoch in
      result.bits(0, 15).map { LogPosition(sequence: sequence, epoch: epoch, chain: $0) }
    }
    return StoreObservation(
      epoch: epoch, owner: mark, confirmed: confirmed, firstSequence: first, entries: entries, after: sequence,
      previous: previous, head: result.bits(0, 16) ?? 0)
  }

  private static let observe = PostgresStatement(
    "observe",
    """
    SELECT c.epoch, c.owner, c.owner_session, c.confirmed, c.log_from, n.session, n.renewal,
      CASE WHEN n.is_live THEN 1::bigint ELSE 0::bigint END, l.seq, l.epoch, l.kind, l.chain, l.body,
      (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, p.epoch, p.chain,
      (SELECT max(seq) FROM hearth_log)
    FROM hearth_cluster c LEFT JOIN hearth_node n ON n.node = c.owner
    LEFT JOIN hearth_log p ON p.seq = $1::bigint LEFT JOIN (
      SELECT seq, epoch, kind, chain, body, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body)
        - first_value(octet_length(body)) OVER (ORDER BY seq) AS before
      FROM (SELECT * FROM hearth_log WHERE seq > $1::bigint ORDER BY seq LIMIT 1024) next
    ) l ON l.before < 4194304
    WHERE c.id = 1 ORDER BY l.seq
    """)

  // MARK: The clock

  /// Notes what a request that was sent at a time of this node's clock tells about PostgreSQL's. The first exchange
  /// on a connection also prepares the statement, and so has a large error.
  private func measureClock(_ sent: Int64, _ tables: Int64?) {
    guard let tables else { return }
    let newer = ClockMeasurement(
      sent: sent, tables: tables, received: timeOfDay(), at: Self.now(CLOCK_BOOTTIME))
    clock.withLock { $0 = $0?.improved(by: newer) ?? newer }
  }

  private static func now(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  // MARK: Appending

  private func append(
    _ entry: SharedEntry, behind previous: LogPosition, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    let position = entry.position
    guard previous.sequence &+ 1 == position.sequence, previous.epoch == position.epoch else {
      return .refused(found: try entryPosition(at: position.sequence, connection))
    }
    do throws(PostgresFailure) {
      let result = try connection.perform(
        entry.kind == .handover ? Self.handOver : Self.append,
        [
          .bits(position.sequence), .bits(position.epoch), .integer(Int64(entry.kind.rawValue)), .bits(position.chain),
          .bytes(entry.body), .bits(previous.chain),
        ], milliseconds: patience.append)
      if result.changedRows == 1 { return .appended }
    } catch {
      guard error.isDuplicate else { throw error }
    }
    return .refused(found: try entryPosition(at: position.sequence, connection))
  }

  private func entryPosition(
    at sequence: UInt64, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> LogPosition? {
    let result = try connection.perform(Self.entryPosition, [.bits(sequence)], milliseconds: patience.append)
    guard let epoch = result.bits(0, 0), let chain = result.bits(0, 1) else { return nil }
    return LogPosition(sequence: sequence, epoch: epoch, chain: chain)
  }

  private func settle(
    _ position: LogPosition, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    let result = try connection.perform(
      Self.settle, [.bits(position.sequence), .bits(position.epoch), .bits(position.chain)],
      milliseconds: patience.append)
    return result.changedRows == 1 ? .settled : .notSettled
  }

  /// The lock on the entry before keeps a truncation from removing it meanwhile.
  private static let append = PostgresStatement(
    "append",
    """
    INSERT INTO hearth_log (seq, epoch, kind, chain, body)
    SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea WHERE EXISTS (
      SELECT 1 FROM hearth_log WHERE seq = $1::bigint - 1 AND epoch = $2::bigint AND chain = $6::bigint FOR UPDATE)
    """)
  private static let handOver = PostgresStatement(
    "hand-over",
    """
    WITH inserted AS (
      INSERT INTO hearth_log (seq, epoch, kind, chain, body)
      SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea WHERE EXISTS (
        SELECT 1 FROM hearth_log WHERE seq = $1::bigint - 1 AND epoch = $2::bigint AND chain = $6::bigint FOR UPDATE)
      RETURNING seq
    ) UPDATE hearth_cluster SET owner = NULL, owner_session = NULL WHERE id = 1 AND EXISTS (SELECT 1 FROM inserted)
    """)
  private static let entryPosition = PostgresStatement(
    "entry-position", "SELECT epoch, chain FROM hearth_log WHERE seq = $1::bigint")
  /// It writes the row, because only a transaction that wrote something waits until it and all before it are durable.
  private static let settle = PostgresStatement(
    "settle",
    """
    UPDATE hearth_log SET epoch = epoch WHERE seq = $1::bigint AND epoch = $2::bigint AND chain = $3::bigint
    """)

  // MARK: Taking over

  /// Locks the nodes before the cluster, in the order of their numbers, as renewals do. So no two requests wait for
  /// each other. A node whose clock is known to be wrong takes nothing over.
  private func takeOver(
    _ session: NodeSession, _ mark: OwnerMark?, _ epoch: UInt64, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> TableReply {
    // The commits of an owner have times of its clock. The observation before the takeover measured it.
    if let clock = clockMeasurement, clock.isBeyond(skew) { return .notTaken }
    let milliseconds = patience.request
    return try connection.transaction(milliseconds: milliseconds) { () throws(PostgresFailure) in
      let nodes = try connection.perform(
        Self.lockNodes, [.integer(Int64(session.node)), .integer(Int64((mark?.owner ?? session).node))],
        milliseconds: milliseconds)
      func node(_ number: UInt32) -> (session: UInt64, renewal: UInt64, isLive: Bool)? {
        guard let row = (0..<nodes.rows).first(where: { nodes.integer($0, 0) == Int64(number) }),
          let session = nodes.bits(row, 1), let renewal = nodes.ordered(row, 2)
        else { return nil }
        return (session, renewal, nodes.integer(row, 3) == 1)
      }
      let state = try connection.perform(Self.lockCluster, milliseconds: milliseconds)
      guard state.bits(0, 0) == epoch, let own = node(session.node), own.session == session.session, own.isLive else {
        return .notTaken
      }
      if let number = state.integer(0, 1) {
        guard let owner = mark?.owner, Int64(owner.node) == number, owner.session == state.bits(0, 2), owner != session
        else { return .notTaken }
        if let other = node(owner.node), other.session == owner.session, other.isLive {
          guard other.renewal == mark?.renewal else { return .notTaken }
          try connection.perform(Self.endSession, [.integer(number)], milliseconds: milliseconds)
        }
      }
      let head = try connection.perform(Self.head, milliseconds: milliseconds)
      var previous = LogPosition()
      if head.rows > 0 {
        guard let sequence = head.bits(0, 0), let epoch = head.bits(0, 1), let chain = head.bits(0, 2) else {
          throw .unexpectedAnswer
        }
        previous = LogPosition(sequence: sequence, epoch: epoch, chain: chain)
      }
      let clock = try connection.perform(Self.clock, milliseconds: milliseconds)
      guard let now = clock.integer(0, 0) else { throw .unexpectedAnswer }
      let note = TakeoverNote(owner: session, floor: now + skew)
      let entry = SharedEntry(.takeover, note.body, after: previous, epoch: epoch + 1, secret: secret)
      try connection.perform(
        Self.setOwner, [.bits(epoch + 1), .integer(Int64(session.node)), .bits(session.session)],
        milliseconds: milliseconds)
      try connection.perform(
        Self.insertTakeover,
        [
          .bits(entry.position.sequence), .bits(entry.position.epoch), .integer(Int64(entry.kind.rawValue)),
          .bits(entry.position.chain), .bytes(entry.body),
        ], milliseconds: milliseconds)
      return .takenOver(entry)
    }
  }

  private static let lockNodes = PostgresStatement(
    "lock-nodes",
    """
    SELECT node, session, renewal, CASE WHEN is_live THEN 1::bigint ELSE 0::bigint END FROM hearth_node
    WHERE node IN ($1::bigint, $2::bigint) ORDER BY node FOR UPDATE
    """)
  private static let lockCluster = PostgresStatement(
    "lock-cluster", "SELECT epoch, owner, owner_session FROM hearth_cluster WHERE id = 1 FOR UPDATE")
  private static let endSession = PostgresStatement(
    "end-session", "UPDATE hearth_node SET is_live = false WHERE node = $1::bigint")
  private static let head = PostgresStatement(
    "head", "SELECT seq, epoch, chain FROM hearth_log ORDER BY seq DESC LIMIT 1")
  private static let clock = PostgresStatement(
    "clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
  private static let setOwner = PostgresStatement(
    "set-owner",
    "UPDATE hearth_cluster SET epoch = $1::bigint, owner = $2::bigint, owner_session = $3::bigint WHERE id = 1")
  private static let insertTakeover = PostgresStatement(
    "insert-takeover",
    """
    INSERT INTO hearth_log (seq, epoch, kind, chain, body)
    VALUES ($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea)
    """)
}
