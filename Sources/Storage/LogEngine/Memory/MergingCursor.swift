import KeyValue

/// A cursor over ``Layers``: at each key, the newest layer that has it decides.
///
/// Every source stands at the key of the current entry or beyond it, in the direction of the last move. `atActive`,
/// `atFlushing` and `atBase` say which sources stand exactly there, so the next step moves these. A change of direction
/// seeks the current key in all sources.
final class MergingCursor: KeyValueCursor {
  private enum Source {
    case none
    case active
    case flushing
    case base
  }

  private let layers: Layers
  private let base: any KeyValueCursor
  private var active: MemtablePosition
  private var flushing: MemtablePosition
  private var hasBase = false
  private var isForward = true
  /// The source of the current entry.
  private var current = Source.none
  private var atActive = false
  private var atFlushing = false
  private var atBase = false
  /// A copy of a key, for moves that change the memory of the current one.
  private var copy: [UInt8] = []

  init(_ layers: Layers) throws(StorageError) {
    self.layers = layers
    base = try layers.base.makeCursor()
    active = MemtablePosition(table: layers.active.table, ordinal: layers.ordinal)
    flushing = MemtablePosition(table: layers.flushing?.table, ordinal: layers.ordinal)
  }

  // MARK: Moving

  func seek(atOrAfter key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    current = .none
    active.seek(atOrAfter: key)
    flushing.seek(atOrAfter: key)
    hasBase = try base.seek(atOrAfter: key)
    isForward = true
    return try settle()
  }

  func seek(before key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    current = .none
    active.seek(before: key)
    flushing.seek(before: key)
    hasBase = try base.seek(before: key)
    isForward = false
    return try settle()
  }

  func next() throws(StorageError) -> Bool {
    guard current != .none else { return false }
    if !isForward { try turn(toForward: true) }
    try advance()
    return try settle()
  }

  func previous() throws(StorageError) -> Bool {
    guard current != .none else { return false }
    if isForward { try turn(toForward: false) }
    try advance()
    return try settle()
  }

  /// Places all sources for the other direction, as if the current entry had been reached in it.
  private func turn(toForward: Bool) throws(StorageError) {
    copy.removeAll(keepingCapacity: true)
    copy.append(contentsOf: key)
    isForward = toForward
    try atCopy { key throws(StorageError) in
      if toForward {
        active.seek(atOrAfter: key)
        flushing.seek(atOrAfter: key)
        hasBase = try base.seek(atOrAfter: key)
        return
      }
      // The last entry at or before the key: the one at it, or else the one before.
      active.seek(atOrBefore: key)
      flushing.seek(atOrBefore: key)
      hasBase = try base.seek(atOrAfter: key)
      if !hasBase || compareKeys(base.key, key) != 0 { hasBase = try base.seek(before: key) }
    }
    try atCopy { key throws(StorageError) in
      atActive = active.node.map { $0.compare(key) == 0 } ?? false
      atFlushing = flushing.node.map { $0.compare(key) == 0 } ?? false
      atBase = hasBase && compareKeys(base.key, key) == 0
    }
  }

