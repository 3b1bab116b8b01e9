/// Work of a loop that waits for its turn, in the order in which it was added.
struct TurnQueue {
  /// Work that was taken is `nil`, which frees what it refers to.
  private var items: [(() -> Void)?] = []
  private var next = 0

  var count: Int { items.count - next }
  var isEmpty: Bool { next == items.count }

  mutating func append(_ item: @escaping () -> Void) { items.append(item) }

  /// Takes the oldest item. Costs constant time on average.
  mutating func popFirst() -> (() -> Void)? {
    guard next < items.count else { return nil }
    let item = items[next]
    items[next] = nil
    next += 1
    if next == items.count {
      items.removeAll(keepingCapacity: next < 1024)
      next = 0
    } else if next >= 1024, 2 * next >= items.count {
      items.removeFirst(next)
      next = 0
    }
    return item
  }
}
