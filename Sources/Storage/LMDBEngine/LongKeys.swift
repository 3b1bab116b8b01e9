import CLMDB
import Glibc
import KeyValue

/// The storage of keys longer than LMDB's 511 bytes, in exact order. Names and numbers are on disk and must not change.
///
/// The data file has three named databases.
///
///     entries         key of 1…510 bytes                        → value
///                     first 510 bytes of longer keys, 0x00      → node number (8 bytes, big-endian)
///     continuations   node number, rest of 1…502 bytes          → value
///                     node number, next 502 bytes, 0x00         → node number
///     meta            "layout"                                  → 4 bytes, big-endian: 1, or 2 while a log is open
///                     "log"                                     → the mark of a commit log, if the file ever had one
///                     "nodes"                                   → next node number, nodes in use (8 bytes each)
///
/// An entry whose key has all 511 bytes is a *pointer*; no other key is that long. It refers to a *node*: the
/// entries of `continuations` that begin with the node's number. They hold the rest of all keys that share the
/// pointer's bytes. A key of 510 bytes sorts right before the pointer that extends it, and every other key of at
/// most 510 bytes sorts the same way against the pointer as against the keys in its node. So walking a database and
/// entering each node at its pointer visits all keys in unsigned byte order.
///
/// Nodes are never empty: removing a node's last entry also removes its pointer, and so on upward. Numbers start at
/// 1 and are never reused. A node's number is above that of the node with its pointer.
///
/// For a key of at most 510 bytes, this costs one comparison of lengths more than LMDB alone.
enum LongKeys {
  /// The longest key stored in one piece.
  static let entryKeyBytesMax = 510
  /// The length of a node number.
  static let nodeNumberBytes = 8
  /// The longest part of a key inside a node.
  static let chunkBytesMax = 502
  /// The length of every pointer's key, which is LMDB's limit.
  static let pointerKeyBytes = 511
  /// The last byte of every pointer's key.
  static let pointerMarker: UInt8 = 0
  /// The number stored under ``layoutKey``.
  static let layoutVersion: UInt32 = 1
  /// The number stored under ``layoutKey`` while a log beside the file contains newer commits; see ``LogMark``. Versions
  /// of Hearth without logs refuse the file then.
  static let openLogVersion: UInt32 = 2

  static let entriesName = "entries"
  static let continuationsName = "continuations"
  static let metaName = "meta"
  static let layoutKey: StaticString = "layout"
  static let nodesKey: StaticString = "nodes"
  static let logKey: StaticString = "log"

  /// Returns the number of key bytes at one level. Level 0 is `entries`, the others are nodes.
  static func chunkBytes(level: Int) -> Int {
    level == 0 ? entryKeyBytesMax : chunkBytesMax
  }

  /// Returns the number of key bytes in the levels above `level`.
  static func prefixBytes(level: Int) -> Int {
    level == 0 ? 0 : entryKeyBytesMax + (level - 1) * chunkBytesMax
  }
}

/// Memory for one LMDB key, composed of a node number and a part of a whole key.
struct KeyScratch {
  let memory = UnsafeMutableRawPointer.allocate(byteCount: LongKeys.pointerKeyBytes, alignment: 8)

  func deallocate() {
    memory.deallocate()
  }

  /// Returns the key of an entry with `chunk` in `node`. Node 0 means the database `entries`.
  func entryKey(node: UInt64, chunk: UnsafeRawBufferPointer) -> MDB_val {
    var count = 0
    if node != 0 {
      memory.storeBytes(of: node.bigEndian, as: UInt64.self)
      count = LongKeys.nodeNumberBytes
    }
    if let source = chunk.baseAddress {
      memcpy(memory + count, source, chunk.count)
    }
    return MDB_val(mv_size: count + chunk.count, mv_data: memory)
  }

  /// Returns the key of the pointer with `chunk`, which has the full length for its level.
  func pointerKey(node: UInt64, chunk: UnsafeRawBufferPointer) -> MDB_val {
    var key = entryKey(node: node, chunk: chunk)
    (memory + key.mv_size).storeBytes(of: LongKeys.pointerMarker, as: UInt8.self)
    key.mv_size += 1
    return key
  }

  /// Returns the lowest key in a node, which is above all keys of the node before it.
  func nodeStart(_ node: UInt64) -> MDB_val {
    memory.storeBytes(of: node.bigEndian, as: UInt64.self)
    return MDB_val(mv_size: LongKeys.nodeNumberBytes, mv_data: memory)
  }
}

extension MDB_val {
  /// Wraps bytes for LMDB, which does not change the keys and values passed to it.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }

  var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: mv_data, count: mv_size)
  }

  /// Whether this key of `entries` or `continuations` is a pointer's.
  var isPointerKey: Bool {
    mv_size == LongKeys.pointerKeyBytes
  }

  /// The node number at the start of these bytes, or `nil` if they are too short.
  var leadingNumber: UInt64? {
    guard mv_size >= LongKeys.nodeNumberBytes, let mv_data else { return nil }
    return UInt64(bigEndian: mv_data.loadUnaligned(as: UInt64.self))
  }

  /// The node number in a pointer's value, or `nil` if the length is wrong or the number is invalid.
  var nodeNumber: UInt64? {
    guard mv_size == LongKeys.nodeNumberBytes, let number = leadingNumber, number != 0 else { return nil }
    return number
  }
}
