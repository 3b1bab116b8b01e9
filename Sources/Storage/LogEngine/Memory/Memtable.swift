import KeyValue
import Synchronization

/// The newest entries of a store, in memory: a skip list of keys, each with its versions.
///
/// One thread writes, under the writer's lock of the store. Any number of threads read meanwhile, without locks. Each
/// operation has an *ordinal*, a number that increases. A reader has an ordinal too, and sees of each key the newest
/// version that is not above it. A version that removes the key hides the layers below. Keys stay in the list until the
/// whole table is freed, even if all their versions are withdrawn.
///
/// Cost: a search compares about 2 log2 n keys. An entry takes about 38 bytes besides its key and value.
///
/// `@unchecked Sendable`: only the writer changes the arena. A node is complete before a pointer to it is stored with
/// release order, and readers load pointers with acquire order. Nodes and versions stay as long as the table.
final class Memtable: @unchecked Sendable {
  /// The most levels of a node: enough for 4^12 entries.
  private static let heightMax = 12

  /// The number of keys, also if readers cannot see them. Only for the writer.
  private(set) var keys = 0

  private var arena: MemtableArena
  private let head: MemtableNode
  /// The highest level that has nodes. A reader that sees an old one finds the same nodes, with more steps.
  private let topLevel = Atomic<Int>(0)
  private var randomState: UInt64 = 0x9E37_79B9_7F4A_7C15
  /// The nodes before a key at each level; the writer's notes of one search.
  private let before: UnsafeMutablePointer<MemtableNode>

  init() {
    var arena = MemtableArena()
    head = MemtableNode(
      at: arena.allocate(MemtableNode.bytes(height: Self.heightMax, keyBytes: 0, valueBytes: 0)),
      height: Self.heightMax, key: UnsafeRawBufferPointer(start: nil, count: 0), ordinal: 0, value: nil)
    self.arena = arena
    before = .allocate(capacity: Self.heightMax)
    before.initialize(repeating: head, count: Self.heightMax)
  }

  deinit { before.deallocate() }

  /// The bytes that the table has allocated. Only for the writer.
  var allocatedBytes: Int { arena.allocatedBytes }

  // MARK: Writing

  /// Adds a version of a key: a value, or `nil` to remove the key. `ordinal` is above those of all earlier versions.
  func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?, ordinal: UInt64) {
    let found = searchForInsertion(key)
    if let found {
      let version = MemtableVersion(
        at: arena.allocate(MemtableVersion.headBytes + (value?.count ?? 0)), ordinal: ordinal, older: found.newest,
        value: value)
      return found.setNewest(version)
    }
    let node = makeNode(key, value, ordinal: ordinal)
    keys += 1
    for level in 0..<node.height {
      node.setNext(level, before[level].next(level))
      before[level].setNext(level, node)
    }
  }

  /// Makes a node that is not in the list, for ``append(_:)``.
  func makeNode(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?, ordinal: UInt64) -> MemtableNode {
    let height = randomHeight()
    if height > topLevel.load(ordering: .relaxed) + 1 { topLevel.store(height - 1, ordering: .relaxed) }
    let bytes = MemtableNode.bytes(height: height, keyBytes: key.count, valueBytes: value?.count ?? 0)
    return MemtableNode(at: arena.allocate(bytes), height: height, key: key, ordinal: ordinal, value: value)
  }

  /// Links a node whose key is above all others. The list was filled by this function only.
  func append(_ node: MemtableNode) {
    keys += 1
    for level in 0..<node.height {
      before[level].setNext(level, node)
      before[level] = node
    }
  }

  /// Withdraws the versions of a key that are above `ordinal`, which no reader sees.
  func withdraw(_ key: UnsafeRawBufferPointer, above ordinal: UInt64) {
    guard let node = node(at: key) else { return }
    node.setNewest(node.version(at: ordinal))
  }

  /// Finds the node of a key, and notes the nodes before the key.
  private func searchForInsertion(_ key: UnsafeRawBufferPointer) -> MemtableNode? {
    var node = head
    var level = Self.heightMax - 1
    var found: MemtableNode?
    // The node at or after the key that stopped the level above. Another comparison would stop here too.
    var stop: MemtableNode?
    while level >= 0 {
      while let next = node.next(level), next != stop {
        let order = next.compare(key)
        if order >= 0 {
          stop = next
          if order == 0 { found = next }
          break
        }
        node = next
      }
      before[level] = node
      level -= 1
    }
    return found
  }

  /// Draws a height: 1, and one more with a probability of 1/4 each.
  private func randomHeight() -> Int {
    randomState ^= randomState << 13
    randomState ^= randomState >> 7
    randomState ^= randomState << 17
    return min(Self.heightMax, 1 + (randomState | 1 << 63).trailingZeroBitCount / 2)
  }

  // MARK: Reading

  /// Returns the version of a key that a reader sees, which may be a removal.
  func version(of key: UnsafeRawBufferPointer, at ordinal: UInt64) -> MemtableVersion? {
    node(at: key)?.version(at: ordinal)
  }

  /// Returns the node of a key, or `nil`.
  private func node(at key: UnsafeRawBufferPointer) -> MemtableNode? {
    var node = head
    var level = topLevel.load(ordering: .relaxed)
    var stop: MemtableNode?
    while true {
      if let next = node.next(level), next != stop {
        let order = next.compare(key)
        if order == 0 { return next }
        if order < 0 {
          node = next
          continue
        }
        stop = next
      }
      if level == 0 { return nil }
      level -= 1
    }
  }

  /// The first node, also if readers cannot see it.
  var first: MemtableNode? { head.next(0) }

  /// Returns the first node whose key is not below `key`, also if readers cannot see it.
  func node(atOrAfter key: UnsafeRawBufferPointer) -> MemtableNode? {
    var node = head
    var level = topLevel.load(ordering: .relaxed)
    var stop: MemtableNode?
    while true {
      let next = node.next(level)
      if let next, next != stop {
        let order = next.compare(key)
        if order == 0 { return next }
        if order < 0 {
          node = next
          continue
        }
        stop = next
      }
      if level == 0 { return next }
      level -= 1
    }
  }

  /// Returns the last node whose key is below `key`, also if readers cannot see it.
  func node(before key: UnsafeRawBufferPointer) -> MemtableNode? {
    var node = head
    var level = topLevel.load(ordering: .relaxed)
    while true {
      if let next = node.next(level), next.compare(key) < 0 {
        node = next
      } else if level == 0 {
        return node == head ? nil : node
      } else {
        level -= 1
      }
    }
  }
}
