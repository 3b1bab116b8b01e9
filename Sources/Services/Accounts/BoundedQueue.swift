import Dispatch
import Synchronization

/// A bounded work queue with a few threads of its own. It runs work that would block an event loop (hashing,
/// waiting for a disk). A burst of work leaves the processors to requests, and the queue limit bounds the delay.
package final class BoundedQueue: Sendable {
  private let queues: [DispatchQueue]
  private let next = Atomic<Int>(0)
  private let waiting = Atomic<Int>(0)
  private let waitingMax: Int

  /// Creates a queue that holds at most `waitingMax` unfinished items.
  package init(_ label: String, threads: Int = 1, waitingMax: Int) {
    queues = (0..<max(1, threads)).map { DispatchQueue(label: "hearth.\(label).\($0)", qos: .utility) }
    self.waitingMax = waitingMax
  }

  /// Runs `work` on a thread of the queue. Returns `false`, and never runs it, if the queue is full.
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
