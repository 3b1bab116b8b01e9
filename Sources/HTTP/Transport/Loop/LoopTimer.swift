/// An action that runs once, later, on its loop. It may run up to `EventLoop.sweepMilliseconds` late.
package final class LoopTimer {
  private unowned let loop: EventLoop
  let deadlineMilliseconds: Int
  let action: () -> Void
  /// The position in the loop's list of timers, or `nil` after the timer ran or was canceled.
  var index: Int?

  init(loop: EventLoop, deadlineMilliseconds: Int, index: Int, action: @escaping () -> Void) {
    self.loop = loop
    self.deadlineMilliseconds = deadlineMilliseconds
    self.index = index
    self.action = action
  }

  /// Cancels the timer, in constant time. Does nothing if it already ran. Call on the loop's thread only.
  package func cancel() {
    loop.remove(self)
  }
}
