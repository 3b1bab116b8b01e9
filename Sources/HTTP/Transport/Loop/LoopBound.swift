/// Something that belongs to a loop's thread, in a form that other threads may carry back to it.
package struct LoopBound<Value>: @unchecked Sendable {
  // Sendable: the value is reached on the loop's thread only, which `onLoop` and `later` see to.

  private let value: Value
  private let loop: EventLoop

  /// Binds a value. On the loop's thread only.
  package init(_ value: Value, to loop: EventLoop) {
    assert(loop.isOnLoop, "a value is bound where it belongs")
    self.value = value
    self.loop = loop
  }

  /// Runs `work` with the value: at once on the loop's thread, else at the loop's next turn.
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
