/// A value that belongs to a loop's thread, in a form that other threads can hold and pass back to the loop.
package struct LoopBound<Value>: @unchecked Sendable {
  // Sendable: `onLoop` and `later` ensure that the value is used on the loop's thread only.

  private let value: Value
  private let loop: EventLoop

  /// Wraps a value. Call on the loop's thread only.
  package init(_ value: Value, to loop: EventLoop) {
    assert(loop.isOnLoop, "a value must be bound on its loop's thread")
    self.value = value
    self.loop = loop
  }

  /// The value, for a caller on the loop's thread.
  package func value(on loop: EventLoop) -> Value {
    precondition(loop === self.loop && loop.isOnLoop, "a bound value was used on another thread")
    return value
  }

  /// Runs `work` with the value: immediately if called on the loop's thread, otherwise at the loop's next turn.
  package func onLoop(_ work: @escaping @Sendable (Value) -> Void) {
    if loop.isOnLoop {
      work(value)
    } else {
      later(work)
    }
  }

  /// Runs `work` with the value at the loop's next turn.
  package func later(_ work: @escaping @Sendable (Value) -> Void) {
    loop.execute { work(value) }
  }
}
