import DocumentModel
import DocumentStore
import FieldMatch
import KeyValueStore

/// Document ids that index entries name, as ``OrderedCode/append(lastID:to:)`` writes them.
protocol EntrySource: AnyObject {
  /// The next id code, or `nil` at the end.
  func next() throws -> [UInt8]?
  /// Entries read so far.
  var entriesRead: Int { get }
}

/// A range of the entries of one field of one collection.
struct EntryRange: Hashable, Sendable {
  var table: Table
  var collection: UInt64
  var field: UInt64
  /// Codes of values: from `lower` on, below `upper`. Both are prefixes of keys; `nil` is the end of the field.
  var lower: [UInt8]
  var upper: [UInt8]?
  /// Whether all entries have one value, so that they come in name order.
  var isPoint: Bool
}

/// The entries of a range, from either end: by value, then by name.
final class EntryScan: EntrySource {
  private(set) var entriesRead = 0
  private let cursor: any KeyValueCursor
  private let prefix: [UInt8]
  private let range: EntryRange
  private let isDescending: Bool
  private var isStarted = false
  private var upperKey = StorageKey()
  private var lowerKey = StorageKey()

  init(_ snapshot: any KeyValueSnapshot, _ range: EntryRange, isDescending: Bool) throws(StorageError) {
    cursor = try snapshot.makeCursor()
    self.range = range
    self.isDescending = isDescending
    lowerKey.begin(range.table)
    lowerKey.append(number: range.collection)
    lowerKey.append(number: range.field)
    prefix = lowerKey.bytes
    upperKey.begin(raw: prefix)
    lowerKey.append(raw: range.lower)
    if let upper = range.upper { upperKey.append(raw: upper) } else { upperKey.becomeUpperBound() }
  }

  func next() throws -> [UInt8]? {
    guard try move(), isInside() else { return nil }
    entriesRead += 1
    var rest = UnsafeRawBufferPointer(rebasing: cursor.key[prefix.count...])
    guard OrderedCode.skipValue(&rest) != nil else {
      throw StorageError.corruption(path: "ascendingEntries", detail: "an entry whose value does not end")
    }
    return Array(rest)
  }

  /// Moves to the first entry at or behind an id of a point range (before it, when descending).
  func seek(id code: [UInt8]) throws(StorageError) {
    var key = StorageKey()
    key.begin(raw: lowerKey.bytes)
    key.append(raw: code)
    isStarted = true
    if isDescending {
      key.append(raw: CollectionOfOne(0))
      isAtEntry = try key.withBytes { (key) throws(StorageError) in try cursor.seek(before: key) }
    } else {
      isAtEntry = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    }
    hasPending = true
  }

  private var isAtEntry = false
  private var hasPending = false

  private func move() throws(StorageError) -> Bool {
    if hasPending {
      hasPending = false
      return isAtEntry
    }
    if isStarted { return isDescending ? try cursor.previous() : try cursor.next() }
    isStarted = true
    return isDescending
      ? try upperKey.withBytes { (key) throws(StorageError) in try cursor.seek(before: key) }
      : try lowerKey.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
  }

  private func isInside() -> Bool {
    isDescending
      ? Ordering.bytes(cursor.key, lowerKey.bytes) != .less : Ordering.bytes(cursor.key, upperKey.bytes) == .less
  }
}

/// The ids that all of several point ranges name, in name order: each leaps to where the others are.
final class EntryIntersection: EntrySource {
  private let scans: [EntryScan]
  private let isDescending: Bool

  init(_ snapshot: any KeyValueSnapshot, _ ranges: [EntryRange], isDescending: Bool) throws(StorageError) {
    var scans: [EntryScan] = []
    for range in ranges { scans.append(try EntryScan(snapshot, range, isDescending: isDescending)) }
    self.scans = scans
    self.isDescending = isDescending
  }

  var entriesRead: Int { scans.reduce(0) { $0 + $1.entriesRead } }

  func next() throws -> [UInt8]? {
    guard var candidate = try scans.first?.next() else { return nil }
    var agreeing = 1
    var index = 1 % scans.count
    while agreeing < scans.count {
      try scans[index].seek(id: candidate)
      guard let found = try scans[index].next() else { return nil }
      if found == candidate {
        agreeing += 1
      } else {
        candidate = found
        agreeing = 1
      }
      index = (index + 1) % scans.count
    }
    return candidate
  }
}

/// The ids that any of several sources name, each once, in name order.
final class EntryUnion: EntrySource {
  private var heads: [(id: [UInt8], source: any EntrySource)?] = []
  private let sources: [any EntrySource]
  private let isDescending: Bool
  private var isStarted = false

  init(_ sources: [any EntrySource], isDescending: Bool) {
    self.sources = sources
    self.isDescending = isDescending
  }

  var entriesRead: Int { sources.reduce(0) { $0 + $1.entriesRead } }

  func next() throws -> [UInt8]? {
    if !isStarted {
      isStarted = true
      for source in sources { heads.append(try source.next().map { ($0, source) }) }
    }
    var best: [UInt8]?
    for head in heads {
      guard let id = head?.id else { continue }
      guard let known = best else {
        best = id
        continue
      }
      if Ordering.bytes(id, known) == (isDescending ? .greater : .less) { best = id }
    }
    guard let best else { return nil }
    for index in heads.indices {
      guard let head = heads[index], head.id == best else { continue }
      heads[index] = try head.source.next().map { ($0, head.source) }
    }
    return best
  }
}
