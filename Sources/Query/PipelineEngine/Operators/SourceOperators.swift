import DocumentModel
import DocumentStore
import PipelineExpressions
import QueryEngine
import WireFormat

/// Reads the documents that a query finds, in its order.
///
/// Documents are read ahead in batches and copied, because a slice ends with the snapshot that contains them.
final class QueryOperator: RowOperator {
  private let plan: SourcePlan
  /// The collection below the enclosing row's document, if the source is `subcollection`.
  private let subcollection: String?
  /// The number of the source in the plan of the request.
  private let source: Int
  private let outerCount: Int
  private let current: PipelineRow
  /// The enclosing row. It does not change while this operator runs.
  private var outer: PipelineRow?
  private var results: (any QueryResults)?
  private var isOpen = false
  private var counted = QueryCost()

  /// The documents read ahead: paths and fields in ``batch``.
  private struct Document {
    let path: Range<Int>
    let fields: Range<Int>
    let createVersion: Int64
    let updateVersion: Int64
  }
  private var documents: [Document] = []
  private var next = 0
  private let batch = RowBuffer()

  /// A `where` stage that directly follows. It is evaluated on the stored bytes, before they are copied.
  private struct Filter {
    let stage: PipelineStage
    let condition: Int
    let evaluator: StageEvaluator
    let usesName: Bool
  }
  private var filters: [Filter] = []

  init(
    _ stage: PipelineStage, _ plan: SourcePlan, subcollection: String?, source: Int, _ body: PipelineBody
  ) {
    self.plan = plan
    self.subcollection = subcollection
    self.source = source
    outerCount = body.outerVariableCount
    current = PipelineRow(variableCount: body.variableCount)
    super.init(stage)
  }

  override var row: PipelineRow { current }

  override var text: String {
    let names = ([name] + filters.map(\.stage.name)).joined(separator: ", ")
    return results.map { "\(names)\n\($0.planText)" } ?? names
  }

  /// Takes over the condition of the `where` stage that follows.
  func add(_ condition: Int, of stage: PipelineStage, _ evaluator: StageEvaluator) {
    let usesName = stage.program.map { $0.usesName || $0.usesWholeRow } ?? true
    filters.append(Filter(stage: stage, condition: condition, evaluator: evaluator, usesName: usesName))
  }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    self.outer = outer
    current.copyVariables(of: outer, outerCount)
    results = nil
    isOpen = false
    documents.removeAll(keepingCapacity: true)
    next = 0
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while next == documents.count {
      if !isOpen { try open(run) }
      guard let results, !results.isAtEnd else { return .end }
      guard run.unitsLeft > 0 else { return .paused }
      try fill(results, run)
    }
    // Later operators may use up the slice with each row.
    guard run.unitsLeft > 0 else { return .paused }
    take(documents[next], run)
    next += 1
    return .found
  }

  override func prepare(_ run: PipelineRun) throws {
    // The collection of a nested pipeline is not known before it runs.
    if subcollection == nil { try open(run) }
  }

  private func take(_ document: Document, _ run: PipelineRun) {
    let bytes = batch.bytes
    current.name.assign(run.root)
    current.name.append(UnsafeRawBufferPointer(rebasing: bytes[document.path]))
    current.hasName = true
    current.createTime = Timestamp(uncheckedMicroseconds: document.createVersion)
    current.updateTime = Timestamp(uncheckedMicroseconds: document.updateVersion)
    current.borrow(UnsafeRawBufferPointer(rebasing: bytes[document.fields]))
  }

  private func open(_ run: PipelineRun) throws {
    isOpen = true
    var parent: ResourcePath?
    var query = plan.query { [outer, outerCount] variable in
      guard variable < outerCount, let value = outer?.value(of: variable) else { return nil }
      return try? ValueCodec.decode(EncodedValue(value))
    }
    if let subcollection {
      guard let outer, outer.hasName else {
        throw PipelineError("The enclosing row has no __name__, so it has no subcollections.")
      }
      guard let (_, key) = try? ResourceName.document(outer.name.bytes),
        let collection = try? ResourcePath(key.path.text + "/" + subcollection)
      else { throw PipelineError("The enclosing row's document cannot have the collection \(subcollection).") }
      parent = collection.parent
      query.includesDescendants = false
    }
    if let parent { query.parent = parent }
    let resolved = try PipelinePlan.resolved(query, in: run.database)
    results = try resolved.results(
      run.snapshot, at: run.version, PlanOptions(indexes: run.indexes, scratch: run.scratch))
    counted = QueryCost()
    run.unitsLeft -= Self.openUnits
  }

  /// The cost of planning a query, in units.
  private static let openUnits = 200

  private func fill(_ results: any QueryResults, _ run: PipelineRun) throws {
    documents.removeAll(keepingCapacity: true)
    next = 0
    batch.removeAll()
    let before = results.work
    try results.slice(run.snapshot, units: run.unitsLeft) { key, document in
      guard try passes(key, document, run) else { return run.unitsLeft > 0 }
      let mayContinue = try run.review?(source, key, document) ?? true
      let start = batch.count
      key.path.bytes.withUnsafeBytes { batch.append($0) }
      let middle = batch.count
      batch.append(document.fields)
      documents.append(
        Document(
          path: start..<middle, fields: middle..<batch.count, createVersion: document.createVersion,
          updateVersion: document.updateVersion))
      return mayContinue && batch.count < PipelineLimits.batchBytesMax && documents.count < PipelineLimits.batchRowsMax
    }
    let read = (documents: results.work.documents - before.documents, entries: results.work.entries - before.entries)
    run.work.documents += read.documents
    run.work.entries += read.entries
    run.unitsLeft -= 8 * read.documents + read.entries + batch.count >> 8
    guard documents.isEmpty, !results.isAtEnd else { return }
    run.unitsLeft = 0
    run.blocked = results.wait
  }
}

