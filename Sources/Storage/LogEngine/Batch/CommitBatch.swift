import KeyValue

/// The effect of one write transaction, as bytes: puts, removals and removed ranges, in order.
///
/// It is the unit of the commit log. The operations are absolute: applying a batch, or a run of batches in order, a
/// second time changes nothing. The bytes are the format number 1, then the operations:
///
///     1, length of the key, length of the value, key, value      a put
///     2, length of the key, key                                  a removal
///     3, length of the lower bound, of the upper bound, both     a removed range: lower <= key < upper
///
/// Lengths are variable-length numbers with seven bits a byte, the lowest bits first. The form is on disk and must not
/// change.
package struct CommitBatch: Sendable, Equatable {
  /// The encoded form.
  package private(set) var bytes: [UInt8]
  /// The number of operations.
  package private(set) var operations = 0

  /// The first byte of every batch.
  static let format: UInt8 = 1
  /// The longest bound of a range that is recorded. Longer bounds are cut there: no key is long enough to notice.
  static let boundBytesMax = KeyValueLimits.keyBytesMax + 1

  /// The number at the start of each operation.
  enum Code: UInt8 {
    case put = 1
    case remove = 2
    case removeRange = 3
  }

  /// Creates a batch without operations.
  package init() { bytes = [Self.format] }

  /// Checks bytes that a log or another machine delivered, all of them, and wraps them.
  /// - Throws: ``CommitBatchError`` if they are not a batch.
  package init(checking bytes: [UInt8]) throws(CommitBatchError) {
    var operations = 0
    var failure: CommitBatchError?
    bytes.withUnsafeBytes { bytes in
      do throws(CommitBatchError) {
        var reader = try CommitBatchReader(bytes)
        while try reader.next() != nil { operations += 1 }
      } catch { failure = error }
    }
    if let failure { throw failure }
    self.bytes = bytes
    self.operations = operations
  }

  /// Whether the batch has no operation.
  package var isEmpty: Bool { operations == 0 }

  /// Appends a put. The caller has checked the lengths against ``KeyValueLimits``.
  package mutating func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    bytes.append(Code.put.rawValue)
    append(length: key.count)
    append(length: value.count)
    bytes.append(contentsOf: key)
    bytes.append(contentsOf: value)
    operations += 1
  }

  /// Appends a removal.
  package mutating func remove(_ key: UnsafeRawBufferPointer) {
    bytes.append(Code.remove.rawValue)
    append(length: key.count)
    bytes.append(contentsOf: key)
    operations += 1
  }

  /// Appends a removed range.
  package mutating func removeRange(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer) {
    let (lower, upper) = (lower.prefix(Self.boundBytesMax), upper.prefix(Self.boundBytesMax))
    bytes.append(Code.removeRange.rawValue)
    append(length: lower.count)
    append(length: upper.count)
    bytes.append(contentsOf: lower)
    bytes.append(contentsOf: upper)
    operations += 1
  }

  /// Removes all operations and keeps the memory, unless it is more than `keptBytesMax`.
  mutating func removeAll(keptBytesMax: Int) {
    bytes.removeAll(keepingCapacity: bytes.capacity <= keptBytesMax)
    bytes.append(Self.format)
    operations = 0
  }

  private mutating func append(length: Int) {
    var rest = UInt64(length)
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }
}

/// One operation of a ``CommitBatch``, as borrowed bytes of it.
package enum CommitBatchOperation {
  case put(UnsafeRawBufferPointer, UnsafeRawBufferPointer)
  case remove(UnsafeRawBufferPointer)
  case removeRange(UnsafeRawBufferPointer, UnsafeRawBufferPointer)
}

/// The reason why bytes are not a ``CommitBatch``.
package struct CommitBatchError: Error, Equatable, Sendable {
  /// The offset of the operation that is wrong, in bytes.
  package var offset: Int
  /// The reason.
  package var problem: String

  package init(offset: Int, problem: String) {
    self.offset = offset
    self.problem = problem
  }
}

