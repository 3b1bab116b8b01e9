/// The ranges of keys that operations of one memtable removed from it and from the layers below.
///
/// The ranges are disjoint and sorted. Each has the ordinal of the newest operation that removed it; older ones that it
/// covers are gone, because a reader that sees this value sees the newest. A copy shares its memory until one changes.
struct RemovedRanges: Sendable {
  /// The keys with `lower` <= key < `upper`, removed by the operation `ordinal`.
  struct Range: Sendable {
    var lower: [UInt8]
    var upper: [UInt8]
    var ordinal: UInt64
  }

  private(set) var ranges: [Range] = []

  var isEmpty: Bool { ranges.isEmpty }
  var count: Int { ranges.count }

  /// Adds a range that is removed after all others. Cost: moves the ranges behind it.
  mutating func insert(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer, ordinal: UInt64) {
    guard compareKeys(lower, upper) < 0 else { return }
    let added = Range(lower: [UInt8](lower), upper: [UInt8](upper), ordinal: ordinal)
    // The ranges from `first` up to `end` share keys with the new one, which replaces these parts.
    let first = firstIndex { Self.compare($0.upper, lower) > 0 }
    let end = max(first, firstIndex { Self.compare($0.lower, upper) >= 0 })
    var replacement: [Range] = []
    if first < end, Self.compare(ranges[first].lower, lower) < 0 {
      var left = ranges[first]
      left.upper = added.lower
      replacement.append(left)
    }
    replacement.append(added)
    if first < end, Self.compare(ranges[end - 1].upper, upper) > 0 {
      var right = ranges[end - 1]
      right.lower = added.upper
      replacement.append(right)
    }
    ranges.replaceSubrange(first..<end, with: replacement)
  }

  /// Returns the index of the range that contains a key.
  func index(of key: UnsafeRawBufferPointer) -> Int? {
    guard !ranges.isEmpty else { return nil }
    let index = firstIndex { Self.compare($0.upper, key) > 0 }
    return index < ranges.count && Self.compare(ranges[index].lower, key) <= 0 ? index : nil
  }

  /// Returns the ordinal of the operation that removed a key, or 0.
  func ordinal(of key: UnsafeRawBufferPointer) -> UInt64 { index(of: key).map { ranges[$0].ordinal } ?? 0 }

  /// The index of the first range for which a condition holds that holds for all ranges behind it too.
  private func firstIndex(where holds: (Range) -> Bool) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if holds(ranges[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  private static func compare(_ a: [UInt8], _ b: UnsafeRawBufferPointer) -> Int {
    a.withUnsafeBytes { compareKeys($0, b) }
  }
}
