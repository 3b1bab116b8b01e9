import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import TestSupport
import WireFormat
@testable import QueryEngine

/// An in-memory database to run queries on.
struct QueryDatabase {
  let id = DatabaseID(project: "p").unsafelyUnwrapped
  let database: DocumentDatabase

  init(indexes: IndexConfiguration? = nil, mapBytes: Int = 256 << 20) throws {
    let time = SteppedTime()
    database = try DocumentDatabase(
      id: id, store: LMDBStore.open(.inMemory(mapBytes: mapBytes)), retention: Retention(), clock: Clock { time.now },
      indexBatch: IndexBatch(documentsMax: 7, entriesMax: 20))
    try database.adopt(indexes: indexes)
  }

  /// Sets the declared indexes, and waits until they are built.
  func setIndexes(_ configuration: IndexConfiguration) throws {
    try database.setIndexes(configuration)
    // An empty commit waits in the queue behind a batch of index work.
    while try database.indexReports().contains(where: { $0.state == .building || $0.state == .removing }) {
      try commit([])
    }
  }

  /// Commits and returns the version.
  @discardableResult
  func commit(_ writes: [Write]) throws -> Int64 {
    try wait { done in database.commit(CommitRequest(writes), completion: done) }.get().version.microseconds
  }

  @discardableResult
  func set(_ documents: [QueryModel.Document]) throws -> Int64 {
    try commit(documents.map { Write(.update(EncodedFields($0.fields), mask: nil), key: document($0.path.text)) })
  }

  /// Returns the version of the last commit.
  func lastVersion() throws -> Int64 { try database.read { try $0.lastVersion() } }

  /// Returns the paths of a query's results. Runs it in slices of `units` units, each on its own snapshot. Calls
  /// `between` after each slice.
  func run(
    _ query: Query, at version: Int64? = nil, _ options: PlanOptions = PlanOptions(),
    units: Int = QueryExecution.sliceUnits, between: () throws -> Void = {}
  ) throws -> [String] {
    let version = try version ?? lastVersion()
    let results = try database.read { try ResolvedQuery(query, in: id).results($0.snapshot, at: version, options) }
    var paths: [String] = []
    while !results.isAtEnd {
      try database.read { reader in
        try results.slice(reader.snapshot, units: units) { key, _ in
          paths.append(key.path.text)
          return true
        }
      }
      try between()
    }
    return paths
  }

  func aggregate(
    _ query: Query, _ operators: [Aggregation.Operator], at version: Int64? = nil,
    _ options: PlanOptions = PlanOptions(), units: Int = QueryExecution.sliceUnits, between: () throws -> Void = {}
  ) throws -> [Value] {
    let aggregations = operators.enumerated().map { Aggregation($1, alias: "n\($0)") }
    let resolved = try ResolvedQuery(query, in: id, aggregated: aggregations.compactMap(\.field))
    let version = try version ?? lastVersion()
    let execution = try database.read {
      try AggregationExecution(aggregations, over: resolved, $0.snapshot, at: version, options)
    }
    while true {
      if let values = try database.read({ try execution.slice($0.snapshot, units: units) }) { return values }
      try between()
    }
  }

  func plan(_ query: Query, _ options: PlanOptions = PlanOptions()) throws -> String {
    try database.read { reader in
      try QueryExecution(ResolvedQuery(query, in: id), reader.snapshot, at: reader.lastVersion(), options).plan
        .description
    }
  }
}
