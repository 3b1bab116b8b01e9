import Basics
import DocumentModel
import PipelineExpressions
import QueryEngine

/// The groups of an aggregation in memory: a hash table over the bytes of their keys, with the state of their
/// accumulators. No group is an object of its own.
final class GroupTable {
  private struct Group {
    /// The hash of the key, which has a secret seed.
    var hash: Int
    /// The place of the key in ``bytes``. The values of the group's expressions follow it.
    var start: Int
    var keyCount: Int
    var valueCount: Int
  }

  private let functions: [AccumulatorFunction]
  private(set) var count = 0
  private var groups = UnsafeMutableBufferPointer<Group>.allocate(capacity: 0)
  /// The accumulators of all groups, one group after the other.
  private var states = UnsafeMutableBufferPointer<Accumulator>.allocate(capacity: 0)
  /// The number of a group plus 1, or 0. The count is a power of two.
  private var slots = UnsafeMutableBufferPointer<UInt32>.allocate(capacity: 0)
  private let bytes = RowBuffer()

  init(_ functions: [AccumulatorFunction]) { self.functions = functions }

  deinit {
    states.baseAddress?.deinitialize(count: count * functions.count)
    groups.deallocate()
    states.deallocate()
    slots.deallocate()
  }

  /// The memory of a group beside its key, its values, and what its accumulators hold.
  static let groupBytes = 2 * MemoryLayout<Group>.stride + 4 * MemoryLayout<UInt32>.stride
  static let accumulatorBytes = 2 * MemoryLayout<Accumulator>.stride

  // MARK: Groups

  private static func hash(_ key: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return hasher.finalize()
  }

  /// Returns the number of the group with a key, or `nil` if no group has it. Cost: constant on average.
  func find(_ key: [UInt8]) -> Int? {
    guard count > 0 else { return nil }
    return key.withUnsafeBytes { find($0, hash: Self.hash($0)) }
  }

  private func find(_ key: UnsafeRawBufferPointer, hash: Int) -> Int? {
    guard count > 0 else { return nil }
    let mask = slots.count - 1
    var slot = hash & mask
    while slots[slot] != 0 {
      let number = Int(slots[slot]) - 1
      if groups[number].hash == hash, Ordering.raw(self.key(number), key) == .equal { return number }
      slot = (slot + 1) & mask
    }
    return nil
  }

  /// Adds a group with a key that is missing, and the encoded values of its expressions. Returns its number.
  func add(_ key: [UInt8], values: [UInt8]) -> Int {
    key.withUnsafeBytes { key in values.withUnsafeBytes { add(key, hash: Self.hash(key), values: $0) } }
  }

  private func add(_ key: UnsafeRawBufferPointer, hash: Int, values: UnsafeRawBufferPointer) -> Int {
    if count == groups.count { grow() }
    let start = bytes.count
    bytes.append(key)
    bytes.append(values)
    groups[count] = Group(hash: hash, start: start, keyCount: key.count, valueCount: values.count)
    for (index, function) in functions.enumerated() {
      (states.baseAddress.unsafelyUnwrapped + count * functions.count + index).initialize(to: Accumulator(function))
    }
    place(count)
    count += 1
    return count - 1
  }

  /// Adds a group of another table, whose rows follow those of this table. Returns the change of this table's memory.
  func merge(_ number: Int, of other: GroupTable) -> Int {
    let (key, hash) = (other.key(number), other.groups[number].hash)
    let added = other.accumulators(number)
    var change = 0
    if let group = find(key, hash: hash) {
      let own = accumulators(group)
      for index in functions.indices {
        let before = own[index].isVariable ? own[index].bytes : 0
        own[index].merge(added[index])
        if own[index].isVariable { change += own[index].bytes - before }
      }
      return change
    }
    let values = other.values(number)
    let own = accumulators(add(key, hash: hash, values: values))
    for index in functions.indices {
      own[index] = added[index]
      change += Self.accumulatorBytes + (own[index].isVariable ? own[index].bytes : 0)
    }
    return change + key.count + values.count + Self.groupBytes
  }

