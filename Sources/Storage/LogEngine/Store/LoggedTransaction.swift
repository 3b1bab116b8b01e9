import KeyValue

/// The write transaction of a ``LoggedStore``. It adds its operations to the memtable at once, above the ordinal that
/// readers see, and records them in a ``CommitBatch``. A rollback withdraws them again.
///
/// Every transaction has its own object, so that one that is used too late traps instead of changing the next.
final class LoggedTransaction: KeyValueTransaction {
  /// The operations so far.
  private(set) var batch: CommitBatch
  /// The ordinal of the last operation.
  private(set) var ordinal: UInt64
  /// `nil` after the end.
  private var layers: Layers?
  /// The newest operation that readers see, and the ranges that were removed until then.
  private let published: UInt64
  private let singleRemovalsMax: Int
  private var firstFailure: StorageError?

  /// Begins a transaction. The base of `layers` is a snapshot that the transaction ends. `batch` has no operations.
  init(_ layers: Layers, after published: UInt64, reusing batch: CommitBatch, singleRemovalsMax: Int) {
    self.singleRemovalsMax = singleRemovalsMax
    self.layers = layers
    self.batch = batch
    self.published = published
    ordinal = published
  }

  /// Returns the removed ranges after all operations, or throws the error that prevents a commit.
  func finish() throws(StorageError) -> RemovedRanges {
    if let firstFailure { throw firstFailure }
    return current.active.ranges
  }

  /// Withdraws all operations.
  func rollBack() {
    let table = current.active.table
    batch.bytes.withUnsafeBytes { bytes in
      guard var reader = try? CommitBatchReader(bytes) else { return }
      while let operation = try? reader.next() {
        switch operation {
        case .put(let key, _), .remove(let key): table.withdraw(key, above: published)
        case .removeRange: break
        }
      }
    }
  }

  /// Releases what the transaction reads. Returns its batch for the next one.
  func close() -> CommitBatch {
    layers?.base.end()
    layers = nil
    // Only one owner is left, so the next transaction reuses its memory.
    defer { batch = CommitBatch() }
    return batch
  }

  /// Does nothing: a write transaction ends with its closure.
  func end() {}

  private var current: Layers {
    guard let layers else { preconditionFailure("a write transaction was used after its closure") }
    return layers
  }

  // MARK: Reading

  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
    try current.value(for: key)
  }

  func makeCursor() throws(StorageError) -> any KeyValueCursor { try MergingCursor(current) }

  // MARK: Writing

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageError) {
    guard !key.isEmpty, key.count <= KeyValueLimits.keyBytesMax, value.count <= KeyValueLimits.valueBytesMax else {
      throw .oversized(keyBytes: key.count, valueBytes: value.count)
    }
    ordinal += 1
    current.active.table.add(key, value, ordinal: ordinal)
    batch.put(key, value)
  }

  @discardableResult
  func remove(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    guard !key.isEmpty, key.count <= KeyValueLimits.keyBytesMax else { return false }
    do throws(StorageError) {
      guard try current.value(for: key) != nil else { return false }
    } catch {
      throw note(error)
    }
    removeExisting(key)
    return true
  }

  private func removeExisting(_ key: UnsafeRawBufferPointer) {
    ordinal += 1
    current.active.table.add(key, nil, ordinal: ordinal)
    batch.remove(key)
  }

  @discardableResult
  func removeRange(
    from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer
  ) throws(StorageError) -> Int {
    var keys: [[UInt8]] = []
    var count = 0
    do throws(StorageError) {
      let cursor = try makeCursor()
      var isAtEntry = try cursor.seek(atOrAfter: lower)
      while isAtEntry, compareKeys(cursor.key, upper) < 0 {
        count += 1
        if count <= singleRemovalsMax { keys.append([UInt8](cursor.key)) }
        isAtEntry = try cursor.next()
      }
    } catch {
      throw note(error)
    }
    if count <= singleRemovalsMax {
      for key in keys { key.withUnsafeBytes { removeExisting($0) } }
    } else {
      ordinal += 1
      current.active.ranges.insert(from: lower, to: upper, ordinal: ordinal)
      batch.removeRange(from: lower, to: upper)
    }
    return count
  }

  private func note(_ error: StorageError) -> StorageError {
    if firstFailure == nil { firstFailure = error }
    return error
  }
}
