import Dispatch
import Synchronization

/// A queue for requests of one kind.
final class RequestLine: Sendable {
  private let queue: DispatchQueue
  private let unfinished = Atomic<Int>(0)

  init(_ label: String) { queue = DispatchQueue(label: label) }

  /// Whether nothing waits or runs.
  var isIdle: Bool { unfinished.load(ordering: .sequentiallyConsistent) == 0 }

  /// Performs a request and handles its answer, after those before it.
  func run(_ request: @escaping @Sendable () -> Void) {
    unfinished.add(1, ordering: .sequentiallyConsistent)
    queue.async {
      request()
      self.unfinished.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  /// Waits until everything before is done.
  func wait() { queue.sync {} }
}