  private func place(_ number: Int) {
    let mask = slots.count - 1
    var slot = groups[number].hash & mask
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = UInt32(number + 1)
  }

  private func grow() {
    let capacity = max(16, 2 * groups.count)
    let largerGroups = UnsafeMutableBufferPointer<Group>.allocate(capacity: capacity)
    _ = largerGroups.moveInitialize(fromContentsOf: groups[..<count])
    groups.deallocate()
    groups = largerGroups
    let largerStates = UnsafeMutableBufferPointer<Accumulator>.allocate(capacity: max(1, capacity * functions.count))
    _ = largerStates.moveInitialize(fromContentsOf: states[..<(count * functions.count)])
    states.deallocate()
    states = largerStates
    slots.deallocate()
    slots = .allocate(capacity: 2 * capacity)
    slots.initialize(repeating: 0)
    for number in 0..<count { place(number) }
  }

  private func key(_ number: Int) -> UnsafeRawBufferPointer {
    let start = groups[number].start
    return UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<start + groups[number].keyCount])
  }

  /// The values of a group's expressions.
  func values(_ number: Int) -> UnsafeRawBufferPointer {
    let start = groups[number].start + groups[number].keyCount
    return UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<start + groups[number].valueCount])
  }

  /// The accumulators of a group, which the caller may change.
  @inline(__always)
  func accumulators(_ number: Int) -> UnsafeMutablePointer<Accumulator> {
    states.baseAddress.unsafelyUnwrapped + number * functions.count
  }

  // MARK: Temporary files

  /// Writes some of the groups to the temporary file, in the order of their keys. `sequence` tells the parts of a group
  /// apart that are written at different times. Cost: sorting the groups.
  /// - Throws: ``ScratchError`` if the file would be too long, or cannot be written.
  func write(_ numbers: Range<Int>, to scratch: Scratch, sequence: Int) throws(ScratchError) -> Range<Int> {
    let order = numbers.sorted { Ordering.raw(key($0), key($1)) == .less }
    var run = SortedRun(scratch)
    var entry: [UInt8] = []
    for number in order {
      entry.removeAll(keepingCapacity: true)
      entry.append(contentsOf: key(number))
      // Keys are such that none begins with another, so this decides only between equal ones.
      withUnsafeBytes(of: UInt64(sequence).bigEndian) { entry.append(contentsOf: $0) }
      try run.add(entry) { record in appendRecord(number, to: &record) }
    }
    return try run.finish()
  }

  private func appendRecord(_ number: Int, to record: inout [UInt8]) {
    for part in [key(number), values(number)] {
      withUnsafeBytes(of: UInt32(part.count)) { record.append(contentsOf: $0) }
      record.append(contentsOf: part)
    }
    for index in functions.indices { accumulators(number)[index].encode(to: &record) }
  }

  /// A part of a group that was written to the temporary file.
  struct Part {
    var key: [UInt8]
    var values: [UInt8]
    var accumulators: [Accumulator]

    /// Restores a part.
    /// - Throws: ``WireError`` if the bytes are damaged.
    init(_ record: [UInt8], _ functions: [AccumulatorFunction]) throws {
      var rest = record[...]
      func take() -> [UInt8] {
        let count = rest.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
        defer { rest = rest.dropFirst(4 + count) }
        return Array(rest.dropFirst(4).prefix(count))
      }
      key = take()
      values = take()
      accumulators = try rest.withUnsafeBytes { bytes in
        var bytes = bytes
        return try functions.map { try Accumulator($0, decoding: &bytes) }
      }
    }

    /// Adds a later part of the same group. Returns the change of the memory of its accumulators.
    mutating func merge(_ later: Part) -> Int {
      var change = 0
      for index in accumulators.indices {
        change -= accumulators[index].bytes
        accumulators[index].merge(later.accumulators[index])
        change += accumulators[index].bytes
      }
      return change
    }

    /// The memory of its accumulators.
    var bytes: Int { accumulators.reduce(0) { $0 + $1.bytes } }
  }
}
