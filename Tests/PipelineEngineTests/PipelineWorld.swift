import Basics
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import TestSupport
import WireFormat
@testable import PipelineEngine

/// An in-memory database to run pipelines on.
struct PipelineWorld {
  let id = DatabaseID(project: "p").unsafelyUnwrapped
  let database: DocumentDatabase

  /// Creates a database with declared indexes.
  init(_ indexes: IndexConfiguration = IndexConfiguration()) throws {
    let time = SteppedTime()
    database = try DocumentDatabase(
      id: id, store: LMDBStore.open(.inMemory(mapBytes: 256 << 20)), retention: Retention(), clock: Clock { time.now })
    try database.adopt(indexes: indexes)
  }

  func set(_ documents: [QueryModel.Document]) throws {
    for start in stride(from: 0, to: documents.count, by: 400) {
      let writes = documents[start..<min(start + 400, documents.count)].map {
        Write(.update(EncodedFields($0.fields), mask: nil), key: document($0.path.text))
      }
      _ = try wait { done in database.commit(CommitRequest(writes), completion: done) }.get()
    }
  }

  /// Plans a pipeline over the newest state.
  func execution(
    _ stages: [PipelineCall], options: [PipelineArgument.Entry] = [],
    _ budget: ScratchBudget = ScratchBudget(ScratchBudget.Limits()),
    isReviewed: Bool = false, dividesAfter: Int? = nil,
    clock: @escaping () -> ContinuousClock.Instant = { ContinuousClock.now }
  ) throws -> PipelineExecution {
    let plan = try PipelinePlan(StructuredPipeline(stages, options: options), in: id)
    let database = database
    let reads: PipelineRun.Reads = { body in try database.read { reader in try body(reader.snapshot) } }
    return try database.read { reader in
      let version = try reader.lastVersion()
      let indexes = try IndexCatalog(&reader)
      return try PipelineExecution(
        plan, in: id, reader.snapshot, at: version, now: Timestamp(uncheckedMicroseconds: 0), indexes,
        ScratchSpace(budget), isReviewed: isReviewed, reads: dividesAfter == nil ? nil : reads,
        documentsBeforeDivision: dividesAfter, clock: clock)
    }
  }

  /// Returns the rows of a pipeline: their names and fields. Runs it in slices of `units` units.
  func rows(
    _ stages: [PipelineCall], options: [PipelineArgument.Entry] = [],
    _ budget: ScratchBudget = ScratchBudget(ScratchBudget.Limits()),
    isReviewed: Bool = false, units: Int = PipelineExecution.sliceUnits
  ) throws -> [Row] {
    try rows(try execution(stages, options: options, budget, isReviewed: isReviewed), units: units)
  }

  func rows(_ execution: PipelineExecution, units: Int = PipelineExecution.sliceUnits) throws -> [Row] {
    var rows: [Row] = []
    while !execution.isAtEnd {
      try database.read { reader in
        try execution.slice(reader.snapshot, units: units) { result in
          rows.append(
            Row(name: result.name.map { String(decoding: $0, as: UTF8.self) }, fields: try result.fields.decoded()))
          return true
        }
      }
    }
    return rows
  }

  /// The text of an analyzed pipeline.
  func analysis(_ stages: [PipelineCall], isReviewed: Bool = false) throws -> String {
    let options = PipelineArgument.Entry("explain_options", .constant(.map(MapValue([("mode", .string("analyze"))]))))
    let execution = try execution(stages, options: [options], isReviewed: isReviewed)
    _ = try rows(execution)
    return execution.explanation.text
  }
}

/// A row of a pipeline.
struct Row: Equatable, CustomStringConvertible {
  var name: String?
  var fields: MapValue

  var description: String { "\(name?.split(separator: "/").last ?? "")\(fields)" }
}

extension EncodedMap {
  func decoded() throws -> MapValue {
    var entries: [(String, Value)] = []
    var iterator = makeIterator()
    while let (key, value) = try iterator.next() {
      entries.append((String(decoding: key, as: UTF8.self), try ValueCodec.decode(value)))
    }
    return MapValue(entries)
  }
}

extension PipelineArgument {
  static func call(_ name: String, _ arguments: PipelineArgument...) -> PipelineArgument {
    .function(PipelineCall(name, arguments))
  }

  static func members(_ entries: (String, PipelineArgument)...) -> PipelineArgument {
    .entries(entries.map { Entry($0.0, $0.1) })
  }

  static func integer(_ number: Int) -> PipelineArgument { .constant(.integer(Int64(number))) }
}

extension PipelineCall {
  static let c = PipelineCall("collection", [.constant(.reference("/c"))])
  static let count = PipelineCall("aggregate", [.members(("n", .call("count"))), .members()])

  static func filter(_ condition: PipelineArgument) -> PipelineCall { PipelineCall("where", [condition]) }
  static func limit(_ count: Int) -> PipelineCall { PipelineCall("limit", [.integer(count)]) }
  static func offset(_ count: Int) -> PipelineCall { PipelineCall("offset", [.integer(count)]) }

  static func sort(_ field: String, descending: Bool) -> PipelineCall {
    PipelineCall(
      "sort",
      [
        .members(
          ("expression", .field(field)), ("direction", .constant(.string(descending ? "descending" : "ascending"))))
      ])
  }

  /// A stage that keeps every row, but of which the planner knows nothing, so that it pushes nothing down past it.
  static let opaque = filter(.call("equal", .call("add", .integer(1), .integer(1)), .integer(2)))
}
