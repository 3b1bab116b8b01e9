import CXXHash
package import KeyValue

/// The form in which a log is kept in another place: pieces that follow each other. A piece begins with the
/// ``LogOrigin`` before its first record. A record is
///
///     48 bytes   its head in the log, see ``LogRecordHead``
///     8 bytes    the time of the newest commit up to it, in microseconds since 1970
///     8 bytes    the hash of the time, with the chain as its seed
///     …          the batch, padded with zeros to a multiple of 8
///
/// The form must not change.
enum ShippedRecord {
  static let headBytes = LogRecordHead.bytes + 16
}

/// Writes records for another place.
package struct ShippedLogWriter {
  /// The position after the last record.
  package private(set) var origin: LogOrigin
  /// The time of the newest commit up to it, in microseconds since 1970.
  package private(set) var time: Int64
  /// The records since the last ``takeBytes()``.
  package private(set) var bytes: [UInt8] = []

  /// Begins after a position.
  package init(after origin: LogOrigin, time: Int64) { (self.origin, self.time) = (origin, time) }

  /// Continues in a log with another secret, which begins at the same position. Its records begin a piece.
  package mutating func begin(secret: UInt64) {
    precondition(bytes.isEmpty, "records of the log before are in the piece before")
    origin.secret = secret
  }

  /// Appends a commit, which follows the last one. `time` is that of its newest commit, or `nil` if it has none.
  package mutating func append(_ batch: UnsafeRawBufferPointer, at position: LogPosition, time newest: Int64?) {
    time = newest ?? time
    let head = LogRecordHead(of: batch, after: origin.position, epoch: position.epoch, secret: origin.secret)
    precondition(head.position == position, "the commit follows the last one")
    var buffer = [UInt8](repeating: 0, count: ShippedRecord.headBytes)
    buffer.withUnsafeMutableBytes { buffer in
      head.write(to: buffer, secret: origin.secret)
      buffer.storeBytes(of: time.littleEndian, toByteOffset: LogRecordHead.bytes, as: Int64.self)
      var number = time.littleEndian
      let hash = XXH3_64bits_withSeed(&number, 8, head.chain)
      buffer.storeBytes(of: hash.littleEndian, toByteOffset: LogRecordHead.bytes + 8, as: UInt64.self)
    }
    bytes += buffer
    bytes += batch
    bytes += [UInt8](repeating: 0, count: (8 - batch.count % 8) % 8)
    origin.position = position
  }

  /// Returns the records, and forgets them.
  package mutating func takeBytes() -> [UInt8] {
    defer { bytes.removeAll(keepingCapacity: true) }
    return bytes
  }
}

/// Reads the records of pieces. It accepts any bytes, and reads only within them.
package struct ShippedLogReader {
  /// The position after the last record.
  package private(set) var origin: LogOrigin
  /// The time of the newest commit up to it, in microseconds since 1970.
  package private(set) var time: Int64

  /// Begins after a position.
  package init(after origin: LogOrigin, time: Int64) { (self.origin, self.time) = (origin, time) }

  /// Begins a piece. Returns `false` if it does not follow the last record.
  package mutating func begin(_ next: LogOrigin) -> Bool {
    guard next.position == origin.position else { return false }
    origin = next
    return true
  }

  /// Returns the record at an offset and moves the offset behind it. Returns `nil` if no whole record is there that
  /// follows the last one.
  package mutating func next(
    in bytes: UnsafeRawBufferPointer, at offset: inout Int
  ) -> (batch: UnsafeRawBufferPointer, time: Int64)? {
    guard offset >= 0, bytes.count - offset >= ShippedRecord.headBytes else { return nil }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
    guard let head = LogRecordHead(rest, secret: origin.secret), head.follows(origin.position, secret: origin.secret)
    else { return nil }
    let number = rest.littleEndian(LogRecordHead.bytes)
    var stored = number.littleEndian
    guard XXH3_64bits_withSeed(&stored, 8, head.chain) == rest.littleEndian(LogRecordHead.bytes + 8) else { return nil }
    let padded = (head.batchBytes + 7) & ~7
    guard padded <= rest.count - ShippedRecord.headBytes else { return nil }
    let start = ShippedRecord.headBytes
    let batch = UnsafeRawBufferPointer(rebasing: rest[start..<start + head.batchBytes])
    guard head.isHead(of: batch, secret: origin.secret) else { return nil }
    offset += start + padded
    origin.position = head.position
    time = Int64(bitPattern: number)
    return (batch, time)
  }
}

/// Applies commits of a log to a store that has the state before them, in large sorted transactions.
package struct LogReplay {
  private let store: any KeyValueStore
  private var table = ReplayTable()

  /// Begins with a store.
  package init(into store: any KeyValueStore) { self.store = store }

  /// Adds a commit.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if it is malformed; `path` names its place. Another
  ///   ``StorageError`` if the store cannot be written.
  package mutating func add(
    _ batch: UnsafeRawBufferPointer, at position: LogPosition, from path: String
  ) throws(StorageError) {
    try table.add(batch, position, from: path)
    if table.isFull { try finish() }
  }

  /// Writes what was added.
  /// - Throws: ``StorageError`` if the store cannot be written.
  package mutating func finish() throws(StorageError) {
    let store = store
    try table.move { (body) throws(StorageError) in
      try store.write { (transaction) throws(StorageError) in _ = try body(transaction) }
    }
  }
}
