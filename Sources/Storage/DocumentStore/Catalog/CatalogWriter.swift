import CXXHash
import DocumentModel
import KeyEncoding
import KeyValue

/// Assigns the numbers of collections and fields, inside the write transaction. Owned by the writer.
///
/// A number is never reused: rows outlive the documents they were made for, because the history may still need
/// them. Numbers are kept in a bounded cache. Call ``forget()`` after a transaction was rolled back.
struct CatalogWriter {

  private var collections: [ResourcePath: UInt64] = [:]
  /// Field numbers by a 64-bit hash of the parent's number and the name. The stored name detects collisions.
  private var fields: [UInt64: (parent: UInt64, name: [UInt8], number: UInt64)] = [:]
  private var nextCollection: UInt64?
  private var nextField: UInt64?
  private var key = StorageKey()

  private static let cachedMax = 1 << 16

  /// Empties the cache.
  mutating func forget() {
    collections.removeAll()
    fields.removeAll()
    nextCollection = nil
    nextField = nil
  }

  /// Returns the number of a collection, assigning one if it has none.
  mutating func collectionNumber(
    _ path: ResourcePath, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> UInt64 {
    if let number = collections[path] { return number }
    var reader = SnapshotReader(transaction)
    let number: UInt64
    if let row = try reader.collection(path) {
      number = row.number
    } else {
      number = if let next = nextCollection { next } else { try reader.meta(.collectionNumber) + 1 }
      nextCollection = number + 1
      try writeCollection(path, number: number, transaction)
    }
    if collections.count >= Self.cachedMax { collections.removeAll(keepingCapacity: true) }
    collections[path] = number
    return number
  }

  private mutating func writeCollection(
    _ path: ResourcePath, number: UInt64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    try setLastChange(path, number: number, version: 0, transaction)
    key.begin(.collectionPaths)
    key.append(number: number)
    try transaction.put(key, path.bytes)
    key.begin(.collectionGroups)
    key.append(segment: path.lastSegment)
    key.append(number: number)
    try transaction.put(key, [])
    try transaction.put(.collectionNumber, number)
  }

  /// Stores the version of a collection's last change.
  mutating func setLastChange(
    _ path: ResourcePath, number: UInt64, version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    key.begin(.collections)
    key.append(path: path)
    var row = [UInt8]()
    row.reserveCapacity(16)
    withUnsafeBytes(of: number.littleEndian) { row.append(contentsOf: $0) }
    withUnsafeBytes(of: version.littleEndian) { row.append(contentsOf: $0) }
    try transaction.put(key, row)
  }

  /// Returns the number of a field, assigning one if it has none. `parent` is 0 at the top of a document.
  mutating func fieldNumber(
    _ name: UnsafeRawBufferPointer, parent: UInt64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> UInt64 {
    let hash = XXH3_64bits_withSeed(name.baseAddress, name.count, parent)
    if let cached = fields[hash], cached.parent == parent, cached.name.elementsEqual(name) { return cached.number }
    key.begin(.fields)
    key.append(number: parent)
    key.append(raw: name)
    let number: UInt64
    if let row = try key.withBytes({ (key) throws(StorageError) in try transaction.value(for: key) }) {
      guard row.count == 8 else { throw .corruption(path: "fields", detail: "a row has \(row.count) bytes, not 8") }
      number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    } else {
      var reader = SnapshotReader(transaction)
      number = if let next = nextField { next } else { try reader.meta(.fieldNumber) + 1 }
      nextField = number + 1
      try transaction.put(key, number)
      key.begin(.fieldNames)
      key.append(number: number)
      var row: [UInt8] = []
      OrderedCode.append(number: parent, to: &row)
      row.append(contentsOf: name)
      try transaction.put(key, row)
      try transaction.put(.fieldNumber, number)
    }
    if fields.count >= Self.cachedMax { fields.removeAll(keepingCapacity: true) }
    fields[hash] = (parent, Array(name), number)
    return number
  }
}

extension KeyValueTransaction {
  /// Stores bytes under a key.
  func put(_ key: borrowing StorageKey, _ value: [UInt8]) throws(StorageError) {
    try key.withBytes { (key) throws(StorageError) in
      var failure: StorageError?
      value.withUnsafeBytes { value in
        do throws(StorageError) { try put(key, value) } catch { failure = error }
      }
      if let failure { throw failure }
    }
  }

  /// Stores a number under a key, little-endian.
  func put(_ key: borrowing StorageKey, _ number: UInt64) throws(StorageError) {
    var bytes = number.littleEndian
    try key.withBytes { (key) throws(StorageError) in
      var failure: StorageError?
      withUnsafeBytes(of: &bytes) { value in
        do throws(StorageError) { try put(key, value) } catch { failure = error }
      }
      if let failure { throw failure }
    }
  }

  /// Stores a number in ``Table/meta``.
  func put(_ name: MetaKey, _ number: UInt64) throws(StorageError) {
    var key = StorageKey()
    key.begin(name)
    try put(key, number)
  }

  /// Removes every entry of a table.
  func removeAll(of table: Table) throws(StorageError) {
    var lower = StorageKey()
    lower.begin(table)
    var upper = lower
    upper.becomeUpperBound()
    try lower.withBytes { (lower) throws(StorageError) in
      try upper.withBytes { (upper) throws(StorageError) in _ = try removeRange(from: lower, to: upper) }
    }
  }

  /// Removes the entry under a key.
  @discardableResult
  func remove(_ key: borrowing StorageKey) throws(StorageError) -> Bool {
    try key.withBytes { (key) throws(StorageError) in try remove(key) }
  }
}
