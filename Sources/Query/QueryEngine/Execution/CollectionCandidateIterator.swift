import DocumentModel
import DocumentStore
import KeyEncoding
import KeyValue
import WireFormat

/// An iterator over a query's candidates in one collection, by name or by index entries; or over those in a
/// collection group, by the entries of an index over the group.
///
/// Between ``open(_:lastChange:)`` and ``close()`` it reads one snapshot. After that it continues from the same
/// position on another snapshot. A scan of names in ascending order shows the collection as it was at the version.
/// All other scans show the current state, and ``ChangeOverlay`` corrects for the changes since the version.
final class CollectionCandidateIterator {
  /// The collection. For a collection group: the collection of the current candidate.
  private(set) var path: ResourcePath
  /// The number of the collection in the store.
  private(set) var number: UInt64
  /// The ``NameCode`` of the collection's path.
  private(set) var code: [UInt8]
  /// The ID of the candidate, as ``OrderedCode/append(lastID:to:)`` writes it.
  private(set) var idCode: [UInt8] = []
  /// The candidate, unless the caller asked not to load it.
  private(set) var document: StoredDocument?
  /// The ID of the document that ``forEach(_:_:)`` has found.
  private var scannedID = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Whether the current candidate is to be returned again, because another result precedes it.
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
  /// The position of a scan by value at the end of the last slice: the codes of the value and of the ID.
  private var place: [UInt8] = []
  /// The key of the row that was read last. The rows of a collection share the prefix.
  private var rowKey = StorageKey()
  private var rowKeyCollection: UInt64?
  private var rowPrefixCount = 0

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
      let ranges = ordered.alternatives.map { alternative in
        let (lower, upper) = byName ? Self.narrowed(alternative, lower, upper) : (alternative.lower, alternative.upper)
        return alternative.scans.map {
          IndexRangeIterator(prefix: $0.prefix(in: number), from: lower, to: upper, isDescending: isDescending)
        }
      }
      if ranges.count == 1, ranges[0].count == 1 {
        scan = ranges[0][0]
      } else {
        scan = IndexRangeIterator(prefix: [], isDescending: isDescending)
        points = UnionIterator(
          ranges.map { IntersectionIterator($0, isOfDeclaredIndexes: true) }, isDescending: isDescending)
      }
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

