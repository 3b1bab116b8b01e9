import DocumentModel

/// The lowest so many of the keys it was shown: a heap with the highest of them on top.
struct LowestKeys {
  typealias Entry = (key: [UInt8], id: [UInt8])

  private let countMax: Int
  private var heap: [Entry] = []

  init(count: Int) { countMax = count }

  /// Whether a key would be kept. Ask before building what belongs to it.
  func wants(_ key: [UInt8]) -> Bool {
    guard heap.count == countMax, let top = heap.first else { return true }
    return Self.precedes(key, top.key)
  }

  /// Adds a key; the highest gives way where there are too many.
  mutating func add(_ key: [UInt8], id: [UInt8]) {
    guard wants(key) else { return }
    if heap.count == countMax {
      heap[0] = (key, id)
      siftDown()
      return
    }
    heap.append((key, id))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard Self.precedes(heap[parent].key, heap[child].key) else { return }
      heap.swapAt(parent, child)
      child = parent
    }
  }

  /// The keys in ascending order.
  func sorted() -> [Entry] { heap.sorted { Self.precedes($0.key, $1.key) } }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var highest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
        if Self.precedes(heap[highest].key, heap[child].key) { highest = child }
      }
      guard highest != parent else { return }
      heap.swapAt(parent, highest)
      parent = highest
    }
  }

  private static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool { Ordering.bytes(a, b) == .less }
}
