import DocumentModel
import KeyEncoding
import WireFormat

/// The outcome of a commit as ``RecentCommits`` stores it.
///
/// The layout is: digest (8), version (8), number of runs, then for each run of equal results: the number of results, the
/// kind, for an earlier time that time (8), and the number of transform results of each result. The values of all
/// transforms follow, as the fields of a document with one array. Numbers without a size are ``OrderedCode``.
///
/// The results of transforms are numbers, times and nulls. A row therefore has at most about the size of its request.
struct StoredOutcome: Equatable {
  var digest: UInt64
  var outcome: CommitOutcome

  /// When a document last changed. The numbers are on disk.
  private enum Kind: UInt64 {
    /// At the commit.
    case commit = 0
    /// Before it.
    case earlier = 1
    /// The document does not exist.
    case none = 2
  }

  /// The parts that neighboring results may share.
  private struct Run: Equatable {
    var time: Timestamp?
    var transforms: Int

    init(_ result: WriteResult) {
      time = result.updateTime
      transforms = result.transformResults.count
    }
  }

  init(digest: UInt64, outcome: CommitOutcome) {
    self.digest = digest
    self.outcome = outcome
  }

  /// The encoded form.
  var bytes: [UInt8] {
    var runs: [(run: Run, count: Int)] = []
    var values: [Value] = []
    for result in outcome.results {
      let run = Run(result)
      if runs.last?.run == run { runs[runs.count - 1].count += 1 } else { runs.append((run, 1)) }
      values += result.transformResults
    }
    var bytes: [UInt8] = []
    Self.append(digest, to: &bytes)
    Self.append(UInt64(bitPattern: outcome.version.microseconds), to: &bytes)
    OrderedCode.append(number: UInt64(runs.count), to: &bytes)
    for (run, count) in runs {
      OrderedCode.append(number: UInt64(count), to: &bytes)
      let kind: Kind = run.time.map { $0 == outcome.version ? .commit : .earlier } ?? .none
      OrderedCode.append(number: kind.rawValue, to: &bytes)
      if kind == .earlier, let time = run.time { Self.append(UInt64(bitPattern: time.microseconds), to: &bytes) }
      OrderedCode.append(number: UInt64(run.transforms), to: &bytes)
    }
    if !values.isEmpty {
      var map = MapValue()
      map["v"] = .array(values)
      bytes += EncodedFields(map).bytes
    }
    return bytes
  }

  private static func append(_ number: UInt64, to out: inout [UInt8]) {
    withUnsafeBytes(of: number.littleEndian) { out.append(raw: $0) }
  }

  /// Decodes the bytes. Returns `nil` if they are malformed.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    guard let digest = Self.take(&rest), let version = Self.takeTime(&rest), let count = OrderedCode.takeNumber(&rest)
    else { return nil }
    var runs: [(run: Run, count: Int)] = []
    var (results, transforms) = (0, 0)
    for _ in 0..<count {
      guard let run = Self.takeRun(&rest, at: version) else { return nil }
      // Damaged numbers must not allocate much. The values must be there, and no request has so many writes.
      results += run.count
      let (product, overflows) = run.count.multipliedReportingOverflow(by: run.run.transforms)
      transforms += overflows ? Self.countMax : min(product, Self.countMax)
      guard results <= Self.countMax, transforms <= rest.count else { return nil }
      runs.append(run)
    }
    var values: ArraySlice<Value> = []
    if transforms > 0 {
      guard let map = try? EncodedFields(canonical: Array(rest)).decoded(), case .array(let array)? = map["v"],
        array.count == transforms
      else { return nil }
      values = array[...]
    } else {
      guard rest.isEmpty else { return nil }
    }
    var outcome = CommitOutcome(version: version, results: [])
    for (run, count) in runs {
      for _ in 0..<count {
        outcome.results.append(
          WriteResult(updateTime: run.time, transformResults: Array(values.prefix(run.transforms))))
        values = values.dropFirst(run.transforms)
      }
    }
    self.init(digest: digest, outcome: outcome)
  }

  /// Far more results or transforms than a request has.
  private static let countMax = 1 << 20

  private static func takeRun(_ rest: inout UnsafeRawBufferPointer, at version: Timestamp) -> (run: Run, count: Int)? {
    guard let count = OrderedCode.takeNumber(&rest), (1...UInt64(countMax)).contains(count),
      let kind = OrderedCode.takeNumber(&rest).flatMap(Kind.init)
    else { return nil }
    var time: Timestamp?
    switch kind {
    case .commit: time = version
    case .earlier:
      guard let earlier = takeTime(&rest) else { return nil }
      time = earlier
    case .none: break
    }
    guard let transforms = OrderedCode.takeNumber(&rest), transforms <= UInt64(countMax) else { return nil }
    var run = Run(WriteResult(updateTime: time))
    run.transforms = Int(transforms)
    return (run, Int(count))
  }

  private static func take(_ rest: inout UnsafeRawBufferPointer) -> UInt64? {
    guard rest.count >= 8 else { return nil }
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[8...]) }
    return UInt64(littleEndian: rest.loadUnaligned(as: UInt64.self))
  }

  private static func takeTime(_ rest: inout UnsafeRawBufferPointer) -> Timestamp? {
    take(&rest).map { Timestamp(uncheckedMicroseconds: Int64(bitPattern: $0)) }
  }
}