  /// Starts or continues on a snapshot. `lastChange` is the version of the collection's last change in that
  /// snapshot.
  /// - Throws: ``StorageError`` if a read fails.
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
    // The scan has already passed this candidate, and it may have changed since, so read it again as it was at the
    // version.
    document = try document(idCode)
    isHeld = document != nil
  }

  /// Reads a document of the collection as it was at the version.
  private func document(_ code: [UInt8]) throws(StorageError) -> StoredDocument? {
    var id: [UInt8] = []
    guard code.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }) else { return nil }
    return try reader?.document(id, in: number, at: version)
  }

  /// The position from which a scan of the past continues.
  private var pastStart: DocumentIterator.Start {
    if !idCode.isEmpty {
      var id: [UInt8] = []
      if idCode.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }) { return .after(id) }
    }
    guard let lower = ids.lower else { return .beginning }
    return lower.isAfter ? .after(lower.id) : .at(lower.id)
  }

  func close() {
    reader = nil
    document = nil
    past = nil
    if scan.isAtEntry {
      switch access {
      case .names: takeID(scan.suffix)
      case .values, .ordered: place = Array(scan.suffix)
      case .points: break
      }
    }
    scan.close()
    points?.close()
  }

  // MARK: Candidates

  /// Moves to the next candidate. If it does not load documents, the candidate may no longer exist.
  func next(loads: Bool, _ meter: inout SliceBudget) throws -> IteratorStep {
    switch access {
    case .names: try nextName(loads: loads, &meter)
    case .values: try nextValue(loads: loads, &meter)
    case .points: try nextPoint(loads: loads, &meter)
    case .ordered(let scans): try nextOrdered(scans, loads: loads, &meter)
    }
  }

  /// Whether ``forEach(_:_:)`` gives the same documents as ``next(loads:_:)``.
  var isPlainScan: Bool {
    guard case .names = access else { return false }
    return !isDescending && past == nil && !isHeld
  }

  /// Calls `body` with each document of a scan of names that existed unchanged at the version, until `body` returns
  /// `false` or the slice ends. `body` may call ``takeScannedID()``, but nothing else of this iterator. Returns whether
  /// documents may be left.
  func forEach(_ meter: inout SliceBudget, _ body: (StoredDocument) throws -> Bool) throws -> Bool {
    let version = version
    let prefixCount = scan.prefixCount
    defer { scannedID = UnsafeRawBufferPointer(start: nil, count: 0) }
    return try scan.forEach { key, value in
      let document = try SnapshotReader.decode(row: value, key: key)
      meter.readDocument(bytes: document.fields.count)
      guard document.updateVersion <= version else { return !meter.isSpent }
      scannedID = UnsafeRawBufferPointer(rebasing: key[prefixCount...])
      return try body(document) && !meter.isSpent
    }
  }

  /// Copies the ID of the document that ``forEach(_:_:)`` has found to ``idCode``.
  func takeScannedID() { takeID(scannedID) }

  private func nextOrdered(_ scans: OrderedIndexIterator, loads: Bool, _ meter: inout SliceBudget) throws
    -> IteratorStep
  {
    guard points != nil else { return try nextOfOneIndex(scans, loads: loads, &meter) }
    while true {
      let step = try points?.find(&meter) ?? .end
      guard case .found = step, let nameCount = points?.nameCount else { return step }
      place.removeAll(keepingCapacity: true)
      points?.appendID(to: &place)
      let isWanted = try place.withUnsafeBytes {
        try takeName(UnsafeRawBufferPointer(rebasing: $0.suffix(nameCount)), scans)
      }
      if isWanted, try !loads || load(&meter) { return .found }
      if meter.isSpent { return .paused }
    }
  }

  /// Moves to the next entry of the only scan.
  private func nextOfOneIndex(
    _ scans: OrderedIndexIterator, loads: Bool, _ meter: inout SliceBudget
  ) throws -> IteratorStep {
    let prefixCount = scan.prefixCount
    while let entry = try scan.nextEntry() {
      meter.readEntries()
      let name = try IndexRangeIterator.name(ofEntry: entry.key, entry.value, prefixCount: prefixCount)
      if try takeName(name, scans), try !loads || load(&meter) { return .found }
      if meter.isSpent { return .paused }
    }
    return .end
  }

  /// Takes the name from an entry of a declared index. Returns `false` if its collection does not belong to the query.
  private func takeName(_ name: UnsafeRawBufferPointer, _ scans: OrderedIndexIterator) throws -> Bool {
    guard scans.isGroup else {
      takeID(name)
      return true
    }
    guard let document = NameCode.decode(Array(name)), !document.isRoot, !document.isCollection else {
      throw StorageError.corruption(path: "groupEntries", detail: "an entry without a document path")
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
    guard let entry = try scan.nextEntry() else { return .end }
    takeID(UnsafeRawBufferPointer(rebasing: entry.key[scan.prefixCount...]))
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
    let prefixCount = scan.prefixCount
    while let entry = try scan.nextEntry() {
      meter.readEntries()
      var rest = UnsafeRawBufferPointer(rebasing: entry.key[prefixCount...])
      guard OrderedCode.skipValue(&rest) != nil else {
        throw StorageError.corruption(path: "ascendingEntries", detail: "an entry with an unterminated value")
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

  /// Loads the candidate. An entry without a document is damage, which `hearth check` reports. Here it is ignored.
  private func load(_ meter: inout SliceBudget) throws(StorageError) -> Bool {
    if rowKeyCollection == number {
      rowKey.replaceEnd(from: rowPrefixCount, with: idCode)
    } else {
      rowKey.begin(.documents)
      rowKey.append(number: number)
      (rowKeyCollection, rowPrefixCount) = (number, rowKey.bytes.count)
      rowKey.append(raw: idCode)
    }
    document = try reader?.document(rowKey)
    meter.readDocument(bytes: document?.fields.count ?? 0)
    return document != nil
  }

  /// Skips up to `countMax` candidates without inspecting them and returns how many; fewer than `countMax` only at
  /// the end. Returns `nil` if the access path cannot skip.
  func skip(_ countMax: Int, _ meter: inout SliceBudget) throws(StorageError) -> Int? {
    guard past == nil else { return nil }
    guard let count = points == nil ? try scan.skip(countMax) : try points?.skip(countMax) else { return nil }
    meter.readEntries(count)
    guard let points, count > 0 else { return count }
    if case .ordered = access { place = points.idCode } else { idCode = points.idCode }
    return count
  }

  /// Whether a scan by value or of declared indexes has reached or passed the position of a document with these
  /// fields.
  func hasPassed(_ name: [UInt8], idCode: [UInt8], _ fields: EncodedMap) throws -> Bool {
    if case .ordered(let scans) = access {
      guard !place.isEmpty else { return false }
      guard var key = try scans.tailCode(of: fields) else { return true }
      key.append(contentsOf: scans.isGroup ? name : idCode)
      return Ordering.raw(key, place) != (isDescending ? .less : .greater)
    }
    guard case .values(let range) = access, !place.isEmpty else { return false }
    // A document without an entry is not a candidate.
    guard let value = try fields.value(at: range.field.path) else { return true }
    var key: [UInt8] = []
    try OrderedCode.append(value, to: &key)
    key.append(contentsOf: idCode)
    return Ordering.raw(key, place) != (isDescending ? .less : .greater)
  }

  /// Appends the ``NameCode`` of the candidate to `name`.
  func appendName(to name: inout [UInt8]) {
    name.append(contentsOf: code)
    idCode.withUnsafeBytes { OrderedCode.append(segmentOfLastID: $0, to: &name) }
  }

  private func takeID(_ suffix: UnsafeRawBufferPointer) {
    idCode.removeAll(keepingCapacity: true)
    idCode.append(raw: suffix)
  }
}
