import DocumentModel
import DocumentStore
import KeyEncoding
import KeyValue
import Matching
import WireFormat

/// An iterator over a query's candidates in one collection or in several.
///
/// Candidates of several collections come in name order. Collections are nested: the descendants of a document come
/// between that document and the next one in its collection. Open collections are therefore kept on a stack, whose
/// height is the depth of nesting, regardless of the number of collections.
final class CandidateIterator {
  private let plan: QueryPlan
  private let version: Int64
  private var nextRange = 0
  private var range = NameRange.all
  /// Open collections. Candidates of a collection precede those of the collections below it in the stack.
  private var stack: [CollectionCandidateIterator] = []
  private var collections: CollectionIterator?
  /// The next collection that ``collections`` has found.
  private var nextCollection: CollectionIterator.Stop?
  private var isAtEnd = false
  private var snapshot: (any KeyValueSnapshot)?
  private var name: [UInt8] = []

  /// The collection of the current candidate.
  private(set) var current: CollectionCandidateIterator?

  init(_ plan: QueryPlan, at version: Int64) {
    self.plan = plan
    self.version = version
  }

  // MARK: Slices

  func open(_ snapshot: any KeyValueSnapshot) throws {
    self.snapshot = snapshot
    var reader = SnapshotReader(snapshot)
    for source in stack {
      try source.open(snapshot, lastChange: try reader.collection(source.path)?.lastChange ?? 0)
    }
    try collections?.open(snapshot)
  }

  func close() {
    for source in stack { source.close() }
    collections?.close()
    snapshot = nil
  }

  // MARK: Candidates

  /// Moves to the next candidate; see ``CollectionCandidateIterator/next(loads:_:)``.
  func next(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    while true {
      guard let top = stack.last else {
        let step = try advance(&meter)
        if step == .found { continue }
        if step == .end { isAtEnd = true }
        return step
      }
      if !top.isHeld {
        let step = try top.next(loads: loads, &meter)
        if step == .paused { return .paused }
        if step == .end {
          top.close()
          stack.removeLast()
          continue
        }
      }
      if collections != nil {
        // The candidate waits until every collection that precedes it is done.
        top.isHeld = true
        let step = try pushNested(before: top, &meter)
        if step == .paused { return .paused }
        if step == .found { continue }
      }
      top.isHeld = false
      current = top
      return .found
    }
  }

  /// Puts the current candidate back, so that the next step finds it again.
  func hold() { current?.isHeld = true }

  /// Skips up to `countMax` candidates; see ``CollectionCandidateIterator/skip(_:_:)``.
  func skip(_ countMax: Int, _ meter: inout SliceBudget) throws -> Int? {
    guard plan.isOneIterator, plan.names.count == 1 else { return nil }
    if stack.isEmpty, nextRange == 0 { _ = try advance(&meter) }
    guard let top = stack.last else { return 0 }
    current = top
    return try top.skip(countMax, &meter)
  }

  /// Returns the only collection of a scan of names, which the caller may read with
  /// ``CollectionCandidateIterator/forEach(_:_:)``, or `nil` if candidates come in another way. After its last
  /// document, ``next(loads:_:)`` finds the end.
  func plainScan(_ meter: inout SliceBudget) throws -> CollectionCandidateIterator? {
    guard plan.isOneIterator, plan.names.count == 1 else { return nil }
    if stack.isEmpty, nextRange == 0 { _ = try advance(&meter) }
    guard let top = stack.last, stack.count == 1, top.isPlainScan else { return nil }
    current = top
    return top
  }

  /// Whether the iterator has reached or passed the document with this ``NameCode``, as it was at the version. A
  /// held candidate counts as reached.
  func hasPassed(_ document: [UInt8], idCode: [UInt8], _ fields: EncodedMap) throws -> Bool {
    if isAtEnd || holds(document) { return true }
    switch plan.access {
    case .values, .ordered: return try stack.last?.hasPassed(document, idCode: idCode, fields) ?? false
    case .names, .points: break
    }
    guard let current, !current.idCode.isEmpty else { return false }
    name.removeAll(keepingCapacity: true)
    current.appendName(to: &name)
    return Ordering.raw(document, name) != (plan.isDescending ? .less : .greater)
  }

