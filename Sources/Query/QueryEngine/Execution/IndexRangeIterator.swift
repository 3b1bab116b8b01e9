import DocumentModel
import Glibc
import KeyEncoding
import KeyValue

/// An iterator over the keys of a range that share a prefix, in either direction.
///
/// It has a cursor only between ``open(_:)`` and ``close()``. Between snapshots it keeps the position from which to
/// continue.
struct IndexRangeIterator {
  /// The length of the prefix.
  let prefixCount: Int
  private let isDescending: Bool
  /// The rest of the range, as whole keys. The upper one is exclusive.
  private var lower: [UInt8]
  private var upper: [UInt8]
  private var cursor: (any KeyValueCursor)?
  private(set) var isAtEntry = false
  private var isAtEnd = false

  /// Scans the keys that begin with `prefix` and whose rest is at or above `lower` and below `upper`.
  init(prefix: [UInt8], from lower: [UInt8] = [], to upper: [UInt8]? = nil, isDescending: Bool) {
    prefixCount = prefix.count
    self.isDescending = isDescending
    self.lower = prefix + lower
    self.upper = upper.map { prefix + $0 } ?? QueryPlanner.successor(of: prefix)
  }

  mutating func open(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    guard !isAtEnd else { return }
    cursor = try snapshot.makeCursor()
    isAtEntry = false
  }

  mutating func close() {
    if isAtEntry, let cursor { leave(cursor.key) }
    cursor = nil
    isAtEntry = false
  }

  private mutating func leave(_ key: UnsafeRawBufferPointer) {
    if isDescending {
      upper.removeAll(keepingCapacity: true)
      upper.append(raw: key)
    } else {
      lower.removeAll(keepingCapacity: true)
      lower.append(raw: key)
      lower.append(0)
    }
  }

  /// Moves to the next key. Returns `false` at the end.
  mutating func next() throws(StorageError) -> Bool {
    guard let cursor, !isAtEnd else { return false }
    let isThere: Bool
    if isAtEntry {
      isThere = isDescending ? try cursor.previous() : try cursor.next()
    } else {
      isThere = isDescending ? try Self.seek(cursor, before: upper) : try Self.seek(cursor, atOrAfter: lower)
    }
    return settle(isThere, cursor)
  }

  /// Moves to the first key at or after the key with this suffix, in scan order. The key must not precede the
  /// current position. Returns `false` at the end.
  mutating func seek(_ suffix: [UInt8]) throws(StorageError) -> Bool {
    guard let cursor, !isAtEnd else { return false }
    var key = Array(lower[..<prefixCount])
    key.append(contentsOf: suffix)
    if isDescending { key.append(0) }
    let isThere = isDescending ? try Self.seek(cursor, before: key) : try Self.seek(cursor, atOrAfter: key)
    return settle(isThere, cursor)
  }

  /// Skips up to `countMax` keys without inspecting them and returns how many; fewer than `countMax` only at the
  /// end.
  mutating func skip(_ countMax: Int) throws(StorageError) -> Int {
    guard countMax > 0, try next(), let cursor else { return 0 }
    var count = 1
    guard !isDescending else {
      while count < countMax, try next() { count += 1 }
      return count
    }
    while count < countMax {
      guard try cursor.next(), isBelowUpper(cursor.key) else {
        isAtEntry = false
        isAtEnd = true
        break
      }
      count += 1
    }
    return count
  }

  /// Calls `body` with each entry of an ascending scan until it returns `false` or no entry is left. `body` must not
  /// use the iterator. Returns whether entries may be left; the iterator is then at the last one that `body` received.
  mutating func forEach(
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    guard try next(), let cursor else { return false }
    while try body(cursor.key, cursor.value) {
      guard try cursor.next(), isBelowUpper(cursor.key) else {
        isAtEntry = false
        isAtEnd = true
        return false
      }
    }
    return true
  }

  @inline(__always)
  private func isBelowUpper(_ key: UnsafeRawBufferPointer) -> Bool {
    upper.withUnsafeBytes { upper in
      guard let left = key.baseAddress, let right = upper.baseAddress else { return !upper.isEmpty }
      let order = memcmp(left, right, min(key.count, upper.count))
      return order == 0 ? key.count < upper.count : order < 0
    }
  }

  private mutating func settle(_ isThere: Bool, _ cursor: any KeyValueCursor) -> Bool {
    isAtEntry = isThere && isInside(cursor.key)
    isAtEnd = !isAtEntry
    return isAtEntry
  }

  private func isInside(_ key: UnsafeRawBufferPointer) -> Bool {
    isDescending
      ? lower.withUnsafeBytes { Ordering.raw(key, $0) != .less }
      : upper.withUnsafeBytes { Ordering.raw(key, $0) == .less }
  }

  private static func seek(_ cursor: any KeyValueCursor, before key: [UInt8]) throws(StorageError) -> Bool {
    try lend(key) { (key) throws(StorageError) in try cursor.seek(before: key) }
  }

  private static func seek(_ cursor: any KeyValueCursor, atOrAfter key: [UInt8]) throws(StorageError) -> Bool {
    try lend(key) { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
  }

  private static func lend(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Bool
  ) throws(StorageError) -> Bool {
    // `withUnsafeBytes` rethrows untyped errors, so the outcome is returned as a value.
    try bytes.withUnsafeBytes { bytes -> Result<Bool, StorageError> in
      do throws(StorageError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }.get()
  }

  /// The part of the current key after the prefix. Valid until the scan moves.
  var suffix: UnsafeRawBufferPointer {
    guard let cursor else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(rebasing: cursor.key[prefixCount...])
  }

  /// Replaces the content of `bytes` by the part of the current key after the prefix. Returns the value of the entry, which
  /// is valid until the scan moves, or `nil` if the scan is at no entry.
  mutating func copySuffix(to bytes: inout [UInt8]) -> UnsafeRawBufferPointer? {
    bytes.removeAll(keepingCapacity: true)
    guard let cursor else { return nil }
    bytes.append(raw: UnsafeRawBufferPointer(rebasing: cursor.key[prefixCount...]))
    return cursor.value
  }

  /// Returns the name at the end of the key of a declared index's entry. The value contains its length.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the value is damaged.
  static func name(
    ofEntry key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, prefixCount: Int
  ) throws(StorageError) -> UnsafeRawBufferPointer {
    var value = value
    guard let count = OrderedCode.takeNumber(&value), count <= key.count - prefixCount else {
      throw .corruption(path: "compositeEntries", detail: "an entry without the position of the name")
    }
    return UnsafeRawBufferPointer(rebasing: key.suffix(Int(count)))
  }

  /// Moves to the next entry. Returns `nil` at the end. The bytes are valid until the scan moves.
  mutating func nextEntry() throws(StorageError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    guard try next(), let cursor else { return nil }
    return (cursor.key, cursor.value)
  }
}
