import Synchronization

/// Things that requests use one after the other: each keeps its buffers from one request to the next.
final class ObjectPool<Item>: Sendable {
  private struct Shelf: @unchecked Sendable {
    // Sendable: whoever took an item out of the pool is alone with it.
    var items: [Item] = []
  }

  private let idle = Mutex(Shelf())
  /// More would mean as many requests at work at once, each on a thread of its own.
  private static var idleMax: Int { 16 }

  /// An item that nobody uses, or `nil`.
  func take() -> Item? {
    idle.withLock { $0.items.popLast() }
  }

  /// Puts an item back, or lets it go where enough wait.
  func give(_ item: Item) {
    let shelf = Shelf(items: [item])
    idle.withLock { if $0.items.count < Self.idleMax { $0.items += shelf.items } }
  }
}
