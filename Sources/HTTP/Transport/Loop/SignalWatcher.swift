import CUV
import Glibc

/// Tells of signals sent to the process, on a thread of its own, where any code may run.
package final class SignalWatcher: @unchecked Sendable {
  // Sendable: the handles are touched on the watcher's loop only; the rest never changes.

  private let loop: EventLoop
  private let handles: [UnsafeMutablePointer<uv_signal_t>]
  private let action: @Sendable (Int32) -> Void

  /// Starts watching. While a watcher lives its signals do not end the process.
  ///
  /// - Parameters:
  ///   - signals: such as `SIGTERM`, `SIGINT` and `SIGHUP`; not those that no program can catch.
  ///   - action: called with the signal's number, once for each signal that arrives; several of the same kind close
  ///     together may be one call.
  /// - Throws: `.resourceExhausted` when there is no thread or descriptor left.
  package init(_ signals: [Int32], action: @escaping @Sendable (Int32) -> Void) throws(TransportError) {
    loop = try EventLoop(name: "hearth-signals")
    handles = signals.map { _ in .allocate(capacity: 1) }
    self.action = action
    try loop.start()
    loop.executeAndWait { [self] in
      for (handle, signal) in zip(handles, signals) { watch(signal, with: handle) }
    }
  }

  private func watch(_ signal: Int32, with handle: UnsafeMutablePointer<uv_signal_t>) {
    uv_signal_init(loop.raw, handle)
    // The handle keeps the watcher alive until libuv has let go of it.
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    let status = uv_signal_start(
      handle,
      { handle, signal in
        guard let data = handle?.pointee.data else { return }
        Unmanaged<SignalWatcher>.fromOpaque(data).takeUnretainedValue().action(signal)
      }, signal)
    precondition(status == 0, "a signal that no program can watch")
  }

  /// Gives the signals back to the system's default and ends the thread. Call once, not from `action`.
  package func stop() {
    loop.executeAndWait { [self] in
      for handle in handles {
        uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) { handle in
          guard let data = handle?.pointee.data else { return }
          UnsafeMutableRawPointer(handle)?.deallocate()
          Unmanaged<SignalWatcher>.fromOpaque(data).release()
        }
      }
    }
    loop.stopAndJoin()
  }
}
