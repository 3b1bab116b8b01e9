import Dispatch
import Synchronization

/// Work that would hold up an event loop (hashing, waiting for a disk) on few threads of its own, so that a burst leaves
/// the processors to requests; and a bounded queue before them, so that it ends.
package final class BoundedQueue: Sendable {
  private let queues: [DispatchQueue]
  private let next = Atomic<Int>(0)
  private let waiting = Atomic<Int>(0)
  private let waitingMax: Int

  /// Creates a queue.
  package init(_ label: String, threads: Int = 1, waitingMax: Int) {
    queues = (0..<max(1, threads)).map { DispatchQueue(label: "hearth.\(label).\($0)", qos: .utility) }
    self.waitingMax = waitingMax
  }

  /// Runs `work` on a thread of the queue; returns `false`, and never runs it, where too much waits already.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    guard waiting.add(1, ordering: .relaxed).newValue <= waitingMax else {
      waiting.subtract(1, ordering: .relaxed)
      return false
    }
    let turn = next.add(1, ordering: .relaxed).newValue
    queues[Int(turn.magnitude % UInt(queues.count))].async {
      work()
      self.waiting.subtract(1, ordering: .relaxed)
    }
    return true
  }
}
