import Synchronization

/// The parts of an object that several event loops use: at most one for each loop. A part belongs to its loop, so it needs
/// no lock of its own.
package final class LoopParts<Part>: Sendable {
  private let parts = Mutex<[ObjectIdentifier: LoopBound<Part>]>([:])

  /// Creates an object without parts.
  package init() {}

  /// The part of a loop, or `nil` before one is set. Use it on the loop's thread only.
  ///
  /// Cost: a short lock that all loops share, and a lookup among the loops.
  package subscript(loop: EventLoop) -> Part? {
    get { parts.withLock { $0[ObjectIdentifier(loop)] }?.value(on: loop) }
    set { parts.withLock { $0[ObjectIdentifier(loop)] = newValue.map { LoopBound($0, to: loop) } } }
  }

  /// Runs `work` with each part, at the next turn of its loop. Any thread may call it.
  package func later(_ work: @escaping @Sendable (Part) -> Void) {
    for part in parts.withLock({ Array($0.values) }) { part.later(work) }
  }
}
