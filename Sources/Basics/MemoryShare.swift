import Synchronization

/// A limited part of the memory of the process that many clients use together, in bytes.
///
/// It only counts. Its users take bytes before they allocate memory, and give them back after they have freed it. Any
/// thread may call it. Each call costs one or two atomic operations.
package final class MemoryShare: Sendable {
  /// The most bytes that ``take(_:)`` lets its users have.
  package let bytesMax: Int
  private let used = Atomic<Int>(0)

  /// Creates a share of which nothing is used.
  package init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// Takes bytes, or returns `false` if fewer than `rest` would be left.
  package func take(_ bytes: Int, leaving rest: Int = 0) -> Bool {
    var found = used.load(ordering: .relaxed)
    // Never more than permitted, not even for a moment: others would find too little then.
    while found + bytes <= bytesMax - rest {
      let (isTaken, now) = used.weakCompareExchange(expected: found, desired: found + bytes, ordering: .relaxed)
      if isTaken { return true }
      found = now
    }
    return false
  }

  /// Takes bytes even if too few are left, or gives them back if the number is negative. The caller frees memory soon
  /// if the share is then exceeded.
  package func change(by bytes: Int) { used.wrappingAdd(bytes, ordering: .relaxed) }

  /// Gives bytes back.
  package func give(_ bytes: Int) { used.wrappingSubtract(bytes, ordering: .relaxed) }

  /// Whether more is used than permitted.
  package var isExceeded: Bool { used.load(ordering: .relaxed) > bytesMax }

  /// The bytes in use.
  package var usedBytes: Int { used.load(ordering: .relaxed) }
}
