import DocumentModel
import DocumentStore
import KeyEncoding
import KeyValue
import WireFormat

/// The candidates of a query in one collection, one after the other, by name or by the entries of an index; or those of
/// a group of collections, by the entries of an index over the group.
///
/// Reads between ``open(_:lastChange:)`` and ``close()`` from one snapshot, and goes on from the same place on another.
/// Names in ascending order show the collection as it was at the version. All else shows it as it is: what changed since
/// is for ``ChangeOverlay``.
final class CollectionCandidateIterator {
  /// The collection, of the candidate where it is one of a group.
  private(set) var path: ResourcePath
  /// Its number in the store.
  private(set) var number: UInt64
  /// The ``NameCode`` of its path.
  private(set) var code: [UInt8]
  /// The id of the candidate, as ``OrderedCode/append(lastID:to:)`` writes it.
  private(set) var idCode: [UInt8] = []
  /// The candidate, unless it was not to be loaded.
  private(set) var document: StoredDocument?
  /// The candidate is to be taken again: something comes in front of it.
  var isHeld = false

  private let access: QueryPlan.Access
  private let isDescending: Bool
  private let version: Int64
  private let ids: IDRange
  private let upperID: [UInt8]?
  private var reader: SnapshotReader?
  private var scan: IndexRangeIterator
  private var points: UnionIterator?
  private var past: DocumentIterator?
  /// Where a scan by value ended the last slice: the codes of the value and of the id.
  private var place: [UInt8] = []

  init(
    _ path: ResourcePath, code: [UInt8], number: UInt64, ids: IDRange, _ access: QueryPlan.Access, isDescending: Bool,
    at version: Int64
  ) {
    self.path = path
    self.code = code
    self.number = number
    self.ids = ids
    self.access = access
    self.isDescending = isDescending
    self.version = version
    upperID = ids.upperCode
    let (lower, upper) = (ids.lowerCode, upperID)
    var key = StorageKey()
    switch access {
    case .names:
      key.begin(.documents)
      key.append(number: number)
      scan = IndexRangeIterator(prefix: key.bytes, from: lower, to: upper, isDescending: isDescending)
    case .values(let range):
      scan = IndexRangeIterator(
        prefix: range.field.prefix(in: number), from: range.lower, to: range.upper, isDescending: isDescending)
    case .points(let alternatives):
      let scans = alternatives.map { points in
        IntersectionIterator(
          points.map { point in
            IndexRangeIterator(
              prefix: point.field.prefix(in: number) + point.code, from: lower, to: upper, isDescending: isDescending)
          })
      }
      scan = IndexRangeIterator(prefix: [], isDescending: isDescending)
      points = UnionIterator(scans, isDescending: isDescending)
    case .ordered(let ordered):
      let byName = ordered.tail.isEmpty && !ordered.isGroup
      let scans = ordered.alternatives.map { alternative in
        let (lower, upper) = byName ? Self.narrowed(alternative, lower, upper) : (alternative.lower, alternative.upper)
        return IntersectionIterator(
          alternative.scans.map {
            IndexRangeIterator(prefix: $0.prefix(in: number), from: lower, to: upper, isDescending: isDescending)
          }, isOfDeclaredIndexes: true)
      }
      scan = IndexRangeIterator(prefix: [], isDescending: isDescending)
      points = UnionIterator(scans, isDescending: isDescending)
    }
  }

  private static func narrowed(
    _ alternative: OrderedIndexIterator.Alternative, _ lower: [UInt8], _ upper: [UInt8]?
  ) -> ([UInt8], [UInt8]?) {
    let low = Ordering.raw(alternative.lower, lower) == .less ? lower : alternative.lower
    guard let upper, let other = alternative.upper else { return (low, upper ?? alternative.upper) }
    return (low, Ordering.raw(upper, other) == .less ? upper : other)
  }

  // MARK: Slices

  /// Begins or goes on on a snapshot; `lastChange` is the version of the collection's last change there.
  func open(_ snapshot: any KeyValueSnapshot, lastChange: Int64) throws(StorageError) {
    reader = SnapshotReader(snapshot)
    if points != nil {
      try points?.open(snapshot)
    } else if case .names = access, !isDescending, lastChange > version {
      past = try DocumentIterator(snapshot, collection: number, from: pastStart, at: version)
    } else {
      try scan.open(snapshot)
    }
    guard isHeld else { return }
    // It was taken from the scan: what changed meanwhile is not seen again.
    document = try document(idCode)
    isHeld = document != nil
  }

