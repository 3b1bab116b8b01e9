import KeyValue

typealias Bytes = [UInt8]

/// Calls a closure with an array's bytes and a typed error, which the standard library does not support yet.
func withBytes<Result>(
  _ bytes: Bytes, _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Result
) throws(StorageError) -> Result {
  var outcome: Swift.Result<Result, StorageError>?
  bytes.withUnsafeBytes { buffer in
    do throws(StorageError) {
      outcome = .success(try body(buffer))
    } catch {
      outcome = .failure(error)
    }
  }
  return try outcome!.get()
}

extension KeyValueSnapshot {
  func get(_ key: Bytes) throws(StorageError) -> Bytes? {
    try withBytes(key) { key throws(StorageError) in try value(for: key).map { Bytes($0) } }
  }

  /// Returns every entry, in cursor order.
  func entries() throws(StorageError) -> [Entry] {
    let cursor = try makeCursor()
    var entries: [Entry] = []
    var isAtEntry = try cursor.seek(atOrAfter: [])
    while isAtEntry {
      entries.append(cursor.entry)
      isAtEntry = try cursor.next()
    }
    return entries
  }

  /// Returns every entry, from last to first.
  func entriesBackwards() throws(StorageError) -> [Entry] {
    let cursor = try makeCursor()
    var entries: [Entry] = []
    var isAtEntry = try cursor.seek(before: Bytes(repeating: 0xFF, count: KeyValueLimits.keyBytesMax + 1))
    while isAtEntry {
      entries.append(cursor.entry)
      isAtEntry = try cursor.previous()
    }
    return entries
  }
}

extension KeyValueTransaction {
  func put(_ key: Bytes, _ value: Bytes) throws(StorageError) {
    try withBytes(key) { key throws(StorageError) in
      try withBytes(value) { value throws(StorageError) in try put(key, value) }
    }
  }

  @discardableResult
  func remove(_ key: Bytes) throws(StorageError) -> Bool {
    try withBytes(key) { key throws(StorageError) in try remove(key) }
  }

  @discardableResult
  func removeRange(from lower: Bytes, to upper: Bytes) throws(StorageError) -> Int {
    try withBytes(lower) { lower throws(StorageError) in
      try withBytes(upper) { upper throws(StorageError) in try removeRange(from: lower, to: upper) }
    }
  }
}

extension KeyValueCursor {
  func seek(atOrAfter key: Bytes) throws(StorageError) -> Bool {
    try withBytes(key) { key throws(StorageError) in try seek(atOrAfter: key) }
  }

  func seek(before key: Bytes) throws(StorageError) -> Bool {
    try withBytes(key) { key throws(StorageError) in try seek(before: key) }
  }

  var entry: Entry { Entry(Bytes(key), Bytes(value)) }
}

extension KeyValueStore {
  func put(_ entries: [Entry]) throws(StorageError) {
    try write { transaction throws(StorageError) in
      for entry in entries { try transaction.put(entry.key, entry.value) }
    }
  }

  func entries() throws(StorageError) -> [Entry] {
    let snapshot = try snapshot()
    defer { snapshot.end() }
    return try snapshot.entries()
  }
}

/// A key and its value, ordered by key.
struct Entry: Equatable, Comparable, CustomStringConvertible {
  var key: Bytes
  var value: Bytes

  init(_ key: Bytes, _ value: Bytes) {
    self.key = key
    self.value = value
  }

  static func < (a: Entry, b: Entry) -> Bool {
    a.key.lexicographicallyPrecedes(b.key)
  }

  /// The lengths and the first bytes only, to keep failure messages readable.
  var description: String {
    "\(key.count) B \(key.suffix(4)): \(value.count) B \(value.prefix(4))"
  }
}
