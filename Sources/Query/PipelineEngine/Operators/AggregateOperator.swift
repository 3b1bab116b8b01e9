import DocumentModel
import PipelineExpressions
import WireFormat

/// `aggregate` and `distinct`: groups the rows of the input by equal keys.
///
/// The groups are in memory, in the order of their first rows. Without group expressions there is one group, also over
/// no rows.
final class AggregateOperator: RowOperator {
  private let input: RowOperator
  private let grouping: RowGrouping
  private let evaluator: StageEvaluator?
  private let outerCount: Int
  private let current: PipelineRow
  private var places: [[UInt8]: Int] = [:]
  /// The values of the group expressions of all groups, in ``values``; empty if absent.
  private var keys: [Range<Int>] = []
  private var values: [UInt8] = []
  private var accumulators: [Accumulator] = []
  private var count = 0
  private var next = 0
  private var isFull = false
  private var held = 0
  private var key: [UInt8] = []
  private var out: [UInt8] = []

  init(
    _ stage: PipelineStage, _ input: RowOperator, _ grouping: RowGrouping, _ evaluator: StageEvaluator?,
    outerCount: Int
  ) {
    self.input = input
    self.grouping = grouping
    self.evaluator = evaluator
    self.outerCount = outerCount
    current = PipelineRow(variableCount: input.row.variables.count)
    super.init(stage)
  }

  override var row: PipelineRow { current }
  override var inputs: [RowOperator] { [input] }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    current.copyVariables(of: outer, outerCount)
    clear(run)
    isFull = false
    super.restart(outer, run)
  }

  private func clear(_ run: PipelineRun) {
    places = [:]
    keys = []
    values = []
    accumulators = []
    count = 0
    next = 0
    run.release(held)
    held = 0
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while !isFull {
      switch try input.step(run) {
      case .paused: return .paused
      case .end:
        isFull = true
        if grouping.groups.isEmpty, count == 0 { addGroup() }
      case .found:
        run.unitsLeft -= 8
        try add(run)
      }
    }
    guard run.unitsLeft > 0 else { return .paused }
    guard next < count else {
      clear(run)
      return .end
    }
    try emit(next)
    next += 1
    run.unitsLeft -= 8
    return .found
  }

  // MARK: Groups

  private func add(_ run: PipelineRun) throws {
    evaluator?.begin(input.row)
    let group = try group(run)
    let first = group * grouping.accumulators.count
    for (index, accumulator) in grouping.accumulators.enumerated() {
      guard let argument = accumulator.argument, let evaluator else {
        accumulators[first + index].addRow()
        continue
      }
      let before = accumulators[first + index].bytes
      // An error of the condition is not counted. All others fail the pipeline.
      let value =
        accumulator.function == .countIf
        ? ExpressionValue.boolean(try evaluator.isTrue(argument)) : try evaluator.value(argument)
      guard accumulators[first + index].add(value) else {
        throw PipelineError("A value of function '\(accumulator.function.rawValue)' is nested too deeply.")
      }
      let change = accumulators[first + index].bytes - before
      if change != 0 {
        held += change
        try run.hold(change)
      }
    }
  }

  /// Returns the group of the input's row. Adds the group if the row is its first.
  private func group(_ run: PipelineRun) throws -> Int {
    guard let evaluator, !grouping.groups.isEmpty else {
      if count == 0 { addGroup() }
      return 0
    }
    key.removeAll(keepingCapacity: true)
    for expression in grouping.groups {
      guard ExpressionWriter.appendGroupKey(try evaluator.value(expression), to: &key) else {
        throw PipelineError("A group key is nested too deeply.")
      }
    }
    if let place = places[key] { return place }
    places[key] = count
    let before = values.count
    for expression in grouping.groups {
      let start = values.count
      let value = try evaluator.value(expression)
      if case .absent = value {} else { try value.append(to: &values) }
      keys.append(start..<values.count)
    }
    let bytes = values.count - before + key.count + Self.groupBytes * (1 + grouping.accumulators.count)
    held += bytes
    try run.hold(bytes)
    addGroup()
    return count - 1
  }

  /// The memory of a group beside its key and values, and of an accumulator.
  private static let groupBytes = 256

  private func addGroup() {
    for accumulator in grouping.accumulators { accumulators.append(Accumulator(accumulator.function)) }
    count += 1
  }

  private func emit(_ group: Int) throws {
    out.removeAll(keepingCapacity: true)
    let groups = grouping.groups.count
    var results: [UInt8] = []
    var ranges: [Range<Int>] = []
    for index in grouping.accumulators.indices {
      let start = results.count
      accumulators[group * grouping.accumulators.count + index].appendResult(to: &results)
      ranges.append(start..<results.count)
    }
    try values.withUnsafeBytes { values in
      try results.withUnsafeBytes { results in
        try FieldWriter.write(grouping.tree.nodes, over: nil, to: &out) { leaf in
          let bytes =
            leaf < groups
            ? UnsafeRawBufferPointer(rebasing: values[keys[group * groups + leaf]])
            : UnsafeRawBufferPointer(rebasing: results[ranges[leaf - groups]])
          return bytes.isEmpty ? .absent : ExpressionValue(EncodedValue(bytes))
        }
      }
    }
    current.dropMetadata()
    current.assign(&out)
  }
}
