import DocumentModel
import DocumentStore
import PipelineExpressions
import QueryEngine
import WireFormat

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
      current.readVersion = found.updateVersion
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
