import KeyValue

/// Fills an empty memtable with the operations of a log, which it links in key order at the end.
///
/// To add each operation by itself would search the list each time, in memory all over the table. So the nodes are made
/// first, in the order of the log, then sorted by the next few bytes of their keys at a time. Of each key only the newest
/// version is linked, because no reader can see older ones yet.
///
/// Cost: reads each key about twice, and sorts numbers. 16 bytes an operation until the end.
struct MemtableLoad {
  /// A node that is not linked, with a part of its key.
  private struct Entry {
    var part: UInt64 = 0
    let node: MemtableNode
  }

  private let table: Memtable
  private var entries: [Entry] = []

  /// The bytes of a key in ``Entry/part``. The lowest byte has the number of bytes that the key has from there.
  private static let partBytes = 7

  /// Begins to fill a table, which has no entries and no readers.
  init(_ table: Memtable) { self.table = table }

  /// Adds the operations of a commit, and its removed ranges to `ranges`. `ordinal` is the number of the last operation
  /// before and after them.
  mutating func add(
    _ batch: UnsafeRawBufferPointer, _ ranges: inout RemovedRanges, ordinal: inout UInt64
  ) throws(CommitBatchError) {
    var reader = try CommitBatchReader(batch)
    while let operation = try reader.next() {
      ordinal += 1
      switch operation {
      case .put(let key, let value): entries.append(Entry(node: table.makeNode(key, value, ordinal: ordinal)))
      case .remove(let key): entries.append(Entry(node: table.makeNode(key, nil, ordinal: ordinal)))
      case .removeRange(let lower, let upper): ranges.insert(from: lower, to: upper, ordinal: ordinal)
      }
    }
  }

  /// Links all nodes.
  consuming func finish() {
    let table = table
    entries.withUnsafeMutableBufferPointer { Self.link($0, from: 0, in: table) }
  }

  /// Links nodes whose keys are equal before `depth`.
  private static func link(_ entries: UnsafeMutableBufferPointer<Entry>, from depth: Int, in table: Memtable) {
    for index in entries.indices { entries[index].part = part(of: entries[index].node.key, at: depth) }
    var sorted = entries
    sorted.sort { $0.part < $1.part }
    var start = 0
    while start < entries.count {
      let part = entries[start].part
      var end = start + 1
      while end < entries.count, entries[end].part == part { end += 1 }
      if end - start == 1 {
        table.append(entries[start].node)
      } else if part & 0xFF <= UInt64(partBytes) {
        // The keys end here, so they are equal.
        var newest = entries[start].node
        for entry in entries[start..<end] where entry.node.firstOrdinal > newest.firstOrdinal { newest = entry.node }
        table.append(newest)
      } else {
        link(UnsafeMutableBufferPointer(rebasing: entries[start..<end]), from: depth + partBytes, in: table)
      }
      start = end
    }
  }

  /// Returns a number that orders keys with equal bytes before `depth`: ``partBytes`` bytes, with zeros behind the key, then
  /// the number of bytes that the key has, or one more if it has more.
  private static func part(of key: UnsafeRawBufferPointer, at depth: Int) -> UInt64 {
    let count = key.count - depth
    if count >= 8 { return UInt64(bigEndian: key.loadUnaligned(fromByteOffset: depth, as: UInt64.self)) & ~0xFF | 8 }
    var bytes: UInt64 = 0
    for index in 0..<min(count, partBytes) { bytes |= UInt64(key[depth + index]) << UInt64(56 - 8 * index) }
    return bytes | UInt64(count)
  }
}
