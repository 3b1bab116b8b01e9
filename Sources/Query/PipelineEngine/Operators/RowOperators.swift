import DocumentModel
import PipelineExpressions
import WireFormat

extension RowAssignments {
  /// Replaces a row by the values of the assignments. The evaluator is at the row.
  func replace(_ row: PipelineRow, _ evaluator: StageEvaluator, _ out: inout [UInt8]) throws {
    out.removeAll(keepingCapacity: true)
    try FieldWriter.write(tree.nodes, over: nil, to: &out) { try evaluator.value(expressions[$0]) }
    let metadata = try metadata(evaluator)
    row.dropMetadata()
    row.set(metadata)
    row.assign(&out)
  }

  /// Sets the values of the assignments in a row. The evaluator is at the row.
  func set(_ row: PipelineRow, _ evaluator: StageEvaluator, _ out: inout [UInt8]) throws {
    out.removeAll(keepingCapacity: true)
    try FieldWriter.write(tree.nodes, over: row.map, to: &out) { try evaluator.value(expressions[$0]) }
    row.set(try metadata(evaluator))
    row.assign(&out)
  }

  private func metadata(_ evaluator: StageEvaluator) throws -> RowMetadata {
    var metadata = RowMetadata()
    if let name { try metadata.setName(try evaluator.value(expressions[name])) }
    if let createTime { metadata.createTime = try RowMetadata.time(try evaluator.value(expressions[createTime])) }
    if let updateTime { metadata.updateTime = try RowMetadata.time(try evaluator.value(expressions[updateTime])) }
    return metadata
  }
}

/// New values of the name and the times of a row. The outer optional is whether there is a new value.
struct RowMetadata {
  var name: [UInt8]??
  var createTime: Timestamp??
  var updateTime: Timestamp??

  /// Sets the name to a reference or to absent.
  mutating func setName(_ value: ExpressionValue) throws(PipelineError) {
    switch value {
    case .reference(let text): name = .some([UInt8](text))
    case .absent, .null: name = .some(nil)
    default: throw PipelineError("__name__ must be a reference.")
    }
  }

  static func time(_ value: ExpressionValue) throws(PipelineError) -> Timestamp? {
    switch value {
    case .timestamp(let time): return time
    case .absent, .null: return nil
    default: throw PipelineError("__create_time__ and __update_time__ must be timestamps.")
    }
  }
}

extension PipelineRow {
  func set(_ metadata: RowMetadata) {
    if let name = metadata.name {
      hasName = name != nil
      if let name {
        // The row was not made from the document that it now names.
        if !self.name.bytes.elementsEqual(name) { readVersion = nil }
        self.name.assign(name)
      }
    }
    if let time = metadata.createTime { createTime = time }
    if let time = metadata.updateTime { updateTime = time }
  }
}

/// `where`: keeps rows for which the condition is true.
final class FilterOperator: StreamingOperator {
  private let evaluator: StageEvaluator
  private let condition: Int

  init(_ stage: PipelineStage, _ input: RowOperator, _ condition: Int, _ evaluator: StageEvaluator) {
    self.evaluator = evaluator
    self.condition = condition
    super.init(stage, input)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while true {
      let step = try input.step(run)
      guard case .found = step else { return step }
      evaluator.begin(row)
      if try evaluator.isTrue(condition) { return .found }
      run.unitsLeft -= 4
      guard run.unitsLeft > 0 else { return .paused }
    }
  }

  override func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    try input.forEach(run) {
      try placed {
        evaluator.begin(row)
        if try evaluator.isTrue(condition) { return try body() }
        run.unitsLeft -= 4
        return run.unitsLeft > 0
      }
    }
  }
}

/// `select`, `add_fields`, `remove_fields`, `let` and `replace_with`: change each row.
final class ChangeOperator: StreamingOperator {
  private let operation: PipelineStage.Operation
  private let evaluator: StageEvaluator?
  private var out: [UInt8] = []

