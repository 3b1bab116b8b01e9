import Basics
import DocumentModel
import KeyEncoding
import PipelineExpressions
import QueryEngine
import WireFormat

/// An operator that reads all rows of its input and then returns them in the order of a key. Rows with equal keys keep
/// their order.
///
/// Keys and rows are sorted in scratch memory, the rest in a temporary file. With a limit only the lowest rows are
/// kept.
class SortingOperator: RowOperator {
  let input: RowOperator
  /// The number of lowest rows to keep, or `nil` for all.
  private let keptMax: Int?
  private let current: PipelineRow
  private var scratch: Scratch?
  private var sorter: RowSorter?
  private var sorted: SortedEntries?
  private var isFull = false
  private var slice = 0
  private var emitted = 0
  /// The number of rows so far, the last part of each key.
  private var sequence: UInt64 = 0
  private var key: [UInt8] = []
  private var record: [UInt8] = []

  init(_ stage: PipelineStage, _ input: RowOperator, keptMax: Int?) {
    self.input = input
    self.keptMax = keptMax
    current = PipelineRow(variableCount: input.row.variables.count)
    super.init(stage)
  }

  override var row: PipelineRow { current }
  override var inputs: [RowOperator] { [input] }

  /// Appends the key of the input's row. Returns `false` if the row is left out.
  func appendKey(to key: inout [UInt8]) throws -> Bool { true }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    sorter = nil
    sorted = nil
    isFull = false
    sequence = 0
    emitted = 0
    if let scratch { run.free(scratch) }
    scratch = nil
    super.restart(outer, run)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    if !isFull {
      guard try fill(run) else { return .paused }
      isFull = true
    }
    if slice != run.slice {
      slice = run.slice
      try sorted?.relieve()
    }
    guard run.unitsLeft > 0 else { return .paused }
    // The sorter may keep more rows than the limit.
    guard emitted < keptMax ?? .max, let record = try sorted?.next() else {
      if let scratch { run.free(scratch) }
      scratch = nil
      sorted = nil
      return .end
    }
    emitted += 1
    run.unitsLeft -= 4 + record.count >> 8
    try restore(record)
    return .found
  }

  /// Sorts the rows of the input. Returns `false` if the slice ends first, or if the pipeline must wait.
  private func fill(_ run: PipelineRun) throws -> Bool {
    let scratch = self.scratch ?? run.makeScratch()
    self.scratch = scratch
    var sorter = self.sorter.take() ?? RowSorter(scratch, keptMax: keptMax)
    var hasRoom = try sorter.resume()
    guard hasRoom else {
      self.sorter = sorter
      run.unitsLeft = 0
      run.blocked = scratch.wait
      return false
    }
    let mayContinue = try input.forEach(run) {
      try placed {
        run.unitsLeft -= 8
        key.removeAll(keepingCapacity: true)
        guard try appendKey(to: &key) else { return run.unitsLeft > 0 }
        OrderedCode.append(version: Int64(bitPattern: sequence), to: &key)
        sequence += 1
        guard sorter.mayKeep(key) else { return run.unitsLeft > 0 }
        record.removeAll(keepingCapacity: true)
        record.append(0)
        input.row.appendRecord(to: &record)
        // A client can limit the memory of its pipeline, also that of sorts.
        if run.hasClientLimit { try run.hold(record.count) }
        if record.count > PipelineLimits.sortedRowBytesMax { try writeRecord(scratch) }
        hasRoom = try sorter.add(key, path: record)
        return hasRoom && run.unitsLeft > 0
      }
    }
    if !mayContinue, hasRoom {
      sorted = try sorter.finish()
      return true
    }
    self.sorter = sorter
    guard !hasRoom else { return false }
    run.unitsLeft = 0
    run.blocked = scratch.wait
    return false
  }

  /// Writes the record to the temporary file, and replaces it by its place there.
  private func writeRecord(_ scratch: Scratch) throws(ScratchError) {
    let offset = try record.withRawBytes { (bytes) throws(ScratchError) in try scratch.append(bytes) }
    let count = record.count
    record.removeAll(keepingCapacity: true)
    record.append(1)
    for number in [offset, count] { withUnsafeBytes(of: number) { record.append(contentsOf: $0) } }
  }

  private func restore(_ record: [UInt8]) throws {
    guard record.first == 1 else {
      return record.withUnsafeBytes { current.restore(UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
    }
    let (offset, count) = record.withUnsafeBytes { bytes in
      (bytes.loadUnaligned(fromByteOffset: 1, as: Int.self), bytes.loadUnaligned(fromByteOffset: 9, as: Int.self))
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
    defer { buffer.deallocate() }
    try scratch?.read(at: offset, into: buffer)
    current.restore(UnsafeRawBufferPointer(rebasing: buffer.dropFirst()))
  }
}

/// `sort`.
final class SortOperator: SortingOperator {
  private let terms: [SortTerm]
  private let evaluator: StageEvaluator
  private let isLimited: String

  init(_ stage: PipelineStage, _ input: RowOperator, _ terms: [SortTerm], keptMax: Int?, _ evaluator: StageEvaluator) {
    self.terms = terms
    self.evaluator = evaluator
    isLimited = keptMax.map { ", lowest \($0)" } ?? ""
    super.init(stage, input, keptMax: keptMax)
  }

  override var text: String { "\(name)\(isLimited)" }

  override func appendKey(to key: inout [UInt8]) throws -> Bool {
    evaluator.begin(input.row)
    for term in terms {
      let start = key.count
      let value = try evaluator.value(term.expression)
      // An index that returns rows in this order has values cut at the same place, and whole names.
      let isName = term.field?.isDocumentName == true
      let budget = isName ? PipelineLimits.sortedNameBytesMax : Limits.indexedValueBytesMax
      guard ExpressionWriter.appendSortKey(value, to: &key, budget: budget) else {
        throw PipelineError("A sort key is nested too deeply.")
      }
      if term.isDescending { SortKey.invert(&key, from: start) }
    }
    return true
  }
}

/// `find_nearest`: orders rows by the distance of a vector, nearest first. Rows without a vector of the same dimension
/// are left out.
final class NearestOperator: SortingOperator {
  private let search: NearestSearch
  private let evaluator: StageEvaluator
  private let norm: Double
  /// The field for the distance.
  private let tree: FieldTree?
  private var out: [UInt8] = []

  init(
    _ stage: PipelineStage, _ input: RowOperator, _ search: NearestSearch, tree: FieldTree?,
    _ evaluator: StageEvaluator
  ) {
    self.search = search
    self.evaluator = evaluator
    self.tree = tree
    norm = search.vector.reduce(0) { $0 + $1 * $1 }.squareRoot()
    super.init(stage, input, keptMax: search.limit)
  }

  override func appendKey(to key: inout [UInt8]) throws -> Bool {
    evaluator.begin(input.row)
    let value = try evaluator.value(search.expression)
    guard case .vector = value else { return false }
    out.removeAll(keepingCapacity: true)
    try value.append(to: &out)
    guard let distance = try out.withRawBytes({ (bytes) throws(WireError) in try distance(EncodedValue(bytes)) }) else {
      return false
    }
    _ = OrderedCode.encode(.double(search.measure == .dotProduct ? -distance : distance), into: &key, budget: .max)
    if let tree {
      out.removeAll(keepingCapacity: true)
      try FieldWriter.write(tree.nodes, over: input.row.map, to: &out) { _ in .double(distance) }
      input.row.assign(&out)
    }
    return true
  }

  private func distance(_ value: EncodedValue) throws(WireError) -> Double? {
    guard let vector = try EncodedVector(value), vector.count == search.vector.count else { return nil }
    let outcome: Result<Double, WireError> = search.vector.withUnsafeBufferPointer { wanted in
      do throws(WireError) {
        if search.measure == .euclidean {
          return .success((try vector.squaredDistance(to: wanted, bound: .infinity) ?? .infinity).squareRoot())
        }
        let (dot, squares) = try vector.products(with: wanted)
        return .success(search.measure == .dotProduct ? dot : 1 - dot / (norm * squares.squareRoot()))
      } catch { return .failure(error) }
    }
    return try outcome.get()
  }
}

/// `sample` by count: a number of rows, all equally likely, in random order.
final class SampleOperator: SortingOperator {
  init(_ stage: PipelineStage, _ input: RowOperator, _ count: Int) { super.init(stage, input, keptMax: count) }

  override func appendKey(to key: inout [UInt8]) throws -> Bool {
    withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { key.append(contentsOf: $0) }
    return true
  }
}
