import Basics
import KeyValue
import QueryEngine
import Synchronization

/// The parts of a large scan, which several threads divide among themselves.
///
/// A thread reads a share: consecutive parts, in name order, into groups of its own. A thread without a share takes over
/// the second half of the parts that another one has not begun. So all threads end at about the same time, however the
/// documents are spread over the parts, and there are few shares to merge.
final class SharedScan: Sendable {
  /// The number of a share.
  typealias Share = Int

  private struct State {
    /// The parts of each share that nobody has begun.
    var shares: [Range<Int>]
    /// The first part of each share, which gives the order of the shares.
    var starts: [Int]
    /// The groups of the shares that are complete.
    var results: [(start: Int, result: SharedScanResult)] = []
    /// The shares that threads read.
    var running = 0
    var hasFailed = false
    var isCancelled = false
    var wake: (@Sendable () -> Void)?
  }

  private let parts: [QueryPart]
  private let state: Mutex<State>

  init(_ parts: [QueryPart]) {
    self.parts = parts
    state = Mutex(State(shares: [parts.indices], starts: [0]))
  }

  /// Begins a share for the calling thread. Returns `nil` if no parts are left, or the scan has ended.
  func begin() -> Share? {
    state.withLock { state in
      guard !state.hasFailed, !state.isCancelled else { return nil }
      guard let victim = state.shares.indices.max(by: { state.shares[$0].count < state.shares[$1].count }),
        !state.shares[victim].isEmpty
      else { return nil }
      state.running += 1
      let left = state.shares[victim]
      // The first share belongs to nobody at first.
      if state.running == 1, left == parts.indices { return victim }
      let middle = left.lowerBound + left.count / 2
      state.shares[victim] = left.lowerBound..<middle
      state.shares.append(middle..<left.upperBound)
      state.starts.append(middle)
      return state.shares.count - 1
    }
  }

  /// Returns the next part of a share, or `nil` at its end.
  func next(_ share: Share) -> QueryPart? {
    state.withLock { state in
      state.shares[share].isEmpty ? nil : parts[state.shares[share].removeFirst()]
    }
  }

  /// Ends a share with its groups, or without if it failed.
  func end(_ share: Share, _ result: SharedScanResult?) {
    let wake = state.withLock { state in
      state.running -= 1
      if let result { state.results.append((state.starts[share], result)) } else { state.hasFailed = true }
      return state.running == 0 || state.hasFailed ? state.wake.take() : nil
    }
    wake?()
  }

  /// Ends the scan for all threads.
  func cancel() { state.withLock { $0.isCancelled = true } }

  /// Whether the threads should end.
  var isOver: Bool { state.withLock { $0.hasFailed || $0.isCancelled } }

  var hasFailed: Bool { state.withLock { $0.hasFailed } }

  /// Calls `wake` once when a thread has failed or all have ended. Returns `false` if that is already so.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard state.running > 0, !state.hasFailed else { return false }
      state.wake = wake
      return true
    }
  }

  /// Returns the groups of all shares in name order, or `nil` while threads are reading or if one has failed.
  func results() -> [SharedScanResult]? {
    state.withLock { state in
      guard state.running == 0, !state.hasFailed, state.shares.allSatisfy(\.isEmpty) else { return nil }
      return state.results.sorted { $0.start < $1.start }.map(\.result)
    }
  }
}

/// The groups of a share.
///
/// `@unchecked Sendable`: the thread that made it does not use it after ``SharedScan/end(_:_:)``, and only one thread
/// receives it from ``SharedScan/results()``.
struct SharedScanResult: @unchecked Sendable {
  let aggregate: AggregateOperator
  let run: PipelineRun
}

/// One thread's reading of a share, in slices.
final class ScanShare {
  private let scan: SharedScan
  private let share: SharedScan.Share
  private let aggregate: AggregateOperator
  private let run: PipelineRun
  private let source: QueryOperator
  private var hasPart = false
  private let outer = PipelineRow(variableCount: 0)

  /// Begins to read a share.
  /// - Throws: ``PipelineError`` if the operators cannot be built.
  init(_ share: SharedScan.Share, of scan: SharedScan, _ division: ScanDivision, _ run: PipelineRun) throws {
    self.scan = scan
    self.share = share
    self.run = run
    var builder = OperatorBuilder(run)
    guard let aggregate = try builder.build(division.body) as? AggregateOperator, let source = aggregate.source else {
      throw PipelineError("The pipeline cannot be divided.")
    }
    self.aggregate = aggregate
    self.source = source
    aggregate.staysInMemory = true
  }

  /// Does about `units` of work. Returns the groups at the end of the share, otherwise `nil`.
  /// - Throws: the errors of the operators. The groups of the share are then useless.
  func slice(_ snapshot: any KeyValueSnapshot, units: Int) throws -> SharedScanResult? {
    try run.begin(snapshot, units: units, nil)
    defer { run.end() }
    while run.unitsLeft > 0 {
      if !hasPart {
        guard let part = scan.next(share) else { return SharedScanResult(aggregate: aggregate, run: run) }
        source.part = part
        aggregate.continueInput(outer, run)
        hasPart = true
      }
      if try aggregate.collect(run) { hasPart = false }
    }
    return nil
  }
}

/// The stages of a pipeline from its source to its first `aggregate` or `distinct`, if threads can divide them: the
/// source is one collection, and each stage handles one row at a time.
struct ScanDivision: Sendable {
  let body: PipelineBody

  init?(_ body: PipelineBody, upTo last: Int) {
    guard body.outerVariableCount == 0,
      case .source(.query(_, _, includesDescendants: false)) = body.stages[0].operation
    else { return nil }
    for stage in body.stages[1..<last] {
      guard stage.subpipelines.isEmpty else { return nil }
      switch stage.operation {
      case .filter, .select, .addFields, .removeFields, .bind: continue
      default: return nil
      }
    }
    guard body.stages[last].subpipelines.isEmpty else { return nil }
    self.body = PipelineBody(
      stages: Array(body.stages[...last]), variableCount: body.variableCount, outerVariableCount: 0)
  }

  /// The documents that a scan reads before other threads help.
  static let documentsMin = 32_768
  /// The parts of a scan.
  static let partsMax = 64
  /// The groups with which a scan continues alone, because merging them would take too long.
  static let groupsMax = 8_192
  /// The work of a slice of a thread that serves no requests.
  private static let sliceUnits = 65_536

  /// The threads that help, beside those that serve requests, which have precedence.
  private static let threadsMax = max(1, WorkerLimits.processors - 1)
  private static let threads = BoundedWorkers(
    "scans", threads: threadsMax, unfinishedMax: threadsMax, yieldsToLoops: true)

  /// Lets idle threads help with a scan. Returns their number.
  func help(_ scan: SharedScan, _ template: RunTemplate) -> Int {
    var count = 0
    while count < Self.threadsMax, Self.threads.run({ work(scan, template) }) { count += 1 }
    return count
  }

  private func work(_ scan: SharedScan, _ template: RunTemplate) {
    while let share = scan.begin() {
      var reading: ScanShare?
      var result: SharedScanResult?
      do {
        while result == nil, !scan.isOver {
          try template.reads { snapshot in
            let share = try reading ?? ScanShare(share, of: scan, self, template.run(snapshot))
            reading = share
            result = try share.slice(snapshot, units: Self.sliceUnits)
          }
        }
      } catch {
        // The thread of the request reads everything again and reports the error, if it still occurs.
        result = nil
      }
      scan.end(share, result)
    }
  }
}
