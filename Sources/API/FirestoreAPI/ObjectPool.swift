import Synchronization

/// A pool of objects that requests reuse, each of which keeps its buffers from one request to the next.
final class ObjectPool<Item>: Sendable {
  private struct Shelf: @unchecked Sendable {
    // Sendable, because only one thread uses an item that was taken out of the pool.
    var items: [Item] = []
  }

  private let idle = Mutex(Shelf())
  /// The number of idle objects to keep. More are used only if as many requests run at once, each on its own
  /// thread.
  private static var idleMax: Int { 16 }

  /// Takes an idle item out of the pool, or returns `nil`.
  func take() -> Item? {
    idle.withLock { $0.items.popLast() }
  }

  /// Puts an item back, or releases it if enough are idle.
  func give(_ item: Item) {
    let shelf = Shelf(items: [item])
    idle.withLock { if $0.items.count < Self.idleMax { $0.items += shelf.items } }
  }
}
