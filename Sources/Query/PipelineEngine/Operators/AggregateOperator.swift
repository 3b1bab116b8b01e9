import Basics
import DocumentModel
import PipelineExpressions
import QueryEngine
import WireFormat

/// `aggregate` and `distinct`: groups the rows of the input by equal keys.
///
/// The groups are in memory, in the order of their first rows. If they become too many, they are written to a temporary
/// file, in the order of their keys, and the rest of the input begins new groups. At the end the parts of each group
/// are merged. Without group expressions there is one group, also over no rows.
final class AggregateOperator: RowOperator {
  private let input: RowOperator
  private let grouping: RowGrouping
  /// The expressions of the groups and the accumulators, at addresses of this operator: several threads that run the
  /// same plan would count the references to its arrays for each row.
  private let keyExpressions: UnsafeMutableBufferPointer<Int>
  private let accumulators: UnsafeMutableBufferPointer<GroupAccumulator>
  private let functions: [AccumulatorFunction]
  private let evaluator: StageEvaluator?
  private let outerCount: Int
  private let current: PipelineRow
  private var table: GroupTable
  private var next = 0
  private var isFull = false
  private var isInputAtEnd = false
  /// The memory of ``table``, then that of ``merged``, as far as it is counted.
  private var held = 0
  private var key: [UInt8] = []
  private var values: [UInt8] = []
  private var out: [UInt8] = []

  /// The memory of the accumulators of a new group.
  private let stateBytes: Int

  // Groups in the temporary file.
  private var scratch: Scratch?
  private var spilled: [Range<Int>] = []
  private var sorted: SortedEntries?
  private var merged: GroupTable.Part?
  /// Whether the groups in memory are to be written before the next row is added, and how many have been.
  private var wantsSpill = false
  private var spilledCount = 0
  /// The groups that are sorted and written in one step, which must not take long.
  private static let spilledAtOnce = 4096

  // A scan that other threads help with.
  /// The stages that the threads divide; `nil` if they cannot, or have begun to.
  var division: ScanDivision?
  private var sharedScan: (scan: SharedScan, division: ScanDivision, template: RunTemplate)?
  /// The share that this thread reads.
  private var ownShare: (number: SharedScan.Share, reading: ScanShare)?
  /// The groups of the shares, in name order, and the number of groups of the first one that have been merged.
  private var shares: [SharedScanResult] = []
  private var mergedCount = 0
  private var helpers = 0

  init(
    _ stage: PipelineStage, _ input: RowOperator, _ grouping: RowGrouping, _ evaluator: StageEvaluator?,
    outerCount: Int
  ) {
    self.input = input
    self.grouping = grouping
    self.evaluator = evaluator
    self.outerCount = outerCount
    keyExpressions = .allocate(capacity: grouping.groups.count)
    _ = keyExpressions.initialize(from: grouping.groups)
    accumulators = .allocate(capacity: grouping.accumulators.count)
    _ = accumulators.initialize(from: grouping.accumulators)
    functions = grouping.accumulators.map(\.function)
    stateBytes = functions.reduce(0) { sum, function in
      let state = Accumulator(function)
      return sum + GroupTable.accumulatorBytes + (state.isVariable ? state.bytes : 0)
    }
    current = PipelineRow(variableCount: input.row.variables.count)
    table = GroupTable(functions)
    super.init(stage)
  }

  deinit {
    sharedScan?.scan.cancel()
    keyExpressions.deallocate()
    accumulators.deallocate()
  }

  override var row: PipelineRow { current }
  override var inputs: [RowOperator] { [input] }
  override var text: String {
    name + (helpers == 0 ? "" : ", on \(helpers + 1) threads")
      + (spilled.isEmpty ? "" : ", \(spilled.count) parts in a temporary file")
  }

