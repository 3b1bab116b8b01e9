import ClusterTesting
import Foundation
import Glibc
import LogEngine
import PostgresEngine
import SharedLog
import Synchronization
import TestSupport
import Testing

/// The tables in a real PostgreSQL do the same as ``TableState``, and an entry is in the log once, however many answers are lost.
@Suite(.needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct PostgresTablesTests {
  private static let secret: UInt64 = 0xFEDC_BA98_7654_3210
  private static let identity = ClusterIdentity(
    project: "shop", keyCheck: [1, 2, 3], acceptsLoss: true, secret: secret)
  private let server: PostgresServer

  init() throws { server = try PostgresServer() }

  /// Makes a database with the tables of a cluster.
  private func makeTables(_ name: String) throws -> (PostgresTables, url: String) {
    let url = try server.makeDatabase(name)
    try ClusterSchema.create(at: url, Self.identity)
    return (try PostgresTables(url, secret: try ClusterSchema.check(at: url).secret, patience: Self.patient), url)
  }

  /// Waits that a busy machine does not exceed.
  private static var patient: PostgresTables.Patience {
    var patience = PostgresTables.Patience()
    (patience.request, patience.append) = (60_000, 60_000)
    return patience
  }

  /// Begins a session and takes the ownership. Returns the session and the takeover entry.
  private func takeOver(
    _ tables: PostgresTables, node: UInt32, after last: UInt64 = 0, from mark: OwnerMark? = nil, epoch: UInt64 = 0
  ) throws -> (NodeSession, SharedEntry) {
    guard case .session(let session) = tables.perform(.beginSession(node: node, after: last, renewal: 1)) else {
      throw try #require(tables.lastFailure)
    }
    let reply = tables.perform(.takeOver(by: session, from: mark, epoch: epoch))
    guard case .takenOver(let entry) = reply else { throw try #require(tables.lastFailure) }
    return (session, entry)
  }

  /// Observes the tables. The first attempt may find that the connection has ended.
  private func observation(_ tables: PostgresTables, after sequence: UInt64 = 0) throws -> StoreObservation {
    var observation: StoreObservation?
    let isAnswered = OtherProcess.eventually {
      if case .observed(let found) = tables.perform(.observe(after: sequence)) { observation = found }
      return observation != nil
    }
    try #require(isAnswered, "\(String(describing: tables.lastFailure))")
    return try #require(observation)
  }

  // MARK: The same answers as the model

  @Test(arguments: ["read committed", "serializable"], TestSeeds.of("HEARTH_TABLES_SEED", otherwise: [1, 2]))
  func everyRequestHasTheAnswerOfTheModel(isolation: String, seed: UInt64) throws {
    let (tables, _) = try makeTables("model")
    try server.sql("ALTER DATABASE model SET default_transaction_isolation = '\(isolation)'", in: "postgres")
    var random = SplitMix(seed: seed)
    var model = TableState(secret: Self.secret, skew: ClusterTiming().skew)
    var answers: [String: Int] = [:]
    for _ in 0..<1500 {
      let request = Self.request(model, &random)
      let reply = try #require(tables.perform(request), "\(String(describing: tables.lastFailure))")
      // The floor of a takeover comes from the clock of PostgreSQL.
      if case .takenOver(let entry) = reply, let note = TakeoverNote(entry.body) { model.now = note.floor - model.skew }
      let (expected, _) = model.perform(request)
      try #require(reply == expected, "\(request)")
      answers[String("\(reply)".prefix { $0 != "(" }), default: 0] += 1
    }
    #expect(answers.count >= 9, "some answers never came: \(answers)")
  }

  /// Returns a request of one of three nodes, mostly one that may succeed.
  private static func request(_ model: TableState, _ random: inout SplitMix) -> TableRequest {
    let node = UInt32.random(in: 1...3, using: &random)
    let last = model.nodes[node]?.session ?? 0
    let session = NodeSession(node: node, session: random.chance(oneIn: 6) ? last + 1 : max(1, last))
    switch Int.random(in: 0..<12, using: &random) {
    case 0:
      return .beginSession(
        node: node, after: random.chance(oneIn: 4) ? last + 1 : last,
        renewal: .random(in: .min ... .max, using: &random))
    case 1, 2:
      return .renew(
        session, renewal: .random(in: .min ... .max, using: &random),
        confirmed: .random(in: 0...model.head.sequence, using: &random))
    case 3: return .observe(after: .random(in: 0...model.head.sequence + 1, using: &random))
    case 4:
      var mark = model.owner.map { owner in
        OwnerMark(owner: owner, renewal: model.nodes[owner.node]?.renewal ?? 0, isLive: true)
      }
      if let seen = mark, random.chance(oneIn: 4) {
        mark = OwnerMark(owner: seen.owner, renewal: seen.renewal &+ 1, isLive: true)
      }
      return .takeOver(by: session, from: mark, epoch: random.chance(oneIn: 5) ? model.epoch + 1 : model.epoch)
    case 5:
      return .settle(
        model.entries.randomElement(using: &random)?.position ?? LogPosition(sequence: 1, epoch: 1, chain: 1))
    case 6:
      let position = model.head
      return .settle(LogPosition(sequence: position.sequence, epoch: position.epoch, chain: position.chain &+ 1))
    default:
      var previous = model.head
      if random.chance(oneIn: 5), let other = model.entries.randomElement(using: &random) { previous = other.position }
      let body = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let kind: SharedEntry.Kind = random.chance(oneIn: 15) ? .handover : .batch
      let epoch = random.chance(oneIn: 6) ? previous.epoch + 1 : previous.epoch
      return .append(
        SharedEntry(kind, body, after: previous, epoch: epoch, secret: secret), behind: previous)
    }
  }

  // MARK: The fence

  @Test func anOwnerThatWasReplacedAppendsNothing() throws {
    let (tables, url) = try makeTables("fence")
    let (first, takeover) = try takeOver(tables, node: 1)
    let mark = OwnerMark(owner: first, renewal: 1, isLive: true)
    let other = try PostgresTables(url, secret: Self.secret, patience: Self.patient)
    let (_, second) = try takeOver(other, node: 2, from: mark, epoch: 1)
    let late = SharedEntry(.batch, [1], after: takeover.position, epoch: 1, secret: Self.secret)
    #expect(tables.perform(.append(late, behind: takeover.position)) == .refused(found: second.position))
    #expect(tables.perform(.renew(first, renewal: 2, confirmed: 0)) == .sessionOver(last: 1))
    #expect(try observation(other).entries == [takeover, second])
  }

  @Test func anAppendThatWaitsForATakeoverIsRefused() throws {
    let (tables, _) = try makeTables("waiting")
    let (_, takeover) = try takeOver(tables, node: 1)
    let entry = SharedEntry(.batch, [1], after: takeover.position, epoch: 1, secret: Self.secret)
    let reply = Mutex<TableReply??>(nil)
    let isDone = DispatchSemaphore(value: 0)
    // Another transaction has the position, and commits while the append waits.
    let blocker = Thread { [server] in
      _ = try? server.sql(
        """
        BEGIN; INSERT INTO hearth_log VALUES (2, 2, 2, 77, 'x'); SELECT pg_sleep(3); COMMIT
        """, in: "waiting")
      isDone.signal()
    }
    blocker.start()
    let isInserted = try OtherProcess.eventually {
      try server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        in: "waiting") == "1"
    }
    #expect(isInserted)
    reply.withLock { $0 = tables.perform(.append(entry, behind: takeover.position)) }
    isDone.wait()
    #expect(reply.withLock { $0 } == .refused(found: LogPosition(sequence: 2, epoch: 2, chain: 77)))
  }

  @Test func largeEntriesAndObservationsAreWhole() throws {
    let (tables, _) = try makeTables("large")
    var (_, previous) = try takeOver(tables, node: 1)
    var expected = [previous]
    for number in 0..<6 {
      let body = [UInt8](repeating: UInt8(number), count: 1_500_000 + number)
      let entry = SharedEntry(.batch, body, after: previous.position, epoch: 1, secret: Self.secret)
      try #require(tables.perform(.append(entry, behind: previous.position)) == .appended)
      expected.append(entry)
      previous = entry
    }
    var found: [SharedEntry] = []
    while found.count < expected.count {
      let part = try observation(tables, after: found.last?.position.sequence ?? 0).entries
      try #require(!part.isEmpty)
      #expect(part.dropLast().reduce(0) { $0 + $1.body.count } < 4 << 20)
      found += part
    }
    #expect(found == expected)
  }

  /// The method of PostgreSQL takes longer than the rest of an append.
  @Test func longBodiesAreCompressedWithLZ4() throws {
    let (tables, _) = try makeTables("compressed")
    let (_, takeover) = try takeOver(tables, node: 1)
    let body = (0..<8000).map { UInt8($0 % 50) }
    let entry = SharedEntry(.batch, body, after: takeover.position, epoch: 1, secret: Self.secret)
    try #require(tables.perform(.append(entry, behind: takeover.position)) == .appended)
    let query = "SELECT pg_column_compression(body) FROM hearth_log WHERE seq = 2"
    #expect(try server.sql(query, in: "compressed") == "lz4")
    #expect(try observation(tables, after: 1).entries == [entry])
  }

  // MARK: Conflicts

  /// PostgreSQL ends each transaction that writes twice in favor of others, as engines that are always SERIALIZABLE may do.
  @Test func transactionsThatConflictAreRepeated() throws {
    let (tables, url) = try makeTables("conflicts")
    try server.addConflicts(to: ["hearth_log", "hearth_node", "hearth_cluster", "hearth_meta"], in: "conflicts")
    var (session, previous) = try takeOver(tables, node: 1)
    for number in 1...5 {
      let entry = SharedEntry(.batch, [UInt8(number)], after: previous.position, epoch: 1, secret: Self.secret)
      try #require(tables.perform(.append(entry, behind: previous.position)) == .appended)
      #expect(tables.perform(.renew(session, renewal: UInt64(number), confirmed: 0)) == .renewed)
      previous = entry
    }
    #expect(tables.perform(.settle(previous.position)) != nil)
    let loss = LogLoss(number: 1, node: 1, seconds: 1)
    try ClusterCatalog(url).answer(loss)
    #expect(try observation(tables).entries.count == 6)
    let attempts = try server.attempts(in: "conflicts")
    #expect(attempts >= 3 * 14, "\(attempts) attempts")
  }

  // MARK: Refusals

  @Test func aRefusalOfOneKindOfRequestLasts() throws {
    let (tables, _) = try makeTables("refusals")
    let (_, takeover) = try takeOver(tables, node: 1)
    try server.sql("CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", in: "refusals")
    let reader = try PostgresTables(server.url("refusals", role: "reader"), secret: Self.secret, patience: Self.patient)
    let entry = SharedEntry(.batch, [1], after: takeover.position, epoch: 1, secret: Self.secret)
    for _ in 0..<3 {
      #expect(reader.lastingFailure == nil)
      #expect(reader.perform(.append(entry, behind: takeover.position)) == nil)
      _ = try observation(reader)
    }
    #expect(reader.lastingFailure?.description.contains("too few rights") == true)
    try server.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader", in: "refusals")
    #expect(reader.perform(.append(entry, behind: takeover.position)) == .appended)
    #expect(reader.lastingFailure == nil)
  }

  // MARK: Lost answers

  @Test(arguments: ["read committed", "serializable"])
  func anEntryIsInTheLogOnceHoweverManyConnectionsEnd(isolation: String) throws {
    let (tables, url) = try makeTables("lossy")
    try server.sql("ALTER DATABASE lossy SET default_transaction_isolation = '\(isolation)'", in: "postgres")
    let (session, takeover) = try takeOver(tables, node: 1)
    let isDone = Atomic(false)
    // Another node observes and renews meanwhile, and connections of both end again and again.
    let ended = DispatchSemaphore(value: 0)
    let renewing = Thread {
      defer { ended.signal() }
      guard let other = try? PostgresTables(url, secret: Self.secret, patience: Self.patient) else { return }
      var last: UInt64 = 0
      while !isDone.load(ordering: .relaxed) {
        switch other.perform(.beginSession(node: 2, after: last, renewal: last)) {
        case .session(let session): last = session.session
        case .sessionOver(let found): last = found
        default: break
        }
        _ = other.perform(.observe(after: 0))
        _ = tables.perform(.renew(session, renewal: last, confirmed: 0))
      }
    }
    let ending = Thread { [server] in
      defer { ended.signal() }
      while !isDone.load(ordering: .relaxed) {
        _ = try? server.sql(
          """
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name = 'hearth' AND random() < 0.3
          """, in: "lossy")
      }
    }
    renewing.start()
    ending.start()
    var entries = [takeover]
    var lost = 0
    while lost < 5, entries.count < 50_000 {
      let number = entries.count
      let previous = entries[entries.count - 1].position
      let entry = SharedEntry(
        .batch, [UInt8(truncatingIfNeeded: number)], after: previous, epoch: 1, secret: Self.secret)
      var append = EntryAppend(entry, behind: previous)
      var step = EntryAppend.Step.perform(append.request)
      while case .perform(let request) = step {
        let reply = tables.perform(request)
        if reply == nil { lost += 1 }
        step = append.receive(reply)
      }
      try #require(step == .appended)
      entries.append(entry)
    }
    isDone.store(true, ordering: .relaxed)
    for _ in 0..<2 { ended.wait() }
    // An entry is repeated until it is in the log, however many connections in a row fail.
    #expect(lost >= 5)
    var found: [SharedEntry] = []
    while found.count < entries.count {
      let part = try observation(tables, after: found.last?.position.sequence ?? 0).entries
      try #require(!part.isEmpty)
      found += part
    }
    #expect(found == entries)
  }

  @Test func anAppendWhoseWaitForAStandbyWasCanceledIsNotAcknowledged() throws {
    let (tables, _) = try makeTables("standby")
    let (_, takeover) = try takeOver(tables, node: 1)
    // No standby of this name exists, so every commit waits.
    try server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", in: "standby")
    try server.sql("SELECT pg_reload_conf()", in: "standby")
    let waiting = "FROM pg_stat_activity WHERE application_name = 'hearth' AND wait_event = 'SyncRep'"
    let isWaiting = try OtherProcess.eventually {
      try server.sql("SHOW synchronous_standby_names", in: "standby") == "nobody"
    }
    #expect(isWaiting)
    let isDone = DispatchSemaphore(value: 0)
    let canceler = Thread { [server] in
      _ = try? OtherProcess.eventually {
        try server.sql("SELECT count(pg_cancel_backend(pid)) \(waiting)", in: "standby") == "1"
      }
      isDone.signal()
    }
    canceler.start()
    let entry = SharedEntry(.batch, [1], after: takeover.position, epoch: 1, secret: Self.secret)
    #expect(tables.perform(.append(entry, behind: takeover.position)) == nil)
    isDone.wait()
    #expect(tables.lastFailure == .notDurable)
    // It is visible, and an append that is repeated finds it. Only a settlement that waits for a standby acknowledges it.
    #expect(tables.perform(.append(entry, behind: takeover.position)) == .refused(found: entry.position))
    try server.sql("ALTER SYSTEM RESET synchronous_standby_names", in: "standby")
    try server.sql("SELECT pg_reload_conf()", in: "standby")
    let isSettled = OtherProcess.eventually { tables.perform(.settle(entry.position)) == .settled }
    #expect(isSettled)
  }

  @Test func aServerThatDoesNotAnswerCostsABoundedTime() throws {
    let (_, url) = try makeTables("silent")
    var patience = PostgresTables.Patience()
    (patience.request, patience.append) = (300, 300)
    let tables = try PostgresTables(url, secret: Self.secret, patience: patience)
    _ = try observation(tables)
    let backend = try server.sql(
      """
      SELECT pid FROM pg_stat_activity WHERE application_name = 'hearth' AND query LIKE '%hearth_cluster c%'
      ORDER BY backend_start DESC LIMIT 1
      """, in: "silent")
    let process = try #require(Int32(backend))
    kill(process, SIGSTOP)
    let begin = ContinuousClock.now
    #expect(tables.perform(.observe(after: 0)) == nil)
    #expect(ContinuousClock.now - begin < .seconds(20))
    #expect(tables.lastFailure == .noAnswer)
    kill(process, SIGCONT)
    let isAnswered = OtherProcess.eventually { tables.perform(.observe(after: 0)) != nil }
    #expect(isAnswered)
  }

  // MARK: Mistakes

  @Test func mistakesAreNamed() throws {
    let (_, url) = try makeTables("mistakes")
    #expect(throws: PostgresFailure.tablesExist) { try ClusterSchema.create(at: url, Self.identity) }
    #expect(throws: PostgresFailure.notAURL) { try ClusterSchema.check(at: "host=x password=secret") }
    #expect(throws: PostgresFailure.noTables) { try ClusterSchema.check(at: server.makeDatabase("empty")) }
    try server.sql("CREATE ROLE stranger LOGIN", in: "mistakes")
    let rights = #expect(throws: PostgresFailure.self) {
      try ClusterSchema.check(at: server.url("mistakes", role: "stranger"))
    }
    #expect(rights?.description.contains("too few rights") == true)
    let missing = #expect(throws: PostgresFailure.self) { try ClusterSchema.check(at: server.url("nowhere")) }
    #expect(missing?.description.contains("database \"nowhere\" does not exist") == true)
    let password = "postgres://hearth:hunter2@/postgres?host=/nowhere"
    let unreachable = #expect(throws: PostgresFailure.self) { try ClusterSchema.check(at: password) }
    #expect(unreachable?.description.contains("hunter2") == false)
    try server.sql("UPDATE hearth_meta SET v = '3' WHERE k = 'format'", in: "mistakes")
    #expect(throws: PostgresFailure.unknownFormat("3")) { try ClusterSchema.check(at: url) }
    let foreign = try server.makeDatabase("foreign_tables")
    try server.sql("CREATE TABLE hearth_meta (name text)", in: "foreign_tables")
    #expect(throws: PostgresFailure.foreignTables) { try ClusterSchema.check(at: foreign) }
  }
}
