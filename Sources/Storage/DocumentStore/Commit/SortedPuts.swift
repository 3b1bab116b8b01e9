import DocumentModel
import Glibc
import KeyValue

/// A buffer of entries that are written in key order.
///
/// Neighboring keys then meet the same pages while those are in the processor's cache, which makes a load of many
/// documents about twice as fast. Reuse one buffer: it keeps its memory.
struct SortedPuts {
  private struct Put {
    /// The first 16 bytes of the key, as two big-endian numbers, which decide most comparisons. Table, collection and
    /// field take about six of them.
    var prefix: UInt64
    var rest: UInt64
    var start: Int
    var keyCount: UInt32
    var valueCount: UInt32

    /// The range of the key in the buffer.
    var key: Range<Int> { start..<start + Int(keyCount) }
    /// The range of the value in the buffer.
    var value: Range<Int> { key.upperBound..<key.upperBound + Int(valueCount) }
  }

  private var bytes: [UInt8] = []
  private var puts: [Put] = []

  /// Adds an entry. A key may repeat only with the same value; it does so if an array contains an element twice.
  mutating func add(_ key: borrowing StorageKey, _ value: [UInt8]) {
    let (prefix, rest) = key.bytes.withUnsafeBytes { Self.prefix($0) }
    puts.append(
      Put(
        prefix: prefix, rest: rest, start: bytes.count, keyCount: UInt32(key.bytes.count),
        valueCount: UInt32(value.count)))
    bytes.append(contentsOf: key.bytes)
    bytes.append(contentsOf: value)
  }

  /// Returns the first 16 bytes of a key. Missing bytes are 0.
  private static func prefix(_ key: UnsafeRawBufferPointer) -> (UInt64, UInt64) {
    if key.count >= 16 {
      return (
        UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    var bytes: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &bytes) { $0.copyMemory(from: key) }
    return (UInt64(bigEndian: bytes.0), UInt64(bigEndian: bytes.1))
  }

  /// Writes all entries and empties the buffer.
  mutating func write(_ transaction: any KeyValueTransaction) throws(StorageError) {
    var failure: StorageError?
    bytes.withUnsafeBytes { bytes in
      func key(_ put: Put) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[put.key])
      }
      puts.sort { a, b in
        if a.prefix != b.prefix { return a.prefix < b.prefix }
        if a.rest != b.rest { return a.rest < b.rest }
        let (left, right) = (key(a), key(b))
        guard let leftStart = left.baseAddress, let rightStart = right.baseAddress else { return false }
        let order = memcmp(leftStart, rightStart, min(left.count, right.count))
        return order != 0 ? order < 0 : left.count < right.count
      }
      do throws(StorageError) {
        for put in puts {
          try transaction.put(key(put), UnsafeRawBufferPointer(rebasing: bytes[put.value]))
        }
      } catch { failure = error }
    }
    bytes.removeAll(keepingCapacity: true)
    puts.removeAll(keepingCapacity: true)
    if let failure { throw failure }
  }
}