  /// A document of the collection as it was at the version.
  private func document(_ code: [UInt8]) throws(StorageError) -> StoredDocument? {
    var id: [UInt8] = []
    guard code.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }) else { return nil }
    return try reader?.document(id, in: number, at: version)
  }

  /// Where a scan of the past goes on.
  private var pastStart: DocumentIterator.Start {
    if !idCode.isEmpty {
      var id: [UInt8] = []
      if idCode.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }) { return .after(id) }
    }
    guard let lower = ids.lower else { return .beginning }
    return lower.isBehind ? .after(lower.id) : .at(lower.id)
  }

  func close() {
    reader = nil
    document = nil
    past = nil
    if scan.isAtEntry {
      switch access {
      case .names: takeID(scan.suffix)
      case .values: place = Array(scan.suffix)
      case .points, .ordered: break
      }
    }
    scan.close()
    points?.close()
  }

  // MARK: Candidates

  /// Moves to the next candidate. Unless it `loads` documents it may be one that is not there any more.
  func next(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    switch access {
    case .names: try nextName(loads: loads, &meter)
    case .values: try nextValue(loads: loads, &meter)
    case .points: try nextPoint(loads: loads, &meter)
    case .ordered(let scans): try nextOrdered(scans, loads: loads, &meter)
    }
  }

  private func nextOrdered(_ scans: OrderedIndexIterator, loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    while true {
      let step = try points?.find(&meter) ?? .end
      guard case .found = step else { return step }
      if try takeEntry(scans), try !loads || load(&meter) { return .found }
      if meter.isSpent { return .paused }
    }
  }

  /// Takes the name out of the entry that was found; `false` where its collection is none of the query's.
  private func takeEntry(_ scans: OrderedIndexIterator) throws -> Bool {
    guard let points else { return false }
    place.removeAll(keepingCapacity: true)
    place.append(contentsOf: points.idCode)
    let name = place.suffix(points.nameCount)
    guard scans.isGroup else {
      idCode.removeAll(keepingCapacity: true)
      idCode.append(contentsOf: name)
      return true
    }
    guard let document = NameCode.decode(Array(name)), !document.isRoot, !document.isCollection else {
      throw StorageError.corruption(path: "groupEntries", detail: "an entry without a document's path")
    }
    idCode.removeAll(keepingCapacity: true)
    OrderedCode.append(lastID: document.lastSegment, to: &idCode)
    let collection = document.parent
    if collection == path { return true }
    guard collection.parent.isAtOrBelow(scans.parent) else { return false }
    guard let row = try reader?.collection(collection) else { return false }
    path = collection
    number = row.number
    code = NameCode.encode(collection)
    return true
  }

  private func nextName(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    if past != nil {
      guard let document = try past?.next() else { return .end }
      idCode = past?.idCode ?? []
      if let upperID, Ordering.raw(idCode, upperID) != .less { return .end }
      meter.readDocument(bytes: document.fields.count)
      self.document = document
      return .found
    }
    guard try scan.next(), let entry = scan.entry else { return .end }
    takeID(scan.suffix)
    if loads {
      let document = try SnapshotReader.decode(row: entry.value, key: entry.key)
      self.document = document
      meter.readDocument(bytes: document.fields.count)
    } else {
      meter.readEntries()
    }
    return .found
  }

  private func nextValue(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    while try scan.next() {
      meter.readEntries()
      var rest = scan.suffix
      guard OrderedCode.skipValue(&rest) != nil else {
        throw StorageError.corruption(path: "ascendingEntries", detail: "an entry whose value does not end")
      }
      takeID(rest)
      if try !loads || load(&meter) { return .found }
      if meter.isSpent { return .paused }
    }
    return .end
  }

  private func nextPoint(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    while true {
      let step = try points?.find(&meter) ?? .end
      guard case .found = step else { return step }
      idCode = points?.idCode ?? []
      if try !loads || load(&meter) { return .found }
      if meter.isSpent { return .paused }
    }
  }

  /// Loads the candidate. An entry without its document is damage that `hearth check` reports; here it is no result.
  private func load(_ meter: inout SliceBudget) throws(StorageError) -> Bool {
    document = try reader?.document(idCode: idCode, in: number)
    meter.readDocument(bytes: document?.fields.count ?? 0)
    return document != nil
  }

  /// Moves over up to `countMax` candidates without a look at them, and returns how many, fewer only at the end; `nil`
  /// where that cannot be done.
  func skip(_ countMax: Int, _ meter: inout SliceBudget) throws(StorageError) -> Int? {
    guard past == nil else { return nil }
    guard let count = points == nil ? try scan.skip(countMax) : try points?.skip(countMax) else { return nil }
    meter.readEntries(count)
    guard let points, count > 0 else { return count }
    if case .ordered = access { place = points.idCode } else { idCode = points.idCode }
    return count
  }

  /// Whether a scan by value, or of declared indexes, has come to a document with these fields, or past it.
  func hasPassed(_ name: [UInt8], idCode: [UInt8], _ fields: EncodedMap) throws -> Bool {
    if case .ordered(let scans) = access {
      guard !place.isEmpty else { return false }
      guard var key = try scans.tailCode(of: fields) else { return true }
      key.append(contentsOf: scans.isGroup ? name : idCode)
      return Ordering.raw(key, place) != (isDescending ? .less : .greater)
    }
    guard case .values(let range) = access, !place.isEmpty else { return false }
    // What has no entry is no candidate.
    guard let value = try fields.value(at: range.field.path) else { return true }
    var key: [UInt8] = []
    try OrderedCode.append(value, to: &key)
    key.append(contentsOf: idCode)
    return Ordering.raw(key, place) != (isDescending ? .less : .greater)
  }

  /// Appends the ``NameCode`` of the candidate.
  func appendName(to name: inout [UInt8]) {
    name.append(contentsOf: code)
    idCode.withUnsafeBytes { OrderedCode.append(segmentOfLastID: $0, to: &name) }
  }

  private func takeID(_ suffix: UnsafeRawBufferPointer) {
    idCode.removeAll(keepingCapacity: true)
    idCode.append(raw: suffix)
  }
}
