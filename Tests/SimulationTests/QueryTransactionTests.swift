import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Foundation
import QueryEngine
import Synchronization
import Testing
import TestSupport
import WireFormat

/// Transactions with random queries and writes. Every committed transaction must be as if it had run alone at its
/// commit.
///
/// `HEARTH_SIMULATION_STEPS` makes each run longer. `HEARTH_SIMULATION_SEED` repeats a run.
@Suite struct QueryTransactionTests {
  private static let seeds = TestSeeds.of("HEARTH_SIMULATION_SEED", otherwise: [1, 2, 3, 4, 77])
  private static let steps = ProcessInfo.processInfo.environment["HEARTH_SIMULATION_STEPS"].flatMap { Int($0) } ?? 1500

  /// One thread switches between transactions, so the outcome of every commit is known in advance: it is aborted
  /// exactly if its reads would return something else now.
  @Test(arguments: seeds) func everyOutcomeFollowsFromTheReads(seed: UInt64) throws {
    let database = try SimulatedService(usesLog: seed.isMultiple(of: 2))
    var twin = Twin(created: try database.lastVersion())
    var reader = RandomReader(seed: seed, database)
    try reader.fill(database, &twin)
    var open: [(transaction: TransactionID, version: Int64, readings: [Reading])] = []
    var outcomes = (won: 0, lost: 0)
    for step in 0..<Self.steps {
      if reader.chance(oneIn: 4) { database.time.now += reader.chance(oneIn: 3) ? 200_000 : 10 }
      switch reader.number(0...9) {
      case 0...1 where open.count < 5:
        let transaction = try database.service.beginTransaction(.readWrite(retrying: nil), in: database.id, as: .admin)
        open.append((transaction, try database.lastVersion(), []))
      case 2...4 where !open.isEmpty:
        let index = reader.number(0...open.count - 1)
        guard let reading = try reader.read(in: open[index].transaction, database) else { continue }
        let expected = try reading.expected(in: twin, at: open[index].version, database)
        guard reading.outcome == expected else {
          Issue.record("seed \(seed), step \(step): \(reading), expected \(expected)")
          return
        }
        open[index].readings.append(reading)
      case 5...6 where !open.isEmpty:
        let (transaction, version, readings) = open.remove(at: reader.number(0...open.count - 1))
        let stale = try readings.first { try $0.isStale(twin, since: version, database) }
        let writes = reader.writes()
        switch try database.result(of: writes, transaction: transaction) {
        case .success(let outcome):
          outcomes.won += 1
          if let stale { Issue.record("seed \(seed), step \(step): committed despite the stale read \(stale)") }
          try twin.commit(writes, at: outcome.version.microseconds)
        case .failure(let status):
          outcomes.lost += 1
          if stale == nil || status.code != .aborted {
            Issue.record("seed \(seed), step \(step): \(status) for \(readings)")
            return
          }
        }
      default:
        let writes = reader.writes()
        try twin.commit(writes, at: try database.commit(writes))
      }
    }
    // A run in which all transactions conflict, or none, would prove little.
    #expect(outcomes.won * 10 > Self.steps / 10 && outcomes.lost * 20 > Self.steps / 10, "\(outcomes)")
  }