  /// Calls a function with the copied key.
  private func atCopy(_ body: (UnsafeRawBufferPointer) throws(StorageError) -> Void) throws(StorageError) {
    var failure: StorageError?
    copy.withUnsafeBytes { key in
      do throws(StorageError) { try body(key) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Moves the sources that stand at the current key by one entry.
  private func advance() throws(StorageError) {
    current = .none
    if atActive { active.step(isForward) }
    if atFlushing { flushing.step(isForward) }
    if atBase { hasBase = try isForward ? base.next() : base.previous() }
  }

  /// Finds the first key, in the direction, at which the deciding source has an entry.
  private func settle() throws(StorageError) -> Bool {
    while true {
      guard let (source, key) = first() else {
        current = .none
        return false
      }
      switch source {
      case .base:
        if layers.hasRemovedRanges, let range = layers.removedRange(with: key) {
          // No entry of the data file in the range exists. The tables are past their entries before this key only.
          try skip(range)
          continue
        }
        current = .base
        return true
      case .active, .flushing:
        let version = source == .active ? active.version : flushing.version
        if let version, version.value != nil,
          !layers.hasRemovedRanges || version.ordinal > layers.removal(of: key)
        {
          current = source
          return true
        }
        try advance()
      case .none:
        return false
      }
    }
  }

  /// Moves the base past a removed range.
  private func skip(_ range: RemovedRanges.Range) throws(StorageError) {
    copy.removeAll(keepingCapacity: true)
    copy.append(contentsOf: isForward ? range.upper : range.lower)
    try atCopy { bound throws(StorageError) in
      hasBase = try isForward ? base.seek(atOrAfter: bound) : base.seek(before: bound)
    }
  }

  /// Returns the source with the first key in the direction, the newest of those with the same key, and notes all of
  /// them.
  private func first() -> (Source, UnsafeRawBufferPointer)? {
    var best: (Source, UnsafeRawBufferPointer)?
    atActive = false
    atFlushing = false
    atBase = false
    if let node = active.node {
      best = (.active, node.key)
      atActive = true
    }
    if let node = flushing.node {
      let order = compare(node.key, best?.1)
      if order < 0 {
        best = (.flushing, node.key)
        atActive = false
      }
      atFlushing = order <= 0
    }
    if hasBase {
      let key = base.key
      let order = compare(key, best?.1)
      if order < 0 {
        best = (.base, key)
        atActive = false
        atFlushing = false
      }
      atBase = order <= 0
    }
    return best
  }

  /// Compares two keys in the direction. A missing key comes last.
  private func compare(_ key: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer?) -> Int {
    guard let other else { return -1 }
    return isForward ? compareKeys(key, other) : compareKeys(other, key)
  }

  // MARK: The current entry

  var key: UnsafeRawBufferPointer {
    switch current {
    case .active: active.node?.key ?? noBytes
    case .flushing: flushing.node?.key ?? noBytes
    case .base: base.key
    case .none: preconditionFailure("the cursor is not at an entry")
    }
  }

  var value: UnsafeRawBufferPointer {
    switch current {
    case .active: active.version?.value ?? noBytes
    case .flushing: flushing.version?.value ?? noBytes
    case .base: base.value
    case .none: preconditionFailure("the cursor is not at an entry")
    }
  }

  private var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}

/// A place in a memtable: a node with a version that the reader sees, or none.
private struct MemtablePosition {
  private(set) var node: MemtableNode?
  private(set) var version: MemtableVersion?
  private let table: Memtable?
  private let ordinal: UInt64

  init(table: Memtable?, ordinal: UInt64) {
    self.table = table
    self.ordinal = ordinal
  }

  mutating func seek(atOrAfter key: UnsafeRawBufferPointer) {
    node = table?.node(atOrAfter: key)
    settleForward()
  }

  mutating func seek(before key: UnsafeRawBufferPointer) {
    node = table?.node(before: key)
    settleBackward()
  }

  mutating func seek(atOrBefore key: UnsafeRawBufferPointer) {
    node = table?.node(atOrAfter: key)
    version = node?.version(at: ordinal)
    if version == nil || node?.compare(key) != 0 { seek(before: key) }
  }

  mutating func step(_ isForward: Bool) {
    guard let current = node else { return }
    if isForward {
      node = current.next(0)
      settleForward()
    } else {
      seek(before: current.key)
    }
  }

  private mutating func settleForward() {
    while let candidate = node {
      version = candidate.version(at: ordinal)
      if version != nil { return }
      node = candidate.next(0)
    }
  }

  private mutating func settleBackward() {
    while let candidate = node {
      version = candidate.version(at: ordinal)
      if version != nil { return }
      node = table?.node(before: candidate.key)
    }
  }
}
