import KeyValue

/// A memtable as one reader sees it, with the ranges that it removes.
struct MemtableLayer: Sendable {
  var table: Memtable
  var ranges = RemovedRanges()

  /// Adds the operations of a commit from the log. `ordinal` is the number of the last operation before and after them.
  mutating func add(_ batch: UnsafeRawBufferPointer, ordinal: inout UInt64) throws(CommitBatchError) {
    var reader = try CommitBatchReader(batch)
    while let operation = try reader.next() {
      ordinal += 1
      switch operation {
      case .put(let key, let value): table.add(key, value, ordinal: ordinal)
      case .remove(let key): table.add(key, nil, ordinal: ordinal)
      case .removeRange(let lower, let upper): ranges.insert(from: lower, to: upper, ordinal: ordinal)
      }
    }
  }
}

/// The data that a snapshot or a write transaction reads: one or two memtables over a snapshot of the data file.
///
/// The layers of a snapshot do not change. Those of a write transaction change with its writes; `generation` counts them.
final class Layers {
  /// The table that the writer fills.
  var active: MemtableLayer
  /// The table before it, while it is written to the data file.
  let flushing: MemtableLayer?
  /// The newest operation that is visible.
  let ordinal: UInt64
  let base: any KeyValueSnapshot

  init(active: MemtableLayer, flushing: MemtableLayer?, ordinal: UInt64, base: any KeyValueSnapshot) {
    self.active = active
    self.flushing = flushing
    self.ordinal = ordinal
    self.base = base
  }

  /// Returns the value of a key, or `nil` if it does not exist.
  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
    var removed = active.ranges.isEmpty ? 0 : active.ranges.ordinal(of: key)
    if let version = active.table.version(of: key, at: ordinal) {
      return version.ordinal > removed ? version.value : nil
    }
    if let flushing {
      removed = max(removed, flushing.ranges.ordinal(of: key))
      if let version = flushing.table.version(of: key, at: ordinal) {
        return version.ordinal > removed ? version.value : nil
      }
    }
    return removed > 0 ? nil : try base.value(for: key)
  }

  /// Returns the ordinal of the newest operation that removed a range with a key, or 0.
  func removal(of key: UnsafeRawBufferPointer) -> UInt64 {
    let newest = active.ranges.ordinal(of: key)
    return newest > 0 ? newest : flushing?.ranges.ordinal(of: key) ?? 0
  }

  /// Returns a removed range that contains a key, or `nil`.
  func removedRange(with key: UnsafeRawBufferPointer) -> RemovedRanges.Range? {
    if let index = active.ranges.index(of: key) { return active.ranges.ranges[index] }
    guard let flushing, let index = flushing.ranges.index(of: key) else { return nil }
    return flushing.ranges.ranges[index]
  }

  var hasRemovedRanges: Bool { !active.ranges.isEmpty || !(flushing?.ranges.isEmpty ?? true) }
}