  init(_ stage: PipelineStage, _ input: RowOperator, _ evaluator: StageEvaluator?) {
    operation = stage.operation
    self.evaluator = evaluator
    super.init(stage, input)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    let step = try input.step(run)
    guard case .found = step else { return step }
    try change(run)
    return .found
  }

  override func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    try input.forEach(run) {
      try placed {
        try change(run)
        return try body()
      }
    }
  }

  private func change(_ run: PipelineRun) throws {
    run.unitsLeft -= 4 + row.fields.count >> 8
    evaluator?.begin(row)
    switch operation {
    case .select(let assignments): try replace(assignments)
    case .addFields(let assignments), .update(let assignments): try evaluator.map { try assignments.set(row, $0, &out) }
    case .search(let plan): if let evaluator { try plan.added?.set(row, evaluator, &out) }
    case .removeFields(let removals): try remove(removals)
    case .bind(let variables): try bind(variables)
    case .replace(let expression, let mode): try evaluator.map { try replace(try $0.value(expression), mode) }
    default: break
    }
  }

  private func replace(_ assignments: RowAssignments) throws {
    guard let evaluator else { return row.clear() }
    try assignments.replace(row, evaluator, &out)
  }

  private func remove(_ removals: RowRemovals) throws {
    out.removeAll(keepingCapacity: true)
    try FieldWriter.remove(removals.tree.nodes, from: row.map, to: &out)
    if removals.removesName { row.hasName = false }
    if removals.removesCreateTime { row.createTime = nil }
    if removals.removesUpdateTime { row.updateTime = nil }
    row.assign(&out)
  }

  private func bind(_ variables: [(variable: Int, expression: Int)]) throws {
    guard let evaluator else { return }
    for (variable, expression) in variables {
      let value = try evaluator.value(expression)
      if case .absent = value {
        row.set(variable, nil)
        continue
      }
      out.removeAll(keepingCapacity: true)
      try value.append(to: &out)
      out.withUnsafeBytes { row.set(variable, $0) }
    }
  }

  private func replace(_ value: ExpressionValue, _ mode: ReplaceMode) throws {
    var encoded: [UInt8] = []
    var isMap = false
    switch value {
    case .map, .encodedMap:
      try value.append(to: &encoded)
      isMap = true
    case .absent where mode == .full: break
    default: throw PipelineError("The value of the expression is not a map.")
    }
    out.removeAll(keepingCapacity: true)
    var metadata = RowMetadata()
    if isMap {
      try encoded.withUnsafeBytes { bytes in
        guard case .map(let map) = try EncodedValue(bytes).content else { return }
        try FieldWriter.merge(
          map, into: mode == .full ? nil : row.map, overwrites: mode != .keepExisting, to: &out
        ) { key, value in
          let value = ExpressionValue(value)
          switch String(decoding: key, as: UTF8.self) {
          case "__name__": try metadata.setName(value)
          case "__create_time__": metadata.createTime = try RowMetadata.time(value)
          default: metadata.updateTime = try RowMetadata.time(value)
          }
        }
      }
    }
    if mode == .full { row.dropMetadata() }
    row.set(metadata)
    row.assign(&out)
  }
}

/// `limit` and `offset`.
final class CountOperator: StreamingOperator {
  private let skipped: Int
  private let returnedMax: Int
  private var seen = 0

  /// Skips rows, then returns at most `returnedMax`.
  init(_ stage: PipelineStage, _ input: RowOperator, skipped: Int, returnedMax: Int) {
    self.skipped = skipped
    self.returnedMax = returnedMax
    super.init(stage, input)
  }

  override var text: String { returnedMax == .max ? "\(name) \(skipped)" : "\(name) \(returnedMax)" }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    seen = 0
    super.restart(outer, run)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while true {
      if seen - skipped >= returnedMax { return .end }
      let step = try input.step(run)
      guard case .found = step else { return step }
      seen += 1
      if seen > skipped { return .found }
    }
  }

  override func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    if seen - skipped >= returnedMax { return false }
    let mayContinue = try input.forEach(run) {
      seen += 1
      guard seen > skipped else { return true }
      return try body() && seen - skipped < returnedMax
    }
    return mayContinue && seen - skipped < returnedMax
  }
}