extension QueryOperator {
  /// Whether a stored document meets the conditions of the stages that directly follow.
  private func passes(_ key: DocumentKey, _ document: StoredDocument, _ run: PipelineRun) throws -> Bool {
    guard !filters.isEmpty else { return true }
    current.createTime = Timestamp(uncheckedMicroseconds: document.createVersion)
    current.updateTime = Timestamp(uncheckedMicroseconds: document.updateVersion)
    current.borrow(document.fields)
    for filter in filters {
      if filter.usesName {
        current.name.assign(run.root)
        key.path.bytes.withUnsafeBytes { current.name.append($0) }
      }
      current.hasName = filter.usesName
      filter.evaluator.begin(current)
      do throws(PipelineError) {
        guard try filter.evaluator.isTrue(filter.condition) else { return false }
      } catch { throw error.inside(filter.stage.number, filter.stage.name) }
    }
    return true
  }
}

/// Reads documents by name.
final class DocumentsOperator: RowOperator {
  private let keys: [DocumentKey]
  private let source: Int
  private let outerCount: Int
  private let current: PipelineRow
  private let fields = RowBuffer()
  private var place = 0

  init(_ stage: PipelineStage, _ keys: [DocumentKey], source: Int, _ body: PipelineBody) {
    self.keys = keys
    self.source = source
    outerCount = body.outerVariableCount
    current = PipelineRow(variableCount: body.variableCount)
    super.init(stage)
  }

  override var row: PipelineRow { current }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    current.copyVariables(of: outer, outerCount)
    place = 0
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    var reader = SnapshotReader(run.snapshot)
    while place < keys.count {
      guard run.unitsLeft > 0 else { return .paused }
      let key = keys[place]
      place += 1
      run.work.documents += 1
      run.unitsLeft -= Self.lookupUnits
      let found = try reader.collection(key.collection).flatMap { row in
        try reader.document(key.id, in: row.number, at: run.version)
      }
      if try run.review?(source, key, found) == false { run.unitsLeft = 0 }
      guard let found else { continue }
      // The row outlives the snapshot if a later operator pauses.
      fields.assign(found.fields)
      current.name.assign(run.root)
      key.path.bytes.withUnsafeBytes { current.name.append($0) }
      current.hasName = true
      current.createTime = Timestamp(uncheckedMicroseconds: found.createVersion)
      current.updateTime = Timestamp(uncheckedMicroseconds: found.updateVersion)
      current.borrow(fields.bytes)
      return .found
    }
    return .end
  }

  private static let lookupUnits = 16
}

/// Produces the rows that the request contains.
final class LiteralsOperator: RowOperator {
  private let literals: [RowAssignments]
  private let evaluator: StageEvaluator?
  private let outerCount: Int
  private let current: PipelineRow
  private var place = 0
  private var out: [UInt8] = []

  init(_ stage: PipelineStage, _ literals: [RowAssignments], _ run: PipelineRun, _ body: PipelineBody) {
    self.literals = literals
    outerCount = body.outerVariableCount
    current = PipelineRow(variableCount: body.variableCount)
    evaluator = stage.program.map { StageEvaluator($0, run, variableCount: body.variableCount) }
    super.init(stage)
  }

  override var row: PipelineRow { current }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    current.copyVariables(of: outer, outerCount)
    place = 0
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    guard place < literals.count else { return .end }
    guard run.unitsLeft > 0 else { return .paused }
    current.clear()
    if let evaluator {
      evaluator.begin(current)
      try literals[place].replace(current, evaluator, &out)
    }
    place += 1
    run.unitsLeft -= 4
    return .found
  }
}
