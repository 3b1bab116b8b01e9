package import KeyValue

extension KeyValueSnapshot {
  /// Returns a copy of the value of a key, or `nil` if the key does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func read(_ key: [UInt8]) throws(StorageError) -> [UInt8]? {
    let key = Bytes(key)
    return try key.lend { (key) throws(StorageError) in try value(for: key).map(Array.init) }
  }
}

extension KeyValueStore {
  /// Returns a copy of the newest value of a key, or `nil` if the key does not exist.
  /// - Throws: ``StorageError`` if the read fails.
  package func read(_ key: [UInt8]) throws(StorageError) -> [UInt8]? {
    let snapshot = try snapshot()
    defer { snapshot.end() }
    return try snapshot.read(key)
  }

  /// Returns copies of the first `limit` rows whose keys begin with `prefix`, in key order: each key without the
  /// prefix, and its value.
  /// - Throws: ``StorageError`` if the read fails.
  package func rows(_ prefix: AccountsKey, limit: Int) throws(StorageError) -> [(key: [UInt8], value: [UInt8])] {
    let snapshot = try snapshot()
    defer { snapshot.end() }
    return try snapshot.rows(prefix, limit: limit)
  }
}

extension KeyValueSnapshot {
  /// Returns copies of the first `limit` rows whose keys begin with `prefix`, in key order: each key without the
  /// prefix, and its value.
  /// - Throws: ``StorageError`` if the read fails.
  package func rows(_ prefix: AccountsKey, limit: Int) throws(StorageError) -> [(key: [UInt8], value: [UInt8])] {
    let cursor = try makeCursor()
    let prefix = prefix.bytes
    var rows: [(key: [UInt8], value: [UInt8])] = []
    var isAtRow = try Bytes(prefix).lend { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    while isAtRow, rows.count < limit, cursor.key.starts(with: prefix) {
      rows.append((Array(cursor.key.dropFirst(prefix.count)), Array(cursor.value)))
      isAtRow = try cursor.next()
    }
    return rows
  }
}

extension KeyValueSnapshot {
  /// Returns the number of rows whose keys begin with `prefix`. Cost: one step for each.
  /// - Throws: ``StorageError`` if the read fails.
  package func count(_ prefix: AccountsKey) throws(StorageError) -> Int {
    let cursor = try makeCursor()
    let prefix = prefix.bytes
    var count = 0
    var isAtRow = try Bytes(prefix).lend { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    while isAtRow, cursor.key.starts(with: prefix) {
      count += 1
      isAtRow = try cursor.next()
    }
    return count
  }
}

extension KeyValueTransaction {
  /// Stores a value.
  /// - Throws: ``StorageError`` if the write fails.
  package func put(_ key: [UInt8], _ value: [UInt8]) throws(StorageError) {
    try Bytes(key).lend { (key) throws(StorageError) in
      try Bytes(value).lend { (value) throws(StorageError) in try put(key, value) }
    }
  }

  /// Removes a row. Returns whether the row existed.
  /// - Throws: ``StorageError`` if the write fails.
  @discardableResult
  package func remove(_ key: [UInt8]) throws(StorageError) -> Bool {
    try Bytes(key).lend { (key) throws(StorageError) in try remove(key) }
  }
}

/// Passes the bytes of an array to a closure with typed throws, which `withUnsafeBytes` does not support.
private struct Bytes {
  let array: [UInt8]

  init(_ array: [UInt8]) { self.array = array }

  func lend<R>(_ body: (UnsafeRawBufferPointer) throws(StorageError) -> R) throws(StorageError) -> R {
    try array.withUnsafeBytes { (bytes) -> Result<R, StorageError> in
      do throws(StorageError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }.get()
  }
}