  /// Whether the document with this ``NameCode`` was found and then put back with ``hold()``.
  func holds(_ document: [UInt8]) -> Bool {
    stack.contains { source in
      guard source.isHeld else { return false }
      name.removeAll(keepingCapacity: true)
      source.appendName(to: &name)
      return name == document
    }
  }

  // MARK: Collections

  /// Opens the next collection of this range of names, or of the next range.
  private func advance(_ meter: inout SliceBudget) throws -> IteratorStep {
    while true {
      if collections != nil {
        let step = try peek(&meter)
        if step == .paused { return .paused }
        if step == .found, let nextCollection {
          self.nextCollection = nil
          if try push(nextCollection.path, code: nextCollection.code) { return .found }
          continue
        }
        collections = nil
      }
      guard nextRange < plan.names.count else { return .end }
      range = plan.names[nextRange]
      nextRange += 1
      switch plan.scope {
      case .none: return .end
      case .collection(let path, let code):
        if try push(path, code: code) { return .found }
      case .collections where plan.isOneIterator:
        let source = CollectionCandidateIterator(
          .root, code: [], number: 0, ids: IDRange(), plan.access, isDescending: plan.isDescending, at: version)
        if let snapshot { try source.open(snapshot, lastChange: 0) }
        stack.append(source)
        return .found
      case .collections(let scope):
        collections = CollectionIterator(scope, from: range.lower)
        if let snapshot { try collections?.open(snapshot) }
        try pushAround(range.lower, scope)
        if !stack.isEmpty { return .found }
      }
    }
  }

  /// Pushes a collection. Returns `false` if the collection does not exist or lies outside the range.
  private func push(_ path: ResourcePath, code: [UInt8]) throws -> Bool {
    guard let snapshot, let ids = range.ids(in: code) else { return false }
    var reader = SnapshotReader(snapshot)
    guard let row = try reader.collection(path) else { return false }
    let source = CollectionCandidateIterator(
      path, code: code, number: row.number, ids: ids, plan.access, isDescending: plan.isDescending, at: version)
    try source.open(snapshot, lastChange: row.lastChange)
    stack.append(source)
    return true
  }

  /// Pushes the collections that contain the lower bound. Their codes precede the bound, but some of their documents
  /// follow it.
  private func pushAround(_ bound: [UInt8], _ scope: QueryScope) throws {
    var path = ResourcePath.root
    var rest = bound[...]
    var id: [UInt8] = []
    while true {
      id.removeAll(keepingCapacity: true)
      let left = rest.withUnsafeBytes { bytes -> Int? in
        var bytes = bytes
        return OrderedCode.take(segment: &bytes, into: &id) ? bytes.count : nil
      }
      guard let left else { return }
      rest = rest.suffix(left)
      path = path.appending(id)
      if path.isCollection, scope.contains(path) { _ = try push(path, code: NameCode.encode(path)) }
    }
  }

  /// Pushes the next collection if it is below a document that precedes the candidate of `top`.
  private func pushNested(before top: CollectionCandidateIterator, _ meter: inout SliceBudget) throws -> IteratorStep {
    let step = try peek(&meter)
    guard step == .found, let nextCollection else { return step }
    guard nextCollection.code.starts(with: top.code) else { return .end }
    name.removeAll(keepingCapacity: true)
    top.appendName(to: &name)
    guard Ordering.raw(nextCollection.code, name) == .less else { return .end }
    self.nextCollection = nil
    // A collection outside the range is skipped as if it were empty.
    _ = try push(nextCollection.path, code: nextCollection.code)
    return .found
  }

  /// Finds the next collection, without opening it.
  private func peek(_ meter: inout SliceBudget) throws -> IteratorStep {
    while nextCollection == nil {
      meter.passed()
      switch try collections?.next() ?? .end {
      case .end: return .end
      case .passed: if meter.isSpent { return .paused }
      case .stop(let found):
        if let upper = range.upper, Ordering.raw(found.code, upper) != .less { return .end }
        nextCollection = found
      }
    }
    return .found
  }
}
