import CLMDB
import Glibc
import KeyValue

/// How keys longer than LMDB's 511 bytes are kept, in exact order. Names and numbers are on disk: frozen.
///
/// The data file holds three named databases.
///
///     entries         key of 1…510 bytes                        → value
///                     first 510 bytes of longer keys, 0x00      → node number (8 bytes, big-endian)
///     continuations   node number, rest of 1…502 bytes          → value
///                     node number, next 502 bytes, 0x00         → node number
///     meta            "layout"                                  → 4 bytes, big-endian: 1
///                     "nodes"                                   → next node number, nodes in use (8 bytes each)
///
/// An entry whose key has all 511 bytes is a *pointer*; nothing else is that long. It leads to a *node*: the
/// entries of `continuations` that begin with its number, which hold what follows in keys that share the
/// pointer's bytes. A key of 510 bytes sorts right before the pointer that extends it, and every other key of
/// at most 510 bytes sorts the same way against the pointer as against the keys behind it. So walking a
/// database and entering each node where its pointer stands gives all keys in unsigned byte order.
///
/// Nodes are never empty: removing the last entry of one removes its pointer too, and so on upwards. Numbers
/// start at 1, are never reused, and a node's number is above that of the node holding its pointer.
///
/// Work on a key of at most 510 bytes costs one comparison of lengths more than LMDB alone.
enum LongKeys {
  /// The longest key kept as it is.
  static let entryKeyBytesMax = 510
  /// The bytes of a node number.
  static let nodeNumberBytes = 8
  /// The longest rest of a key inside a node.
  static let chunkBytesMax = 502
  /// The length of every pointer's key: the longest LMDB takes.
  static let pointerKeyBytes = 511
  /// The last byte of every pointer's key.
  static let pointerMarker: UInt8 = 0
  /// The number written under ``layoutKey``.
  static let layoutVersion: UInt32 = 1

  static let entriesName = "entries"
  static let continuationsName = "continuations"
  static let metaName = "meta"
  static let layoutKey: StaticString = "layout"
  static let nodesKey: StaticString = "nodes"

  /// How many bytes of a key one level takes: level 0 is `entries`, the others are nodes.
  static func chunkBytes(level: Int) -> Int {
    level == 0 ? entryKeyBytesMax : chunkBytesMax
  }

  /// How many bytes of a key the levels above `level` took.
  static func prefixBytes(level: Int) -> Int {
    level == 0 ? 0 : entryKeyBytesMax + (level - 1) * chunkBytesMax
  }
}

/// Memory for one LMDB key, put together from a node number and a part of a whole key.
struct KeyScratch {
  let memory = UnsafeMutableRawPointer.allocate(byteCount: LongKeys.pointerKeyBytes, alignment: 8)

  func deallocate() {
    memory.deallocate()
  }

  /// The key of an entry with `chunk` in `node`; node 0 stands for the database `entries`.
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

  /// The key of the pointer with `chunk`, which has the full length for its level.
  func pointerKey(node: UInt64, chunk: UnsafeRawBufferPointer) -> MDB_val {
    var key = entryKey(node: node, chunk: chunk)
    (memory + key.mv_size).storeBytes(of: LongKeys.pointerMarker, as: UInt8.self)
    key.mv_size += 1
    return key
  }

  /// The smallest key a node can hold, and a bound above all of the node before it.
  func nodeStart(_ node: UInt64) -> MDB_val {
    memory.storeBytes(of: node.bigEndian, as: UInt64.self)
    return MDB_val(mv_size: LongKeys.nodeNumberBytes, mv_data: memory)
  }
}

extension MDB_val {
  /// The same bytes for LMDB, which does not change what it is only asked to look at.
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

  /// The node number these bytes begin with, or `nil` when they are too short.
  var leadingNumber: UInt64? {
    guard mv_size >= LongKeys.nodeNumberBytes, let mv_data else { return nil }
    return UInt64(bigEndian: mv_data.loadUnaligned(as: UInt64.self))
  }

  /// The node number a pointer's value holds, or `nil` when it has another length or is no node's.
  var nodeNumber: UInt64? {
    guard mv_size == LongKeys.nodeNumberBytes, let number = leadingNumber, number != 0 else { return nil }
    return number
  }
}
