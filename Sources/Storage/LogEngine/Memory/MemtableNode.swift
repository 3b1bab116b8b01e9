import Glibc
import Synchronization

/// A key in a ``Memtable`` with its first version, as a pointer to its memory:
///
///     0   pointer to the newest version, or 0     (atomic)
///     8   the first version, which has the length of the key and the height in it
///     24  pointers to the next node at each level, or 0     (atomic)
///     …   key, then the value of the first version
struct MemtableNode: Equatable {
  let raw: UnsafeMutableRawPointer

  private static let firstVersion = 8
  private static let links = firstVersion + MemtableVersion.firstHeadBytes

  /// The bytes of a node.
  static func bytes(height: Int, keyBytes: Int, valueBytes: Int) -> Int { links + 8 * height + keyBytes + valueBytes }

  /// Makes a node with one version and no next node in new memory. `value` is `nil` for a removal. The key has at most
  /// ``KeyValueLimits/keyBytesMax`` bytes.
  init(
    at raw: UnsafeMutableRawPointer, height: Int, key: UnsafeRawBufferPointer, ordinal: UInt64,
    value: UnsafeRawBufferPointer?
  ) {
    self.raw = raw
    let first = raw + Self.firstVersion
    raw.bindMemory(to: Atomic<UInt>.self, capacity: 1).initialize(to: Atomic(UInt(bitPattern: first)))
    first.storeBytes(of: ordinal, as: UInt64.self)
    first.storeBytes(of: Int32(value?.count ?? -1), toByteOffset: 8, as: Int32.self)
    first.storeBytes(of: UInt16(key.count), toByteOffset: 12, as: UInt16.self)
    first.storeBytes(of: UInt8(height), toByteOffset: 14, as: UInt8.self)
    first.storeBytes(of: 0, toByteOffset: 15, as: UInt8.self)
    for level in 0..<height {
      (raw + Self.links + 8 * level).bindMemory(to: Atomic<UInt>.self, capacity: 1).initialize(to: Atomic(0))
    }
    let start = raw + Self.links + 8 * height
    if let source = key.baseAddress { memcpy(start, source, key.count) }
    if let value, let source = value.baseAddress { memcpy(start + key.count, source, value.count) }
  }

  init?(_ address: UInt) {
    guard let raw = UnsafeMutableRawPointer(bitPattern: address) else { return nil }
    self.raw = raw
  }

  /// The ordinal of the first version.
  var firstOrdinal: UInt64 { raw.load(fromByteOffset: Self.firstVersion, as: UInt64.self) }
  /// The number of levels.
  var height: Int { Int(raw.load(fromByteOffset: Self.firstVersion + 14, as: UInt8.self)) }
  private var keyBytes: Int { Int(raw.load(fromByteOffset: Self.firstVersion + 12, as: UInt16.self)) }

  var key: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: raw + Self.links + 8 * height, count: keyBytes)
  }

  private func link(_ level: Int) -> UnsafeMutablePointer<Atomic<UInt>> {
    (raw + Self.links + 8 * level).assumingMemoryBound(to: Atomic<UInt>.self)
  }

  /// The next node at a level below the height.
  func next(_ level: Int) -> MemtableNode? { MemtableNode(link(level).pointee.load(ordering: .acquiring)) }

  /// Publishes the next node at a level.
  func setNext(_ level: Int, _ node: MemtableNode?) {
    link(level).pointee.store(node.map { UInt(bitPattern: $0.raw) } ?? 0, ordering: .releasing)
  }

  private var versions: UnsafeMutablePointer<Atomic<UInt>> { raw.assumingMemoryBound(to: Atomic<UInt>.self) }

  /// The newest version, also if readers cannot see it.
  var newest: MemtableVersion? { MemtableVersion(versions.pointee.load(ordering: .acquiring)) }

  /// Publishes the newest version.
  func setNewest(_ version: MemtableVersion?) {
    versions.pointee.store(version.map { UInt(bitPattern: $0.raw) } ?? 0, ordering: .releasing)
  }

  /// Returns the newest version that is not above `ordinal`.
  func version(at ordinal: UInt64) -> MemtableVersion? {
    var version = newest
    while let candidate = version, candidate.ordinal > ordinal { version = candidate.older }
    return version
  }

  /// Returns a number below, equal to or above 0 as this node's key is below, equal to or above `other`.
  func compare(_ other: UnsafeRawBufferPointer) -> Int { compareKeys(key, other) }
}

/// One version of a key, as a pointer to its memory, which never changes. The first version of a key is a part of its
/// node, and each later one has memory of its own:
///
///     0   ordinal
///     8   length of the value, or -1 for a removal
///     12  length of the key (2), height of the node (1); 0 in a later version
///     15  0 in the first version, 1 in a later one
///     16  pointer to the next older version, or 0     (only in a later version)
///     24  value
struct MemtableVersion: Equatable {
  let raw: UnsafeMutableRawPointer

  /// The bytes before the value of a later version.
  static let headBytes = 24
  /// The bytes of the first version before the links of its node.
  static let firstHeadBytes = 16

  /// Makes a later version in new memory. `value` is `nil` for a removal.
  init(at raw: UnsafeMutableRawPointer, ordinal: UInt64, older: MemtableVersion?, value: UnsafeRawBufferPointer?) {
    self.raw = raw
    raw.storeBytes(of: ordinal, as: UInt64.self)
    raw.storeBytes(of: Int32(value?.count ?? -1), toByteOffset: 8, as: Int32.self)
    raw.storeBytes(of: UInt32(1 << 24).littleEndian, toByteOffset: 12, as: UInt32.self)
    raw.storeBytes(of: older.map { UInt(bitPattern: $0.raw) } ?? 0, toByteOffset: 16, as: UInt.self)
    if let value, let source = value.baseAddress { memcpy(raw + Self.headBytes, source, value.count) }
  }

  init?(_ address: UInt) {
    guard let raw = UnsafeMutableRawPointer(bitPattern: address) else { return nil }
    self.raw = raw
  }

  private var isLater: Bool { raw.load(fromByteOffset: 15, as: UInt8.self) != 0 }

  var ordinal: UInt64 { raw.load(as: UInt64.self) }
  var older: MemtableVersion? { isLater ? MemtableVersion(raw.load(fromByteOffset: 16, as: UInt.self)) : nil }

  /// The value, or `nil` for a removal.
  var value: UnsafeRawBufferPointer? {
    let count = Int(raw.load(fromByteOffset: 8, as: Int32.self))
    guard count >= 0 else { return nil }
    if isLater { return UnsafeRawBufferPointer(start: raw + Self.headBytes, count: count) }
    let keyBytes = Int(raw.load(fromByteOffset: 12, as: UInt16.self))
    let height = Int(raw.load(fromByteOffset: 14, as: UInt8.self))
    return UnsafeRawBufferPointer(start: raw + Self.firstHeadBytes + 8 * height + keyBytes, count: count)
  }
}

/// Returns a number below, equal to or above 0 as `a` is below, equal to or above `b` in the order of keys.
func compareKeys(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
  guard let left = a.baseAddress, let right = b.baseAddress else { return a.count - b.count }
  let order = memcmp(left, right, min(a.count, b.count))
  return order == 0 ? a.count - b.count : Int(order)
}
