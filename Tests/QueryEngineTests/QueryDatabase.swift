import Dispatch
import DocumentModel
import DocumentStore
import KeyValueStore
import LMDBStore
@testable import QueryEngine
import Synchronization
import TestSupport
import WireFormat

/// A database in memory to run queries on.
struct QueryDatabase {
  let id = DatabaseID(project: "p").unsafelyUnwrapped
  let database: DocumentDatabase

  init() throws {
    let time = SteppedTime()
    database = try DocumentDatabase(
      id: id, store: LMDBStore.open(.inMemory(mapBytes: 256 << 20)), retention: Retention(), clock: Clock { time.now })
  }

  /// Commits and returns the version.
  @discardableResult
  func commit(_ writes: [Write]) throws -> Int64 {
    let answer = Mutex<Result<CommitOutcome, CommitError>?>(nil)
    let isThere = DispatchSemaphore(value: 0)
    database.commit(CommitRequest(writes)) { result in
      answer.withLock { $0 = result }
      isThere.signal()
    }
    isThere.wait()
    guard let result = answer.withLock({ $0 }) else { preconditionFailure("answered without an answer") }
    return try result.get().version.microseconds
  }

  @discardableResult
  func set(_ documents: [QueryModel.Document]) throws -> Int64 {
    try commit(documents.map { Write(.update(EncodedFields($0.fields), mask: nil), key: document($0.path.text)) })
  }

  /// The paths of a query's results.
  func run(_ query: Query, at version: Int64? = nil) throws -> [String] {
    try database.read { reader in
      let execution = try QueryExecution(ResolvedQuery(query, in: id), reader.snapshot, at: version)
      var paths: [String] = []
      while let (key, _) = try execution.next() { paths.append(key.path.text) }
      return paths
    }
  }

  func aggregate(_ query: Query, _ operators: [Aggregation.Operator], at version: Int64? = nil) throws -> [Value] {
    let aggregations = operators.enumerated().map { Aggregation($1, alias: "n\($0)") }
    let resolved = try ResolvedQuery(query, in: id, aggregated: aggregations.compactMap(\.field))
    return try database.read { reader in
      try AggregationExecution(aggregations, over: resolved, reader.snapshot, at: version).run()
    }
  }

  func plan(_ query: Query, at version: Int64? = nil) throws -> String {
    try database.read { reader in
      try QueryExecution(ResolvedQuery(query, in: id), reader.snapshot, at: version).plan.description
    }
  }
}