  /// Many threads run at once. The reads of each committed transaction must match the state just before its commit.
  @Test(arguments: seeds.suffix(2)) func commitsAreSerializable(seed: UInt64) throws {
    let database = try SimulatedService()
    var twin = Twin(created: try database.lastVersion())
    var filler = RandomReader(seed: seed, database)
    try filler.fill(database, &twin)
    struct Committed: Sendable {
      var version: Int64
      var writes: [Write]
      var readings: [Reading]
    }
    let committed = Mutex<[Committed]>([])
    let failures = Mutex<[String]>([])
    let lost = Mutex(0)
    onThreads(6) { thread in
      var reader = RandomReader(seed: seed &* 31 &+ UInt64(thread), database)
      do {
        for _ in 0..<Self.steps / 10 {
          if reader.chance(oneIn: 8) { database.time.advance(seconds: 1) }
          let isBlind = reader.chance(oneIn: 4)
          var readings: [Reading] = []
          var transaction: TransactionID?
          if !isBlind {
            let begun = try database.service.beginTransaction(.readWrite(retrying: nil), in: database.id, as: .admin)
            transaction = begun
            while readings.count < 3 {
              if let reading = try reader.read(in: begun, database) { readings.append(reading) }
              if reader.chance(oneIn: 2) { break }
            }
          }
          let writes = reader.writes()
          switch try database.result(of: writes, transaction: transaction) {
          case .success(let outcome):
            let done = Committed(version: outcome.version.microseconds, writes: writes, readings: readings)
            committed.withLock { $0.append(done) }
          case .failure(let status):
            if status.code != .aborted { failures.withLock { $0.append("\(status)") } }
            lost.withLock { $0 += 1 }
          }
        }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
    let inOrder = committed.withLock { $0 }.sorted { $0.version < $1.version }
    for one in inOrder {
      for reading in one.readings {
        let expected = try reading.expected(in: twin, at: one.version - 1, database)
        guard reading.outcome == expected else {
          Issue.record("seed \(seed): \(reading), but before its commit at \(one.version) it is \(expected)")
          return
        }
      }
      try twin.commit(one.writes, at: one.version)
    }
    let (won, defeated) = (inOrder.count { !$0.readings.isEmpty }, lost.withLock { $0 })
    #expect(won > 0 && defeated > 0, "seed \(seed): \(won) won, \(defeated) lost")
  }
}

/// A read of a transaction, with its outcome.
private struct Reading: Sendable, CustomStringConvertible {
  enum Request: Sendable {
    case query(Query, orders: [Order])
    case aggregation(Query, orders: [Order], [Aggregation])
    case document(DocumentKey)
  }

  enum Outcome: Sendable, Hashable {
    case rows([SimulatedService.Row])
    case values([Value])
  }

  var request: Request
  var outcome: Outcome

  var description: String { "\(outcome) of \(request)" }

  /// Returns the outcome that the read would have at a version.
  func expected(in twin: Twin, at version: Int64, _ database: SimulatedService) throws -> Outcome {
    switch request {
    case .query(let query, let orders): return .rows(Self.rows(query, orders, twin, version, database.id))
    case .document(let key):
      return .rows([SimulatedService.Row(path: key.path, update: twin.document(key, at: version)?.update ?? 0)])
    case .aggregation(let query, _, let aggregations):
      // Use the engine's own result at that version; its correctness is tested elsewhere.
      let time = Timestamp(uncheckedMicroseconds: version)
      return .values(try database.aggregate(aggregations, query, .readTime(time)))
    }
  }

  /// Returns whether a commit now must be aborted because of this read.
  func isStale(_ twin: Twin, since version: Int64, _ database: SimulatedService) throws -> Bool {
    func differs<T: Equatable>(_ body: (Int64) throws -> T) rethrows -> Bool { try body(version) != body(.max) }
    switch request {
    case .document: return try differs { try expected(in: twin, at: $0, database) }
    case .query(var query, let orders):
      if query.limit == 0 { return false }
      // Documents skipped by the offset count as read.
      query.limit = query.limit.map { $0 + query.offset }
      query.offset = 0
      return differs { Self.rows(query, orders, twin, $0, database.id) }
    case .aggregation(let query, let orders, let aggregations):
      if query.limit == 0 { return false }
      // Every matching document counts as read, with its position if a limit or an offset counts positions.
      let isCounted = query.limit != nil || query.offset > 0
      var whole = query
      whole.limit = nil
      whole.offset = 0
      let fields = aggregations.compactMap(\.field)
      return differs { version -> Set<[Value]> in
        let documents = twin.documents(at: version).mapValues(\.fields)
        var all: Set<[Value]> = []
        for row in Self.rows(whole, orders, twin, version, database.id) {
          guard let fieldsOfRow = DocumentKey(row.path).flatMap({ documents[$0] }) else { continue }
          let values = fields.compactMap { fieldsOfRow[$0] }
          guard values.count == fields.count else { continue }
          let place = QueryModel(database.id).position(of: (row.path, fieldsOfRow), orders: isCounted ? orders : [])
          all.insert([.bytes(row.path.bytes)] + values + place)
        }
        return all
      }
    }
  }

  private static func rows(
    _ query: Query, _ orders: [Order], _ twin: Twin, _ version: Int64, _ id: DatabaseID
  ) -> [SimulatedService.Row] {
    let documents = twin.documents(at: version)
    return QueryModel(id).results(query, orders: orders, in: documents.map { ($0.key.path, $0.value.fields) }).map {
      path in
      let key = document(path)
      return SimulatedService.Row(path: key.path, update: documents[key]?.update ?? 0)
    }
  }
}

/// A generator of random reads and writes.
private struct RandomReader {
  private var generator: QueryGenerator
  private let id: DatabaseID
  private let keys: [DocumentKey]

  init(seed: UInt64, _ database: SimulatedService) {
    generator = QueryGenerator(seed: seed)
    id = database.id
    // Some keys are in collections that exist only at times.
    var other = QueryGenerator(seed: 1)
    keys =
      other.documents().map { document($0.path.text) }
      + ["c/y/s/x", "d/q/s/x/s/y", "e/x", "s/x", "c/x/t/y"].map(document)
  }

  mutating func number(_ range: ClosedRange<Int>) -> Int { generator.number(range) }
  mutating func chance(oneIn count: Int) -> Bool { number(1...count) == 1 }

  mutating func fill(_ database: SimulatedService, _ twin: inout Twin) throws {
    let writes = keys.prefix(40).map { Write(.update(EncodedFields(generator.documentFields()), mask: nil), key: $0) }
    try twin.commit(writes, at: try database.commit(writes))
  }

  mutating func writes() -> [Write] {
    var writes: [DocumentKey: Write] = [:]
    for _ in 0..<number(1...2) {
      let key = keys[number(0...keys.count - 1)]
      let operation: Write.Operation =
        chance(oneIn: 3) ? .delete : .update(EncodedFields(generator.documentFields()), mask: nil)
      writes[key] = Write(operation, key: key)
    }
    return writes.values.sorted { $0.key < $1.key }
  }

  /// Performs a random read in a transaction. Returns `nil` if the generated query is invalid.
  mutating func read(in transaction: TransactionID, _ database: SimulatedService) throws -> Reading? {
    let consistency = ConsistencySelector.transaction(transaction)
    if chance(oneIn: 6) {
      let key = keys[number(0...keys.count - 1)]
      let update = try database.updateTime(of: key, consistency)
      return Reading(request: .document(key), outcome: .rows([SimulatedService.Row(path: key.path, update: update)]))
    }
    var query = generator.query()
    if chance(oneIn: 2) { query.limit = number(0...4) }
    if chance(oneIn: 5) { query.offset = number(0...3) }
    if chance(oneIn: 4) {
      var aggregations = [Aggregation(.count(upTo: nil), alias: "n")]
      if chance(oneIn: 2) { aggregations.append(Aggregation(.sum(field("a")), alias: "sum")) }
      let fields = aggregations.compactMap(\.field)
      guard let orders = try? ResolvedQuery(query, in: id, aggregated: fields).orders else { return nil }
      let values = try database.aggregate(aggregations, query, consistency)
      return Reading(request: .aggregation(query, orders: orders, aggregations), outcome: .values(values))
    }
    guard let orders = try? ResolvedQuery(query, in: id).orders else { return nil }
    return Reading(
      request: .query(query, orders: orders), outcome: .rows(try database.results(of: query, consistency)))
  }
}
