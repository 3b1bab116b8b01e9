import DocumentModel
import QueryEngine
import WireFormat

/// Runs the nested pipelines of a stage for each row, before the stage, and sets their values as variables of the row.
///
/// A nested pipeline that does not depend on the row runs once.
final class SubpipelineOperator: StreamingOperator {
  /// A nested pipeline and its value for the current row.
  private final class Part {
    let plan: Subpipeline
    let root: RowOperator
    let lookup: SubpipelineLookup?
    /// The documents and entries that had been read when the run began, in units.
    var workBefore = 0
    /// Whether the value is complete.
    var isDone = false
    var isStarted = false
    var count = 0
    /// The encoded value. While it is collected: the elements, each a Value message with its tag.
    var bytes: [UInt8] = []
    /// The bytes counted by the run.
    var held = 0

    init(_ plan: Subpipeline, _ root: RowOperator, _ lookup: SubpipelineLookup?) {
      self.plan = plan
      self.root = root
      self.lookup = lookup
    }
  }

  private let parts: [Part]
  /// Whether the input is at a row whose nested pipelines are not complete.
  private var isAtRow = false

  init(_ stage: PipelineStage, _ input: RowOperator, _ roots: [(RowOperator, SubpipelineLookup?)]) {
    parts = zip(stage.subpipelines, roots).map { Part($0, $1.0, $1.1) }
    super.init(stage, input)
  }

  override var inputs: [RowOperator] { [input] + parts.map(\.root) + lookups.map(\.aggregate) }
  override var text: String {
    "nested pipelines of \(name)" + (lookups.isEmpty ? "" : ", then \(lookups.count) by groups of all documents")
  }

  /// The lookups in use.
  private var lookups: [SubpipelineLookup] { parts.compactMap(\.lookup).filter(\.isComplete) }

  override func restart(_ outer: PipelineRow, _ run: PipelineRun) {
    isAtRow = false
    // The value of a pipeline that depends on no variable never changes, nor do the groups of a lookup.
    for part in parts where part.plan.isCorrelated { (part.isDone, part.isStarted) = (false, false) }
    input.restart(outer, run)
  }

  override func next(_ run: PipelineRun) throws -> RowStep {
    if !isAtRow {
      let step = try input.step(run)
      guard case .found = step else { return step }
      isAtRow = true
      for part in parts where part.plan.isCorrelated { (part.isDone, part.isStarted) = (false, false) }
    }
    for part in parts {
      if !part.isDone {
        do {
          guard try collect(part, run) else { return .paused }
        } catch let error as PipelineError where error.isPlaced { throw error.inside(number, name) }
      }
      run.unitsLeft -= part.bytes.count >> 8
      part.bytes.withUnsafeBytes { row.set(part.plan.variable, $0) }
    }
    isAtRow = false
    return .found
  }

  /// Collects the rows of a nested pipeline. Returns `false` if the slice ends first.
  private func collect(_ part: Part, _ run: PipelineRun) throws -> Bool {
    if !part.isStarted {
      run.release(part.held)
      part.held = 0
      part.isStarted = true
      part.count = 0
      part.bytes.removeAll(keepingCapacity: true)
      if let result = try part.lookup?.result(for: row) {
        try append(result, to: part, run)
        run.unitsLeft -= 16
        finish(part)
        return true
      }
      part.workBefore = Self.work(run)
      part.root.restart(row, run)
    }
    loop: while true {
      switch try part.root.step(run) {
      case .paused: return false
      case .end: break loop
      case .found:
        try append(part.root.row, to: part, run)
        run.unitsLeft -= 4
      }
    }
    finish(part)
    try part.lookup?.pay(Self.work(run) - part.workBefore, run)
    return true
  }

  private static func work(_ run: PipelineRun) -> Int { 8 * run.work.documents + run.work.entries }

  private func append(_ row: PipelineRow, to part: Part, _ run: PipelineRun) throws {
    part.count += 1
    if part.plan.isScalar, part.count > 1 { throw PipelineError("Subpipeline returned multiple results.") }
    let before = part.bytes.count
    if part.plan.isScalar {
      try row.appendValue(isBare: part.plan.hasOneField, to: &part.bytes)
    } else {
      let start = ProtobufWriter.beginMessage(1, to: &part.bytes)
      try row.appendValue(isBare: part.plan.hasOneField, to: &part.bytes)
      ProtobufWriter.endMessage(start, in: &part.bytes)
    }
    part.held += part.bytes.count - before
    try run.hold(part.bytes.count - before)
  }

  /// Completes the value.
  private func finish(_ part: Part) {
    if part.plan.isScalar {
      if part.count == 0 { ValueCodec.append(.null, to: &part.bytes) }
    } else {
      let elements = part.bytes
      part.bytes.removeAll(keepingCapacity: true)
      elements.withUnsafeBytes { ProtobufWriter.bytes(9, $0, to: &part.bytes) }
    }
    part.isDone = true
  }
}

extension PipelineRow {
  /// Appends the row as the value of a nested pipeline: a map, or if its rows have one field, the value of that, which
  /// is null if absent (pipelines.md, section 3.16).
  func appendValue(isBare: Bool, to out: inout [UInt8]) throws {
    if isBare {
      var iterator = map.makeIterator()
      guard let (_, value) = try iterator.next() else { return ValueCodec.append(.null, to: &out) }
      return out.append(raw: value.bytes)
    }
    let start = ProtobufWriter.beginMessage(6, to: &out)
    var entries = map.makeIterator()
    var from = entries.position
    while try entries.next() != nil {
      out.append(FieldWriter.mapTag)
      out.append(raw: UnsafeRawBufferPointer(rebasing: fields[(from + 1)..<entries.position]))
      from = entries.position
    }
    ProtobufWriter.endMessage(start, in: &out)
  }
}