/// Reads the operations of a ``CommitBatch`` one by one. It accepts any bytes, reads only within them, and allocates
/// nothing.
package struct CommitBatchReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 1

  /// Begins to read. `bytes` outlive the reader.
  /// - Throws: ``CommitBatchError`` if the format number is missing or unknown.
  package init(_ bytes: UnsafeRawBufferPointer) throws(CommitBatchError) {
    guard let format = bytes.first else { throw CommitBatchError(offset: 0, problem: "it is empty") }
    guard format == CommitBatch.format else { throw CommitBatchError(offset: 0, problem: "its format is \(format)") }
    self.bytes = bytes
  }

  /// Returns the next operation, or `nil` at the end.
  /// - Throws: ``CommitBatchError`` if an operation is cut short, unknown, or beyond the limits of keys and values.
  package mutating func next() throws(CommitBatchError) -> CommitBatchOperation? {
    guard position < bytes.count else { return nil }
    let start = position
    guard let code = CommitBatch.Code(rawValue: bytes[position]) else {
      throw CommitBatchError(offset: start, problem: "operation \(bytes[position]) is unknown")
    }
    position += 1
    switch code {
    case .put:
      let keyBytes = try length(start)
      let valueBytes = try length(start)
      try checkKey(keyBytes, start)
      guard valueBytes <= KeyValueLimits.valueBytesMax else {
        throw CommitBatchError(offset: start, problem: "a value has \(valueBytes) bytes")
      }
      let key = try take(keyBytes, start)
      return .put(key, try take(valueBytes, start))
    case .remove:
      let keyBytes = try length(start)
      try checkKey(keyBytes, start)
      return .remove(try take(keyBytes, start))
    case .removeRange:
      let lowerBytes = try length(start)
      let upperBytes = try length(start)
      guard max(lowerBytes, upperBytes) <= CommitBatch.boundBytesMax else {
        throw CommitBatchError(offset: start, problem: "a bound has \(max(lowerBytes, upperBytes)) bytes")
      }
      let lower = try take(lowerBytes, start)
      return .removeRange(lower, try take(upperBytes, start))
    }
  }

  private func checkKey(_ count: Int, _ start: Int) throws(CommitBatchError) {
    guard (1...KeyValueLimits.keyBytesMax).contains(count) else {
      throw CommitBatchError(offset: start, problem: "a key has \(count) bytes")
    }
  }

  /// Reads a length of at most five bytes, in its only form: the last byte of a longer form is not 0.
  private mutating func length(_ start: Int) throws(CommitBatchError) -> Int {
    var number = 0
    for shift in stride(from: 0, to: 35, by: 7) {
      guard position < bytes.count else { throw CommitBatchError(offset: start, problem: "it ends in a length") }
      let byte = Int(bytes[position])
      position += 1
      number |= (byte & 0x7F) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else {
          throw CommitBatchError(offset: start, problem: "a length is not in its shortest form")
        }
        return number
      }
    }
    throw CommitBatchError(offset: start, problem: "a length has more than 5 bytes")
  }

  private mutating func take(_ count: Int, _ start: Int) throws(CommitBatchError) -> UnsafeRawBufferPointer {
    guard count <= bytes.count - position else {
      throw CommitBatchError(offset: start, problem: "it ends \(count - (bytes.count - position)) bytes early")
    }
    defer { position += count }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
  }
}

/// The fuzzing entry point for batches. It accepts any bytes, must not trap, and checks invariants.
package enum CommitBatchFuzz {
  /// Decodes bytes as a batch. If they are one, encodes its operations again, which must give the same bytes.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    guard let batch = try? CommitBatch(checking: [UInt8](bytes)) else { return }
    var again = CommitBatch()
    batch.bytes.withUnsafeBytes { bytes in
      guard var reader = try? CommitBatchReader(bytes) else { return }
      while let operation = try? reader.next() { again.append(operation) }
    }
    precondition(again == batch, "an accepted batch has one form")
  }
}

extension CommitBatch {
  /// Appends a copy of an operation.
  package mutating func append(_ operation: CommitBatchOperation) {
    switch operation {
    case .put(let key, let value): put(key, value)
    case .remove(let key): remove(key)
    case .removeRange(let lower, let upper): removeRange(from: lower, to: upper)
    }
  }
}
