package import Dispatch

/// A serial queue of work: one piece at a time, in the order in which they were added.
///
/// A server runs them on threads of the system (`DispatchQueue`). A simulation runs them step by step on its own thread,
/// in an order that its seed decides, so that a failure can be repeated.
package protocol WorkQueue: AnyObject, Sendable {
  /// Adds work and returns at once.
  func run(_ work: @escaping @Sendable () -> Void)

  /// Adds work, and returns when it and all work before it is done. Work of this queue must not call it.
  func runAndWait(_ work: () -> Void)

  /// Adds work after some seconds.
  func run(afterSeconds seconds: Int, _ work: @escaping @Sendable () -> Void)
}

extension DispatchQueue: WorkQueue {
  /// Adds work as ``WorkQueue/run(_:)``.
  package func run(_ work: @escaping @Sendable () -> Void) { async(execute: work) }

  /// Adds work as ``WorkQueue/runAndWait(_:)``.
  package func runAndWait(_ work: () -> Void) { sync(execute: work) }

  /// Adds work as ``WorkQueue/run(afterSeconds:_:)``.
  package func run(afterSeconds seconds: Int, _ work: @escaping @Sendable () -> Void) {
    asyncAfter(deadline: .now() + .seconds(seconds), execute: work)
  }
}

/// Makes the queues of a database, and runs its work that needs no order.
package struct WorkQueues: Sendable {
  /// Makes a queue with a label.
  package var serial: @Sendable (_ label: String) -> any WorkQueue
  /// Runs work that is not urgent, beside everything else.
  package var aside: @Sendable (_ work: @escaping @Sendable () -> Void) -> Void
  /// Runs work that a client waits for, beside everything else.
  package var urgent: @Sendable (_ work: @escaping @Sendable () -> Void) -> Void

  package init(
    serial: @escaping @Sendable (_ label: String) -> any WorkQueue,
    aside: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void,
    urgent: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void
  ) {
    self.serial = serial
    self.aside = aside
    self.urgent = urgent
  }

  /// Threads of the system.
  package static let threads = WorkQueues(
    serial: { DispatchQueue(label: $0) }, aside: { DispatchQueue.global(qos: .utility).async(execute: $0) },
    urgent: { DispatchQueue.global().async(execute: $0) })
}
