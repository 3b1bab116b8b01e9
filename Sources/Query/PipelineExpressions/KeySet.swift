import DocumentModel

/// A set of byte strings in one buffer, with a table of their places. It takes about the bytes of the keys and 30 bytes
/// for each of them.
package struct KeySet {
  /// The number of keys.
  package private(set) var count = 0
  /// For each key: its hash in 8 bytes, its length in 4 bytes, and its bytes.
  private var entries: [UInt8] = []
  /// The offset of an entry plus 1, or 0. The count is a power of two.
  private var slots: [Int] = []

  private static let headBytes = 12

  /// Creates an empty set.
  package init() {}

  /// The memory of the set, in bytes.
  package var bytes: Int { entries.count + 8 * slots.count }

  /// Returns whether the set has a key. Cost: constant on average.
  package func contains(_ key: UnsafeRawBufferPointer) -> Bool {
    guard count > 0 else { return false }
    let hash = Self.hash(key)
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: hash) & mask
    while slots[slot] != 0 {
      if isEntry(at: slots[slot] - 1, hash, key) { return true }
      slot = (slot + 1) & mask
    }
    return false
  }

  private static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// Inserts a copy of a key. Returns whether it was missing. Cost: constant on average; hashes have a secret seed.
  package mutating func insert(_ key: UnsafeRawBufferPointer) -> Bool {
    if 4 * (count + 1) > 3 * slots.count { grow() }
    let hash = Self.hash(key)
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: hash) & mask
    while slots[slot] != 0 {
      if isEntry(at: slots[slot] - 1, hash, key) { return false }
      slot = (slot + 1) & mask
    }
    slots[slot] = entries.count + 1
    withUnsafeBytes(of: hash.littleEndian) { entries.append(raw: $0) }
    withUnsafeBytes(of: UInt32(key.count).littleEndian) { entries.append(raw: $0) }
    entries.append(raw: key)
    count += 1
    return true
  }

  /// Calls `body` with each key, in the order of insertion.
  package func forEach(_ body: (UnsafeRawBufferPointer) -> Void) {
    entries.withUnsafeBytes { buffer in
      var offset = 0
      while offset < buffer.count {
        let length = Self.length(buffer, offset)
        let start = offset + Self.headBytes
        body(UnsafeRawBufferPointer(rebasing: buffer[start..<start + length]))
        offset = start + length
      }
    }
  }

  private static func length(_ buffer: UnsafeRawBufferPointer, _ offset: Int) -> Int {
    Int(UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
  }

  private func isEntry(at offset: Int, _ hash: UInt64, _ key: UnsafeRawBufferPointer) -> Bool {
    entries.withUnsafeBytes { buffer in
      guard UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) == hash,
        Self.length(buffer, offset) == key.count
      else { return false }
      let start = offset + Self.headBytes
      return Ordering.raw(UnsafeRawBufferPointer(rebasing: buffer[start..<start + key.count]), key) == .equal
    }
  }

  private mutating func grow() {
    var larger = [Int](repeating: 0, count: max(16, 2 * slots.count))
    let mask = larger.count - 1
    entries.withUnsafeBytes { buffer in
      var offset = 0
      while offset < buffer.count {
        let hash = UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        var slot = Int(truncatingIfNeeded: hash) & mask
        while larger[slot] != 0 { slot = (slot + 1) & mask }
        larger[slot] = offset + 1
        offset += Self.headBytes + Self.length(buffer, offset)
      }
    }
    slots = larger
  }
}
