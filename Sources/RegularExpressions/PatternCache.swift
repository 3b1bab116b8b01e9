import Synchronization

/// The patterns that expressions computed last. A literal pattern is compiled with its ruleset or pipeline instead.
package final class PatternCache: Sendable {
  /// The number of patterns that the cache keeps.
  private let patternsMax: Int

  /// Creates an empty cache for `patternsMax` patterns. Each takes at most 1 MiB.
  package init(patternsMax: Int) { self.patternsMax = patternsMax }

  private struct Entry {
    let text: [UInt8]
    let pattern: Pattern
  }

  /// The entry that was used last is the last one.
  private let entries = Mutex<[Entry]>([])

  /// Returns the compiled pattern, or `nil` if RE2 rejects the text. Cost: compiles it unless it was used recently.
  package func pattern(_ text: UnsafeRawBufferPointer) -> Pattern? {
    let known = entries.withLock { entries -> Pattern? in
      guard let place = entries.lastIndex(where: { $0.text.elementsEqual(text) }) else { return nil }
      let entry = entries.remove(at: place)
      entries.append(entry)
      return entry.pattern
    }
    if let known { return known }
    guard let pattern = Pattern(text) else { return nil }
    entries.withLock { entries in
      if entries.count >= patternsMax { entries.removeFirst() }
      entries.append(Entry(text: Array(text), pattern: pattern))
    }
    return pattern
  }
}
