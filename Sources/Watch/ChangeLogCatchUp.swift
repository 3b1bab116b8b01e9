import DocumentModel
import DocumentStore
import Matching
import QueryEngine
import WireFormat

/// Finds the changes of a query's results between two versions in the change log. This works for queries in which
/// every document is a result or not by itself.
///
/// Each changed document is reported once, by its last change up to the version. Its previous state is read from the
/// history, if the history reaches back that far.
final class ChangeLogCatchUp: CatchUpStrategy {
  /// The collections whose changes are read.
  enum Collections {
    /// These collections, by number.
    case some([(number: UInt64, path: ResourcePath)])
    /// All collections of the query.
    case all
  }

  /// The maximum number of changes to read. With more changes it is cheaper to start over.
  private static let rowsMax = 100_000
  /// The number of changes that one slice reads.
  private static let sliceRows = 128
  /// The maximum number of collections of a group to read one by one.
  private static let collectionsMax = 64

  private let query: WatchedQuery
  private var range: QueryRange?
  private let origin: Int64
  private let plan: CatchUp.Plan
  private let options: PlanOptions
  /// The number of results gained since the origin minus those lost; `nil` if it is not known.
  private var gained: Int? = 0
  /// The results lost since the origin.
  private var lost: Set<ChangedDocument> = []
  private var counting: QueryExecution?

  private static let lostMax = 10_000

  private let collections: Collections
  private var nextCollection = 0
  private var last: ChangeLogIterator.Row?
  private var rows = 0
  private var paths: [UInt64: ResourcePath?] = [:]
  private var place: [UInt8] = []

  init(
    _ query: WatchedQuery, _ collections: Collections, from origin: Int64, _ plan: CatchUp.Plan,
    _ options: PlanOptions
  ) {
    self.options = options
    self.query = query
    range = query.range
    self.collections = collections
    self.origin = origin
    self.plan = plan
  }