  /// Whether the result is only the number of rows.
  var onlyCounts: Bool {
    grouping.groups.isEmpty && grouping.accumulators.allSatisfy { $0.function == .count && $0.argument == nil }
  }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    current.copyVariables(of: outer, outerCount)
    clear(run)
    spilled = []
    (isFull, isInputAtEnd) = (false, false)
    super.restart(outer, run)
  }

  private func clear(_ run: PipelineRun) {
    if table.count > 0 { table = GroupTable(functions) }
    next = 0
    run.release(held)
    held = 0
    sorted = nil
    merged = nil
    (wantsSpill, spilledCount) = (false, 0)
    if let scratch { run.free(scratch) }
    scratch = nil
    sharedScan?.scan.cancel()
    (sharedScan, ownShare, shares, mergedCount) = (nil, nil, [], 0)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    if !isFull {
      guard try fill(run) else { return .paused }
      if grouping.groups.isEmpty, table.count == 0, spilled.isEmpty { addGroup() }
      if !spilled.isEmpty, try !spill(run) { return .paused }
      isFull = true
    }
    guard run.unitsLeft > 0 else { return .paused }
    if !spilled.isEmpty { return try nextMerged(run) }
    guard next < table.count else {
      clear(run)
      return .end
    }
    try emit(table.values(next), table.accumulators(next))
    next += 1
    run.unitsLeft -= 8
    return .found
  }

  /// Adds the rows of the input. Returns `false` if the slice ends first.
  private func fill(_ run: PipelineRun) throws -> Bool {
    if onlyCounts, let counted = try input.count(run) {
      if table.count == 0 { addGroup() }
      for index in functions.indices { table.accumulators(0)[index].addRows(counted.rows) }
      return !counted.mayContinue
    }
    while true {
      if wantsSpill, try !spill(run) { return false }
      if let sharedScan, try !readShare(of: sharedScan.scan, sharedScan.division, sharedScan.template, run) {
        return false
      }
      if !shares.isEmpty {
        guard try merge(run) else { return false }
        continue
      }
      if isInputAtEnd { return true }
      isInputAtEnd = try !input.forEach(run) {
        try placed {
          run.unitsLeft -= 8
          try add(run)
          return run.unitsLeft > 0 && !wantsSpill
        }
      }
      if !isInputAtEnd, !wantsSpill {
        if division != nil { try divide(run) }
        return false
      }
    }
  }

  // MARK: Shared scans

  /// The source of the rows, if it is a query.
  var source: QueryOperator? {
    var next: RowOperator? = input
    while let current = next {
      if let source = current as? QueryOperator { return source }
      next = current.inputs.first
    }
    return nil
  }

  /// Makes the operator continue with another part of its source.
  func continueInput(_ outer: PipelineRow, _ run: PipelineRun) {
    isInputAtEnd = false
    input.restart(outer, run)
  }

  /// Lets other threads read a part of the input if it is large.
  private func divide(_ run: PipelineRun) throws {
    guard run.work.documents >= run.documentsBeforeDivision, let division else { return }
    self.division = nil
    guard spilled.isEmpty, table.count <= ScanDivision.groupsMax, let template = run.template,
      let parts = try source?.parts(ScanDivision.partsMax, run), parts.count > 1
    else { return }
    let scan = SharedScan(parts)
    helpers = division.help(scan, template)
    if helpers > 0 { sharedScan = (scan, division, template) }
  }

  /// Reads a share of the input. Returns `false` if the slice ends first, and `true` after all shares. If a share
  /// failed, the operator continues to read the input itself, as if it had not been divided.
  private func readShare(
    of scan: SharedScan, _ division: ScanDivision, _ template: RunTemplate, _ run: PipelineRun
  ) throws -> Bool {
    if let results = scan.results() {
      (shares, isInputAtEnd, sharedScan) = (results, true, nil)
      return true
    }
    if scan.hasFailed {
      (ownShare, sharedScan, helpers) = (nil, nil, 0)
      return true
    }
    let units = run.unitsLeft
    run.unitsLeft = 0
    if ownShare == nil, let number = scan.begin() {
      do {
        ownShare = (number, try ScanShare(number, of: scan, division, template.run(run.snapshot)))
      } catch { scan.end(number, nil) }
    }
    guard let ownShare else {
      run.blocked = { scan.wait($0) }
      return false
    }
    do {
      guard let result = try ownShare.reading.slice(run.snapshot, units: units) else { return false }
      scan.end(ownShare.number, result)
    } catch { scan.end(ownShare.number, nil) }
    self.ownShare = nil
    return false
  }

  /// Adds the groups of the shares. Returns `false` if the slice ends first.
  private func merge(_ run: PipelineRun) throws -> Bool {
    while let share = shares.first {
      let other = share.aggregate.table
      while mergedCount < other.count {
        if wantsSpill, try !spill(run) { return false }
        guard run.unitsLeft > 0 else { return false }
        let bytes = table.merge(mergedCount, of: other)
        mergedCount += 1
        run.unitsLeft -= 8
        if bytes != 0 { try hold(bytes, run) }
      }
      noteRows(of: share, run)
      share.run.finish()
      shares.removeFirst()
      mergedCount = 0
    }
    return true
  }

  /// Counts the rows and the work of a share, for explanations and for the counters of the database.
  private func noteRows(of share: SharedScanResult, _ run: PipelineRun) {
    run.work.documents += share.run.work.documents
    run.work.entries += share.run.work.entries
    var (own, other): (RowOperator?, RowOperator?) = (input, share.aggregate.input)
    while let current = own, let read = other {
      current.noteCounted(read.rows)
      (own, other) = (current.inputs.first, read.inputs.first)
    }
  }

  // MARK: Groups

  private func add(_ run: PipelineRun) throws {
    evaluator?.begin(input.row)
    let states = table.accumulators(try group(run))
    var change = 0
    for index in 0..<accumulators.count {
      let accumulator = accumulators[index]
      guard let argument = accumulator.argument, let evaluator else {
        states[index].addRow()
        continue
      }
      // An error of the condition is not counted. All others fail the pipeline.
      let value =
        accumulator.function == .countIf
        ? ExpressionValue.boolean(try evaluator.isTrue(argument)) : try evaluator.value(argument)
      let isVariable = accumulator.function.keepsValues
      if isVariable { change -= states[index].bytes }
      guard states[index].add(value) else {
        throw PipelineError("A value of function '\(accumulator.function.rawValue)' is nested too deeply.")
      }
      if isVariable { change += states[index].bytes }
    }
    if change != 0 { try hold(change, run) }
  }

  /// Returns the group of the input's row. Adds the group if the row is its first.
  private func group(_ run: PipelineRun) throws -> Int {
    guard let evaluator, !keyExpressions.isEmpty else {
      if table.count == 0 { addGroup() }
      return 0
    }
    key.removeAll(keepingCapacity: true)
    for expression in keyExpressions {
      guard ExpressionWriter.appendGroupKey(try evaluator.value(expression), to: &key) else {
        throw PipelineError("A group key is nested too deeply.")
      }
    }
    if let group = table.find(key) { return group }
    values.removeAll(keepingCapacity: true)
    for expression in grouping.groups {
      let start = values.count
      values.append(contentsOf: [0, 0, 0, 0])
      let value = try evaluator.value(expression)
      if case .absent = value { continue }
      try value.append(to: &values)
      let count = UInt32(values.count - start - 4)
      values.withUnsafeMutableBytes { $0.storeBytes(of: count, toByteOffset: start, as: UInt32.self) }
    }
    try hold(key.count + values.count + GroupTable.groupBytes + stateBytes, run)
    return table.add(key, values: values)
  }

  private func addGroup() { _ = table.add([], values: []) }

  /// Counts memory of the table. If it is too much, the groups are written to the temporary file before the next row.
  private func hold(_ bytes: Int, _ run: PipelineRun) throws {
    if bytes > 0, !run.hasClientLimit, !staysInMemory {
      guard held + bytes <= run.groupBytesMax, run.holdIfPossible(bytes) else { return wantsSpill = true }
    } else {
      if staysInMemory, held + bytes > run.groupBytesMax {
        throw PipelineError("The groups do not fit in memory.", .resourceExhausted)
      }
      try run.hold(bytes)
    }
    held += bytes
  }

  // MARK: Lookups

  /// Whether the pipeline fails if the groups do not fit in memory.
  var staysInMemory = false

  /// Adds the rows of the input. Returns `false` if the slice ends first.
  func collect(_ run: PipelineRun) throws -> Bool { try fill(run) }

  /// Moves to the group with a key. Returns `false` if no group has it.
  func move(to key: [UInt8]) throws -> Bool {
    guard let group = table.find(key) else { return false }
    try emit(table.values(group), table.accumulators(group))
    return true
  }

  /// Drops all groups.
  func drop(_ run: PipelineRun) { clear(run) }

  // MARK: Temporary files

  /// Writes groups of the table, and ends the table after the last one. Returns `false` if groups are left for the next
  /// slice.
  private func spill(_ run: PipelineRun) throws -> Bool {
    let scratch = self.scratch ?? run.makeScratch()
    self.scratch = scratch
    while spilledCount < table.count {
      guard run.unitsLeft > 0 else { return false }
      let numbers = spilledCount..<min(spilledCount + Self.spilledAtOnce, table.count)
      spilled.append(try table.write(numbers, to: scratch, sequence: spilled.count))
      spilledCount = numbers.upperBound
      run.unitsLeft -= 8 * numbers.count
    }
    table = GroupTable(functions)
    (wantsSpill, spilledCount) = (false, 0)
    run.release(held)
    held = 0
    return true
  }

  private func nextMerged(_ run: PipelineRun) throws -> RowStep {
    guard let scratch else { return .end }
    if sorted == nil {
      guard let windows = try scratch.allocate(scratch.limits.chunkBytes) else {
        run.unitsLeft = 0
        run.blocked = scratch.wait
        return .paused
      }
      sorted = try SortedEntries(scratch, spilled, windows: windows)
    }
    while run.unitsLeft > 0 {
      guard let record = try sorted?.next() else {
        guard let last = merged.take() else {
          clear(run)
          return .end
        }
        try emit(last, run)
        return .found
      }
      run.unitsLeft -= 8 + record.count >> 6
      let part = try GroupTable.Part(record, functions)
      if merged?.key == part.key {
        let change = merged?.merge(part) ?? 0
        held += change
        try run.hold(change)
        continue
      }
      let done = merged.take()
      if let done { try emit(done, run) }
      merged = part
      held += part.bytes
      try run.hold(part.bytes)
      if done != nil { return .found }
    }
    return .paused
  }

  private func emit(_ part: GroupTable.Part, _ run: PipelineRun) throws {
    run.release(part.bytes)
    held -= part.bytes
    try part.values.withUnsafeBytes { values in
      try part.accumulators.withUnsafeBufferPointer { accumulators in try emit(values, accumulators.baseAddress) }
    }
  }

  // MARK: Results

  /// Makes the row of a group.
  private func emit(_ values: UnsafeRawBufferPointer, _ accumulators: UnsafePointer<Accumulator>?) throws {
    out.removeAll(keepingCapacity: true)
    let groups = grouping.groups.count
    var results: [UInt8] = []
    var ranges: [Range<Int>] = []
    var start = 0
    for _ in 0..<groups {
      let count = Int(values.loadUnaligned(fromByteOffset: start, as: UInt32.self))
      ranges.append(start + 4..<start + 4 + count)
      start += 4 + count
    }
    for index in functions.indices {
      let start = results.count
      accumulators?[index].appendResult(to: &results)
      ranges.append(start..<results.count)
    }
    try results.withUnsafeBytes { results in
      try FieldWriter.write(grouping.tree.nodes, over: nil, to: &out) { leaf in
        let bytes = UnsafeRawBufferPointer(rebasing: (leaf < groups ? values : results)[ranges[leaf]])
        return bytes.isEmpty ? .absent : ExpressionValue(EncodedValue(bytes))
      }
    }
    current.dropMetadata()
    current.assign(&out)
  }

  private func emit(_ values: UnsafeRawBufferPointer, _ accumulators: UnsafeMutablePointer<Accumulator>) throws {
    try emit(values, UnsafePointer(accumulators))
  }
}
