import DocumentModel
import DocumentStore
import PipelineExpressions
import QueryEngine
import WireFormat

/// Reads the documents that a query finds, in its order.
///
/// A consumer that pulls rows one by one gets documents that were read ahead in batches and copied, because a slice
/// ends with the snapshot that contains them. A consumer that passes a closure gets them in place.
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
  private var results: QueryExecution?
  /// Whether the query only counts.
  private var countsOnly = false
  /// Whether only the documents without the field of the order are left.
  private var isLate = false
  /// The limit of the query, if it has one.
  private var limit: Int?

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
    let number: Int
    let name: String
    let condition: Int
    let evaluator: StageEvaluator
    let usesName: Bool
    let isExact: Bool
    let existingFields: [FieldPath]
  }
  private var filters: [Filter] = []
  /// The first of the filters to evaluate.
  private var evaluated: EvaluatedFilter?

  /// A filter to evaluate on each document, and those after it. Its properties are constants, so that a row costs no
  /// reference counting.
  private final class EvaluatedFilter {
    let evaluator: StageEvaluator
    let condition: Int
    let usesName: Bool
    let number: Int
    let name: String
    let next: EvaluatedFilter?

    init(_ filter: Filter, _ next: EvaluatedFilter?) {
      (evaluator, condition, usesName) = (filter.evaluator, filter.condition, filter.usesName)
      (number, name) = (filter.number, filter.name)
      self.next = next
    }
  }

  /// Whether the stages that follow use the name of a row.
  var needsName = true
  /// Terms that the rows must contain, if a `search` stage follows and an index finds them.
  var terms: TextTerms?
  /// Whether the consumer only counts rows.
  var isCounted = false
  /// The part of the query to read; `nil` for the whole query.
  var part: QueryPart?

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
    let names = ([name] + filters.map(\.name)).joined(separator: ", ") + (countsOnly ? ", only counted" : "")
    let late = plan.lateField.map { "\nthen documents without \($0.text), if rows are missing" } ?? ""
    return results.map { "\(names)\n\($0.planText)\(late)" } ?? names
  }

  /// Takes over the condition of the `where` stage that follows.
  func add(_ condition: Int, of stage: PipelineStage, _ prefix: PrefixCondition, _ evaluator: StageEvaluator) {
    let usesName = stage.program.map { $0.usesName || $0.usesWholeRow } ?? true
    filters.append(
      Filter(
        number: stage.number, name: stage.name, condition: condition, evaluator: evaluator, usesName: usesName,
        isExact: prefix.isExact, existingFields: prefix.existingFields))
  }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    self.outer = outer
    current.copyVariables(of: outer, outerCount)
    results = nil
    isLate = false
    documents.removeAll(keepingCapacity: true)
    next = 0
  }

  // MARK: Rows

  override func next(_ run: PipelineRun) throws -> RowStep {
    while next == documents.count {
      guard run.unitsLeft > 0 || results == nil else { return .paused }
      documents.removeAll(keepingCapacity: true)
      next = 0
      batch.removeAll()
      let mayContinue = try read(run) { document in
        documents.append(copy(document))
        run.unitsLeft -= document.fields.count >> 8
        return batch.count < PipelineLimits.batchBytesMax && documents.count < PipelineLimits.batchRowsMax
      }
      guard documents.isEmpty else { break }
      return mayContinue ? .paused : .end
    }
    // Later operators may use up the slice with each row.
    guard run.unitsLeft > 0 else { return .paused }
    take(documents[next], run)
    next += 1
    return .found
  }

  private func copy(_ document: StoredDocument) -> Document {
    let start = batch.count
    results?.withPath { batch.append($0) }
    let middle = batch.count
    batch.append(document.fields)
    return Document(
      path: start..<middle, fields: middle..<batch.count, createVersion: document.createVersion,
      updateVersion: document.updateVersion)
  }

  private func take(_ document: Document, _ run: PipelineRun) {
    let bytes = batch.bytes
    current.name.assign(run.root)
    current.name.append(UnsafeRawBufferPointer(rebasing: bytes[document.path]))
    current.hasName = true
    current.createTime = Timestamp(uncheckedMicroseconds: document.createVersion)
    current.updateTime = Timestamp(uncheckedMicroseconds: document.updateVersion)
    current.readVersion = document.updateVersion
    current.borrow(UnsafeRawBufferPointer(rebasing: bytes[document.fields]))
  }

  override func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    try read(run) { document in
      if needsName { takeName(run) }
      current.hasName = needsName
      current.createTime = Timestamp(uncheckedMicroseconds: document.createVersion)
      current.updateTime = Timestamp(uncheckedMicroseconds: document.updateVersion)
      current.readVersion = document.updateVersion
      current.borrow(document.fields)
      return try body()
    }
  }

  private func takeName(_ run: PipelineRun) {
    current.name.assign(run.root)
    results?.withPath { current.name.append($0) }
  }

  /// Calls `body` with each document that passes the conditions, until it returns `false`, the slice ends, or no
  /// documents are left. Returns whether documents may be left.
  private func read(_ run: PipelineRun, _ body: (StoredDocument) throws -> Bool) throws -> Bool {
    if results == nil { try open(run) }
    guard let results else { return false }
    guard run.unitsLeft > 0 else { return true }
    let before = results.work
    let unitsBefore = run.unitsLeft
    var passed = 0
    if !results.isAtEnd {
      let lateField = isLate ? plan.lateField : nil
      let review = run.review
      // `self` keeps the filters during the slice. Without a count of references for each row, a scan is faster.
      let evaluated = evaluated.map { Unmanaged.passUnretained($0) }
      try results.sliceDocuments(run.snapshot, units: run.unitsLeft) { document in
        passed += 1
        run.unitsLeft -= 8
        if let lateField, try EncodedMap(documentFields: document.fields).value(at: lateField) != nil {
          return run.unitsLeft > 0
        }
        if let evaluated, try !evaluated._withUnsafeGuaranteedRef({ try passes(document, $0, run) }) {
          return run.unitsLeft > 0
        }
        var mayContinue = true
        if let review {
          mayContinue = try results.withPath {
            try review(source, DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: Array($0))), document)
          }
        }
        return try body(document) && mayContinue && run.unitsLeft > 0
      }
    }
    let read = (documents: results.work.documents - before.documents, entries: results.work.entries - before.entries)
    run.work.documents += read.documents
    run.work.entries += read.entries
    run.unitsLeft -= 8 * max(0, read.documents - passed) + read.entries
    guard results.isAtEnd else {
      // A slice of the query that did nothing waits, for memory or for its next slice.
      if passed == 0, run.unitsLeft == unitsBefore { run.unitsLeft = 0 }
      if passed == 0 { run.blocked = results.wait }
      return true
    }
    return try openLate(run)
  }

  override func count(_ run: PipelineRun) throws -> (rows: Int, mayContinue: Bool)? {
    if results == nil { try open(run) }
    guard countsOnly, let results else { return nil }
    let before = (results.work.entries, results.work.documents, results.returned)
    try results.count(run.snapshot, units: run.unitsLeft)
    let (entries, documents) = (results.work.entries - before.0, results.work.documents - before.1)
    run.work.entries += entries
    run.work.documents += documents
    run.unitsLeft -= entries + 8 * documents
    noteCounted(results.returned - before.2)
    if !results.isAtEnd { run.unitsLeft = 0 }
    return (results.returned - before.2, !results.isAtEnd)
  }

  /// Whether a stored document meets the conditions that the query does not check, of which `first` is the first.
  @inline(__always)
  private func passes(_ document: StoredDocument, _ first: EvaluatedFilter, _ run: PipelineRun) throws -> Bool {
    current.createTime = Timestamp(uncheckedMicroseconds: document.createVersion)
    current.updateTime = Timestamp(uncheckedMicroseconds: document.updateVersion)
    current.borrow(document.fields)
    return try meets(first, run)
  }

  private func meets(_ filter: EvaluatedFilter, _ run: PipelineRun) throws -> Bool {
    if filter.usesName { takeName(run) }
    current.hasName = filter.usesName
    filter.evaluator.begin(current)
    do throws(PipelineError) {
      guard try filter.evaluator.isTrue(filter.condition) else { return false }
    } catch { throw error.inside(filter.number, filter.name) }
    guard let next = filter.next else { return true }
    return try meets(next, run)
  }

  // MARK: Queries

  override func prepare(_ run: PipelineRun) throws {
    // The collection of a nested pipeline is not known before it runs.
    if subcollection == nil { try open(run) }
  }

  private func value(of variable: Int) -> Value? {
    guard variable < outerCount, let value = outer?.value(of: variable) else { return nil }
    return try? ValueCodec.decode(EncodedValue(value))
  }

  /// Returns the document whose collection is read, if the source is `subcollection`.
  private func parent() throws -> ResourcePath? {
    guard let subcollection else { return nil }
    guard let outer, outer.hasName else {
      throw PipelineError("The enclosing row has no __name__, so it has no subcollections.")
    }
    guard let (_, key) = try? ResourceName.document(outer.name.bytes),
      let collection = try? ResourcePath(key.path.text + "/" + subcollection)
    else { throw PipelineError("The enclosing row's document cannot have the collection \(subcollection).") }
    return collection.parent
  }

  /// Whether the enclosing row names a document of another database, whose collections this one does not have.
  private func isOfOtherDatabase(_ run: PipelineRun) -> Bool {
    guard subcollection != nil, let outer, outer.hasName else { return false }
    guard let (named, _) = try? ResourceName.document(outer.name.bytes) else { return false }
    return named != run.database
  }

  private func open(_ run: PipelineRun) throws {
    if isOfOtherDatabase(run) { return }
    let executed = try plan.executed(in: run.database, below: try parent()) { value(of: $0) }
    limit = executed.limit
    chooseFilters(executed)
    var options = PlanOptions(indexes: run.indexes, scratch: run.scratch)
    // A count reads no documents, which nothing could review.
    countsOnly = isCounted && evaluated == nil && plan.lateField == nil && !run.isReviewed
    options.terms = terms
    options.required = executed.required
    options.needsDocuments = !countsOnly
    options.isOrderNeeded = !countsOnly
    let results = try QueryExecution(executed.query, run.snapshot, at: run.version, options)
    if let part, !results.restrict(to: part) { throw PipelineError("The query cannot be divided.") }
    self.results = results
    run.unitsLeft -= Self.openUnits
  }

  /// Chooses the filters to evaluate: those that the query does not check.
  private func chooseFilters(_ executed: SourcePlan.Executed) {
    evaluated = nil
    for filter in filters.reversed() {
      let isChecked =
        executed.checksConditions && filter.isExact && filter.existingFields.allSatisfy(executed.required.contains)
      if !isChecked { evaluated = EvaluatedFilter(filter, evaluated) }
    }
  }

  /// Divides the documents that are left; see ``QueryExecution/parts(_:_:)``.
  func parts(_ countMax: Int, _ run: PipelineRun) throws -> [QueryPart] {
    guard plan.lateField == nil, let results else { return [] }
    return try results.parts(countMax, run.snapshot)
  }

  /// Begins to read the documents without the field of the order, after all others. Returns `false` if they have been
  /// read, or are not wanted.
  private func openLate(_ run: PipelineRun) throws -> Bool {
    guard plan.lateField != nil, !isLate, let results else { return false }
    if let limit, results.returned >= limit { return false }
    isLate = true
    limit = nil
    let executed = try plan.executed(in: run.database, below: try parent(), isLate: true) { value(of: $0) }
    chooseFilters(executed)
    var options = PlanOptions(indexes: run.indexes, scratch: run.scratch)
    options.required = executed.required
    self.results = try QueryExecution(executed.query, run.snapshot, at: run.version, options)
    run.unitsLeft -= Self.openUnits
    return true
  }

  /// The cost of planning a query, in units.
  private static let openUnits = 200
}
