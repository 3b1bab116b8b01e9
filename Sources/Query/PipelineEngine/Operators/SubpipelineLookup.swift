import DocumentModel
import PipelineExpressions
import QueryEngine
import WireFormat

/// The groups of a nested pipeline for all rows of the enclosing pipeline at once (``LookupPlan``).
///
/// How many rows will come is not known, so both ways are tried together: the nested pipeline runs for each row, and
/// after some rows every run pays for a part of the groups. When these are complete, each further row costs one lookup.
/// So the work is at most about twice that of the better way. If the groups do not fit in memory, also beside what other
/// operators hold later, or if they fail, the nested pipeline runs for every row.
final class SubpipelineLookup {
  private enum State {
    case building
    case complete
    case abandoned
  }

  private let plan: LookupPlan
  /// The last operator of the pipeline that groups.
  let aggregate: AggregateOperator
  private var state = State.building
  /// Whether the groups are being changed.
  private var isCollecting = false
  private var runs = 0
  /// The work of the runs, and the work for the groups, in units.
  private var spent = 0
  private var built = 0
  private let row: PipelineRow
  private let keyTree: FieldTree
  private var key: [UInt8] = []
  private var out: [UInt8] = []

  init(_ plan: LookupPlan, _ aggregate: AggregateOperator) throws(PipelineError) {
    self.plan = plan
    self.aggregate = aggregate
    aggregate.staysInMemory = true
    row = PipelineRow(variableCount: 0)
    keyTree = try FieldTree([FieldPath(field: LookupPlan.keyName)])
  }

  var isComplete: Bool { state == .complete }

  /// A scan does this many units in the time in which a run, with its lookups at many places, does one.
  private static let scanFactor = 4
  /// The work of a run beside what it reads, in units.
  private static let runUnits = 200

  /// Notes a run of the nested pipeline, and does a part of the work for the groups.
  func pay(_ work: Int, _ run: PipelineRun) throws {
    guard state == .building else { return }
    runs += 1
    spent += work + Self.runUnits
    let unitsLeft = run.unitsLeft
    let allowed = min(Self.scanFactor * spent - built, unitsLeft)
    guard runs >= PipelineLimits.runsBeforeGroups, allowed > 0 else { return }
    run.unitsLeft = allowed
    isCollecting = true
    defer {
      isCollecting = false
      built += allowed - run.unitsLeft
      run.unitsLeft = unitsLeft - (allowed - run.unitsLeft)
      run.blocked = nil
    }
    do {
      if try aggregate.collect(run) { state = .complete }
    } catch is PipelineError {
      isCollecting = false
      drop(run)
    }
  }

  /// Drops the groups, unless they are being changed. From then on the nested pipeline runs for every row.
  func drop(_ run: PipelineRun) {
    guard !isCollecting, state != .abandoned else { return }
    aggregate.drop(run)
    state = .abandoned
  }

  /// Returns the only row of the nested pipeline for a row of the enclosing one, or `nil` if the nested pipeline must
  /// run. The result is valid until the next call.
  func result(for outer: PipelineRow) throws -> PipelineRow? {
    guard state == .complete, let bytes = outer.value(of: plan.variable) else { return nil }
    let value = ExpressionValue(EncodedValue(bytes))
    switch value {
    case .boolean, .integer, .timestamp, .string, .bytes, .reference, .geoPoint: break
    case .double(let number) where !number.isNaN: break
    // Null equals nothing, and values with parts may contain null.
    default: return nil
    }
    key.removeAll(keepingCapacity: true)
    guard ExpressionWriter.appendGroupKey(value, to: &key), try aggregate.move(to: key) else { return nil }
    out.removeAll(keepingCapacity: true)
    try FieldWriter.remove(keyTree.nodes, from: aggregate.row.map, to: &out)
    row.assign(&out)
    return row
  }
}
