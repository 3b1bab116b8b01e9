import DocumentModel
import KeyEncoding
import KeyValue

/// An iterator over the document IDs that are in all of several entry ranges, in name order. Each range holds the
/// entries of one value.
///
/// The ranges take turns seeking to the ID that another range has found. The iterator continues across snapshots,
/// because it keeps the current ID in its own memory.
struct IntersectionIterator {
  /// The ID found last, as ``OrderedCode/append(lastID:to:)`` writes it. For entries of declared indexes, it follows
  /// the codes of the order's fields; for those over a collection group, it is a whole path.
  private(set) var idCode: [UInt8] = []
  /// For entries of declared indexes: the number of bytes at the end of ``idCode`` that are the name.
  private(set) var nameCount = 0
  /// Whether ``idCode`` was found and not taken yet.
  private(set) var hasID = false
  private(set) var isAtEnd = false

  private var ranges: [IndexRangeIterator]
  private let isOfDeclaredIndexes: Bool
  /// While the ranges seek each other: the number of ranges that agree on ``idCode``, and the range to seek next.
  private var agreeing = 0
  private var asked = 0

  init(_ ranges: [IndexRangeIterator], isOfDeclaredIndexes: Bool = false) {
    self.ranges = ranges
    self.isOfDeclaredIndexes = isOfDeclaredIndexes
  }

  mutating func open(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    for index in ranges.indices { try ranges[index].open(snapshot) }
  }

  mutating func close() {
    for index in ranges.indices { ranges[index].close() }
  }

  /// Finds the next ID.
  mutating func find(_ meter: inout SliceBudget) throws(StorageError) -> IteratorStep {
    if isAtEnd { return .end }
    if agreeing == 0 {
      guard try ranges[0].next() else { return end() }
      meter.readEntries()
      try take(0)
      (agreeing, asked) = (1, 1)
    }
    while agreeing < ranges.count {
      if asked == ranges.count { asked = 0 }
      guard try ranges[asked].seek(idCode) else { return end() }
      meter.readEntries(4)
      let found = ranges[asked].suffix
      defer { asked += 1 }
      if idCode.withUnsafeBytes({ Ordering.raw($0, found) }) == .equal {
        agreeing += 1
      } else {
        try take(asked)
        agreeing = 1
        // This check follows some progress, so that every slice gets further than the one before it.
        if meter.isSpent { return .paused }
      }
    }
    agreeing = 0
    hasID = true
    return .found
  }

  /// Marks the ID as taken, so that ``find(_:)`` moves to the next one.
  mutating func takeID() { hasID = false }

  /// Skips up to `countMax` IDs without inspecting them and returns how many. Returns `nil` if several ranges must
  /// agree.
  mutating func skip(_ countMax: Int) throws(StorageError) -> Int? {
    guard ranges.count == 1, agreeing == 0, !hasID else { return nil }
    let count = try ranges[0].skip(countMax)
    if count < countMax { isAtEnd = true } else { try take(0) }
    return count
  }

  private mutating func end() -> IteratorStep {
    isAtEnd = true
    return .end
  }

  /// Copies the ID of a range's entry.
  private mutating func take(_ range: Int) throws(StorageError) {
    guard var value = ranges[range].copySuffix(to: &idCode), isOfDeclaredIndexes else { return }
    guard let count = OrderedCode.takeNumber(&value), count <= idCode.count else {
      throw .corruption(path: "compositeEntries", detail: "an entry without the position of the name")
    }
    nameCount = Int(count)
  }
}

/// An iterator over the IDs that any of several scans finds, without duplicates, in name order.
struct UnionIterator {
  private var scans: [IntersectionIterator]
  private let isDescending: Bool
  private var current = 0

  init(_ scans: [IntersectionIterator], isDescending: Bool) {
    self.scans = scans
    self.isDescending = isDescending
  }

  /// The ID found last.
  var idCode: [UInt8] { scans[current].idCode }
  /// Appends ``idCode`` to `bytes`.
  func appendID(to bytes: inout [UInt8]) { bytes.append(contentsOf: scans[current].idCode) }
  /// The number of bytes of the name; see ``IntersectionIterator/nameCount``.
  var nameCount: Int { scans[current].nameCount }

  mutating func open(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    for index in scans.indices { try scans[index].open(snapshot) }
  }

  mutating func close() {
    for index in scans.indices { scans[index].close() }
  }

  /// Finds the next ID.
  mutating func find(_ meter: inout SliceBudget) throws(StorageError) -> IteratorStep {
    if scans.count == 1 {
      if !scans[0].hasID {
        let step = try scans[0].find(&meter)
        guard step == .found else { return step }
      }
      scans[0].takeID()
      return .found
    }
    var best: Int?
    for index in scans.indices {
      if !scans[index].hasID {
        switch try scans[index].find(&meter) {
        case .paused: return .paused
        case .end: continue
        case .found: break
        }
      }
      guard let known = best else {
        best = index
        continue
      }
      if Ordering.raw(scans[index].idCode, scans[known].idCode) == (isDescending ? .greater : .less) { best = index }
    }
    guard let best else { return .end }
    current = best
    for index in scans.indices where scans[index].hasID {
      if index == best || scans[index].idCode == scans[best].idCode { scans[index].takeID() }
    }
    return .found
  }

  /// Skips IDs as ``IntersectionIterator/skip(_:)`` does. Returns `nil` if there are several scans.
  mutating func skip(_ countMax: Int) throws(StorageError) -> Int? {
    scans.count == 1 ? try scans[0].skip(countMax) : nil
  }
}