  /// Returns the collections of a scope that have changed since a version, or `nil` if none has changed. Cost: a
  /// lookup for each collection.
  static func collections(
    changedIn scope: QueryScope, after version: Int64, _ reader: inout SnapshotReader
  ) throws -> Collections? {
    if try reader.lastVersion() <= version { return nil }
    var paths: [ResourcePath]
    switch scope {
    case .collection(let path): paths = [path]
    case .group(let id, _):
      guard let group = try reader.collections(ofGroup: id, countMax: collectionsMax) else { return .all }
      paths = group.filter { scope.contains($0) }
    case .children, .subtree: return .all
    }
    var changed: [(number: UInt64, path: ResourcePath)] = []
    for path in paths {
      guard let row = try reader.collection(path), row.lastChange > version else { continue }
      changed.append((row.number, path))
    }
    return changed.isEmpty ? nil : .some(changed)
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { counting?.wait(wake) ?? false }

  func slice(_ reader: inout SnapshotReader, _ emit: CatchUp.Emit) throws -> CatchUp.Progress {
    guard try reader.isLogged(since: origin) else { return .reset }
    let isBeforeKnown = try reader.isReadable(at: origin)
    var left = Self.sliceRows
    while let (number, isNew) = nextPlace() {
      let scan = try isNew ? start(number, &reader) : resume(&reader)
      while let row = try scan.next(), row.version <= plan.version {
        last = row
        rows += 1
        left -= 1
        guard rows <= Self.rowsMax else { return .reset }
        if let path = try path(of: row.collection, &reader), let id = row.document.id {
          let key = DocumentKey(uncheckedPath: path.appending(id))
          switch try outcome(of: row, key, id, isBeforeKnown, &reader) {
          case .nothing: break
          case .unknown: return .reset
          case .change(let change): guard try emit(key, change) else { return .paused }
          }
        }
        if left <= 0 { return .paused }
      }
      last = nil
      nextCollection += 1
    }
    return try check(&reader)
  }

  /// Compares the number of results with the number that the client has.
  private func check(_ reader: inout SnapshotReader) throws -> CatchUp.Progress {
    guard let expectedCount = plan.expectedCount, let gained else { return .done }
    let counting = try self.counting ?? QueryExecution(query.resolved, reader.snapshot, at: plan.version, options)
    self.counting = counting
    let now = expectedCount + gained
    guard now >= 0 else { return .reset }
    try counting.count(reader.snapshot, upTo: now + 1, units: QueryExecution.sliceUnits)
    if counting.returned > now { return .reset }
    guard counting.isAtEnd else { return .paused }
    return counting.returned == now ? .done : .reset
  }

  // MARK: Positions in the log

  /// The collection whose log is read next, and whether from its beginning; `nil` at the end.
  private func nextPlace() -> (collection: UInt64?, isNew: Bool)? {
    switch collections {
    case .all: nextCollection == 0 ? (nil, last == nil) : nil
    case .some(let some): nextCollection < some.count ? (some[nextCollection].number, last == nil) : nil
    }
  }

  private func start(_ collection: UInt64?, _ reader: inout SnapshotReader) throws -> ChangeLogIterator {
    try ChangeLogIterator(reader.snapshot, after: origin, in: collection)
  }

  private func resume(_ reader: inout SnapshotReader) throws -> ChangeLogIterator {
    guard let last else { return try start(nil, &reader) }
    if case .all = collections {
      return try ChangeLogIterator(reader.snapshot, after: last.position, of: last.version)
    }
    return try ChangeLogIterator(reader.snapshot, after: last)
  }

  /// Returns the path of a collection, or `nil` if the query does not cover it.
  private func path(of number: UInt64, _ reader: inout SnapshotReader) throws -> ResourcePath? {
    if case .some(let some) = collections { return some[nextCollection].path }
    if let known = paths[number] { return known }
    let path = try reader.collectionPath(number)
    let wanted = query.scope.contains(path) ? path : nil
    if paths.count >= 10_000 { paths.removeAll() }
    paths.updateValue(wanted, forKey: number)
    return wanted
  }

  // MARK: One change

  private enum Outcome {
    case nothing
    case unknown
    case change(DocumentChange<StoredDocument>)
  }

  private func outcome(
    of row: ChangeLogIterator.Row, _ key: DocumentKey, _ id: [UInt8], _ isBeforeKnown: Bool,
    _ reader: inout SnapshotReader
  ) throws -> Outcome {
    let now = try reader.document(id, in: row.collection, at: plan.version)
    if let now {
      // Only the last change up to the version is reported.
      guard now.updateVersion == row.version else { return .nothing }
      if try isResult(key, now) {
        if plan.expectedCount != nil { try noteGain(of: key, id, row.collection, isBeforeKnown, &reader) }
        return .change(.modified(now))
      }
    } else if row.kind != .removed {
      return .nothing
    }
    if !isBeforeKnown {
      guard plan.mayName else { return .unknown }
      gained = nil
      return .change(now == nil ? .deleted : .removed(nil))
    }
    guard let before = try reader.document(id, in: row.collection, at: origin), try isResult(key, before) else {
      return .nothing
    }
    // A document that was deleted several times is reported each time, but must be subtracted only once.
    if plan.expectedCount != nil {
      if lost.count >= Self.lostMax {
        gained = nil
      } else if lost.insert(row.document).inserted {
        gained = gained.map { $0 - 1 }
      }
    }
    return .change(now.map(DocumentChange.removed) ?? .deleted)
  }

  private func noteGain(
    of key: DocumentKey, _ id: [UInt8], _ collection: UInt64, _ isBeforeKnown: Bool, _ reader: inout SnapshotReader
  ) throws {
    guard isBeforeKnown else { return gained = nil }
    if let before = try reader.document(id, in: collection, at: origin), try isResult(key, before) { return }
    gained = gained.map { $0 + 1 }
  }

  private func isResult(_ key: DocumentKey, _ document: StoredDocument) throws -> Bool {
    try range?.place(of: EncodedMap(documentFields: document.fields), at: key.path, into: &place) ?? false
  }
}

extension WatchedQuery {
  /// Whether a document can be a result, regardless of its position in the order.
  func canReturn(_ key: DocumentKey, _ document: StoredDocument) throws -> Bool {
    guard var range else { return false }
    var place: [UInt8] = []
    return try range.place(of: EncodedMap(documentFields: document.fields), at: key.path, into: &place)
  }
}
