import LogEngine

/// The newest entries of an owner's epoch: those after its takeover, with it, as far as they fit.
package struct NewestEntries: Sendable {
  private let bytesMax: Int
  private var entries: [SharedEntry]
  private var start = 0
  private var bytes: Int

  /// Begins with a takeover, and keeps about `bytesMax` bytes of bodies, but at least the newest entry.
  package init(from takeover: SharedEntry, bytesMax: Int) {
    self.bytesMax = bytesMax
    (entries, bytes) = ([takeover], takeover.body.count)
  }

  /// The sequence of the oldest entry.
  package var first: UInt64 { entries[start].position.sequence }

  /// The newest entry.
  package var last: SharedEntry { entries[entries.count - 1] }

  /// The entries, the oldest first. Cost: a copy.
  package var all: [SharedEntry] { Array(entries[start...]) }

  /// The entry with a sequence, which is one of ``first`` to that of ``last``.
  package subscript(sequence: UInt64) -> SharedEntry { entries[start + Int(sequence - first)] }

  /// Adds the entry after the newest one. The oldest ones, at most up to the sequence `limit`, leave to make room.
  package mutating func append(_ entry: SharedEntry, dropping limit: UInt64 = .max) {
    entries.append(entry)
    bytes += entry.body.count
    while bytes > bytesMax, start < entries.count - 1, first <= limit {
      bytes -= entries[start].body.count
      // The array keeps its place for a while, but not its memory.
      entries[start] = SharedEntry(kind: entries[start].kind, position: entries[start].position, body: [])
      start += 1
    }
    // Half of the array is unused: move the rest, at a constant cost for each entry.
    if start > 1024, start > entries.count / 2 {
      entries.removeFirst(start)
      start = 0
    }
  }
}