/// `sample` by percent: keeps each row with the same probability.
final class PartOperator: StreamingOperator {
  private let part: Double

  init(_ stage: PipelineStage, _ input: RowOperator, _ part: Double) {
    self.part = part
    super.init(stage, input)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while true {
      let step = try input.step(run)
      guard case .found = step else { return step }
      if Double.random(in: 0..<1) < part { return .found }
      run.unitsLeft -= 1
      guard run.unitsLeft > 0 else { return .paused }
    }
  }

  override func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    try input.forEach(run) {
      if Double.random(in: 0..<1) < part { return try body() }
      run.unitsLeft -= 1
      return run.unitsLeft > 0
    }
  }
}

/// `unnest`: a copy of the row for each element of an array.
final class UnnestOperator: StreamingOperator {
  private let expression: Int
  private let evaluator: StageEvaluator
  /// The alias, then the field of the index.
  private let tree: FieldTree
  private let hasIndex: Bool
  private let current: PipelineRow
  /// The value of the expression for the input's row, and the rest of its elements.
  private let value = RowBuffer()
  private var elements: EncodedArray.Iterator?
  private var index: Int64 = 0
  private var out: [UInt8] = []

  init(
    _ stage: PipelineStage, _ input: RowOperator, _ expression: Int, _ tree: FieldTree, hasIndex: Bool,
    _ evaluator: StageEvaluator
  ) {
    self.expression = expression
    self.tree = tree
    self.hasIndex = hasIndex
    self.evaluator = evaluator
    current = PipelineRow(variableCount: input.row.variables.count)
    super.init(stage, input)
  }

  override var row: PipelineRow { current }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    elements = nil
    super.restart(outer, run)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while true {
      guard run.unitsLeft > 0 else { return .paused }
      if let element = try elements?.next() {
        run.unitsLeft -= 4 + current.fields.count >> 8
        try set(ExpressionValue(element), .integer(index))
        index += 1
        return .found
      }
      let step = try input.step(run)
      guard case .found = step else { return step }
      current.copyMetadata(of: input.row)
      current.copyVariables(of: input.row, input.row.variables.count)
      evaluator.begin(input.row)
      guard try open(evaluator.value(expression)) else {
        // Other values than arrays are not unnested.
        elements = nil
        try set(nil, .null)
        return .found
      }
    }
  }

  /// Keeps the elements if the value is an array.
  private func open(_ array: ExpressionValue) throws -> Bool {
    switch array {
    case .array, .encodedArray: break
    default: return false
    }
    out.removeAll(keepingCapacity: true)
    try array.append(to: &out)
    value.assign(out)
    guard case .array(let encoded) = try EncodedValue(value.bytes).content else { return false }
    elements = encoded.makeIterator()
    index = 0
    return true
  }

  private func set(_ element: ExpressionValue?, _ index: ExpressionValue) throws {
    out.removeAll(keepingCapacity: true)
    if element == nil, !hasIndex {
      out.append(raw: input.row.fields)
      return current.assign(&out)
    }
    try FieldWriter.write(element == nil ? indexOnly.nodes : tree.nodes, over: input.row.map, to: &out) { number in
      number == 0 ? element ?? index : index
    }
    current.assign(&out)
  }

  /// The field of the index as number 0.
  var indexOnly = FieldTree()
}

/// `union`: the rows of one pipeline after those of another.
final class UnionOperator: RowOperator {
  private let first: RowOperator
  private let second: RowOperator
  private var isSecond = false

  init(_ stage: PipelineStage, _ first: RowOperator, _ second: RowOperator) {
    self.first = first
    self.second = second
    super.init(stage)
  }

  override var inputs: [RowOperator] { [first, second] }
  override var row: PipelineRow { isSecond ? second.row : first.row }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    isSecond = false
    super.restart(outer, run)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    if !isSecond {
      let step = try first.step(run)
      guard case .end = step else { return step }
      isSecond = true
    }
    return try second.step(run)
  }
}
