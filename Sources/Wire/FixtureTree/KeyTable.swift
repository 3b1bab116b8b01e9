/// The keys that each open object has so far, to find repeated keys.
///
/// It stores a 64-bit hash and a line per key. Two different keys of the largest object have the same hash with a
/// probability of about 10⁻⁸. It records at most ``keysMax`` keys of an object. In a larger object, which can only
/// be a collection, it does not find IDs that repeat after the limit, and the later document wins. Tables are
/// reused for later objects, so the steady state allocates nothing.
struct KeyTable {
  /// The maximum number of recorded keys of one object, which take 16 MiB.
  static let keysMax = 786_432

  private struct Slot {
    var hash: UInt64 = 0
    var line: UInt32 = 0
    /// The object that this slot belongs to. Slots of another generation are free.
    var generation: UInt32 = 0
  }

  private struct Level {
    var slots = [Slot](repeating: Slot(), count: 32)
    var count = 0
    var generation: UInt32 = 1
  }

  private var levels: [Level] = []
  private var depth = 0

  /// The memory of the tables, in bytes.
  var bufferedBytes: Int { levels.reduce(0) { $0 + $1.slots.capacity * MemoryLayout<Slot>.stride } }

  /// Starts an object inside the innermost one.
  mutating func open() {
    depth += 1
    if depth > levels.count { levels.append(Level()) }
    levels[depth - 1].count = 0
    levels[depth - 1].generation &+= 1
    if levels[depth - 1].generation == 0 { levels[depth - 1] = Level() }
  }

  /// Ends the innermost object.
  mutating func close() {
    depth -= 1
  }

  /// Adds a key to the innermost object. Returns the line of the same key if the object already has it.
  ///
  /// Keys with different `space` are different: a field and a subcollection may have the same name.
  mutating func insert(_ key: UnsafeRawBufferPointer, space: UInt64 = 0, line: Int) -> Int? {
    guard depth > 0, levels[depth - 1].count < Self.keysMax else { return nil }
    let hash = Self.hash(key, seed: space)
    return Self.insert(hash, line: UInt32(truncatingIfNeeded: line), into: &levels[depth - 1])
  }

  private static func insert(_ hash: UInt64, line: UInt32, into level: inout Level) -> Int? {
    let generation = level.generation
    let earlier: Int? = level.slots.withUnsafeMutableBufferPointer { slots in
      let mask = slots.count - 1
      var index = Int(truncatingIfNeeded: hash) & mask
      while slots[index].generation == generation {
        if slots[index].hash == hash { return Int(slots[index].line) }
        index = (index + 1) & mask
      }
      slots[index] = Slot(hash: hash, line: line, generation: generation)
      return nil
    }
    if earlier != nil { return earlier }
    level.count += 1
    // Grow at three quarters. ``keysMax`` also keeps the largest table at three quarters.
    if level.count * 4 >= level.slots.count * 3, level.count < keysMax { grow(&level) }
    return nil
  }

  private static func grow(_ level: inout Level) {
    let old = level.slots
    let generation = level.generation
    var slots = [Slot](repeating: Slot(), count: old.count * 2)
    let mask = slots.count - 1
    for slot in old where slot.generation == generation {
      var index = Int(truncatingIfNeeded: slot.hash) & mask
      while slots[index].generation == generation { index = (index + 1) & mask }
      slots[index] = slot
    }
    level.slots = slots
  }

  /// Returns a hash that multiplies and folds eight bytes at a time.
  private static func hash(_ key: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    var state = fold((seed << 32 | UInt64(key.count)) &* 0x9E37_79B9_7F4A_7C15)
    var offset = 0
    while offset + 8 <= key.count {
      state = fold(state ^ key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < key.count {
      rest = rest << 8 | UInt64(key[offset])
      offset += 1
    }
    return fold(fold(state ^ rest) ^ 0xD6E8_FEB8_6659_FD93)
  }

  @inline(__always)
  private static func fold(_ value: UInt64) -> UInt64 {
    let (high, low) = (value ^ 0xA076_1D64_78BD_642F).multipliedFullWidth(by: 0xE703_7ED1_A0B4_28DB)
    return high ^ low
  }
}
