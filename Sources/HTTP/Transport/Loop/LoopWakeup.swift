import CUV
import Glibc

/// Wakes a loop from other threads.
///
/// It is an event descriptor that the loop polls like a socket. libuv's own `uv_async_t` is not used: while a sender is
/// within its call, a loop that wakes spins and yields its processor until the sender has ended it. The sender's write
/// wakes the loop, often on the same processor, so on a busy machine loops spent milliseconds in that wait.
///
/// `@unchecked Sendable`: the descriptor is constant and stays open as long as this object. Everything else is used on the
/// thread of the loop, or before that thread starts or after it has ended.
final class LoopWakeup: @unchecked Sendable {
  private let descriptor: Int32
  private let poll: UnsafeMutablePointer<uv_poll_t>
  private var onWake: () -> Void = {}

  /// Creates the descriptor and adds it to a loop that does not run yet.
  ///
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if the process has no descriptors left. Then the loop is
  ///   as before.
  init(_ loop: UnsafeMutablePointer<uv_loop_t>) throws(TransportError) {
    descriptor = cuv_event_open()
    guard descriptor >= 0 else {
      throw .resourceExhausted(what: "an event loop", reason: String(cString: strerror(errno)))
    }
    poll = .allocate(capacity: 1)
    let status = uv_poll_init(loop, poll, descriptor)
    guard status == 0 else {
      Glibc.close(descriptor)
      poll.deallocate()
      throw .resourceExhausted(what: "an event loop", reason: describe(status))
    }
    poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
  }

  deinit {
    Glibc.close(descriptor)
    poll.deallocate()
  }

  /// Calls `action` on the loop after each ``send()``, once for several that come close together.
  func start(_ action: @escaping () -> Void) {
    onWake = action
    uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
      guard let data = handle?.pointee.data else { return }
      Unmanaged<LoopWakeup>.fromOpaque(data).takeUnretainedValue().wake()
    }
  }

  /// Wakes the loop. Any thread may call it. Costs one system call. Does nothing once the loop has ended.
  func send() { cuv_event_send(descriptor) }

  /// Removes the descriptor from the loop, which must run once more before this object is released.
  func close() {
    onWake = {}
    uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self), nil)
  }

  private func wake() {
    // Before the action, so that a later call of `send` wakes the loop again.
    cuv_event_take(descriptor)
    onWake()
  }
}
