/// Something that runs once, later, on its loop. Coarse: it may be late by `EventLoop.sweepMilliseconds`.
package final class LoopTimer {
  private unowned let loop: EventLoop
  let deadlineMilliseconds: Int
  let action: () -> Void
  /// Its place among the loop's timers; `nil` once it ran or was cancelled.
  var index: Int?

  init(loop: EventLoop, deadlineMilliseconds: Int, index: Int, action: @escaping () -> Void) {
    self.loop = loop
    self.deadlineMilliseconds = deadlineMilliseconds
    self.index = index
    self.action = action
  }

  /// Forgets the action, in constant time. Does nothing when it ran already. On the loop's thread only.
  package func cancel() {
    loop.remove(self)
  }
}
