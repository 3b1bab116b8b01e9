import CUV
import Glibc

/// Calls a function for signals sent to the process, on its own thread, where any code may run.
package final class SignalWatcher: @unchecked Sendable {
  // Sendable: the handles are used on the watcher's loop only. The rest never changes.

  private let loop: EventLoop
  private let handles: [UnsafeMutablePointer<uv_signal_t>]
  private let action: @Sendable (Int32) -> Void

  /// Starts watching. While a watcher exists, its signals do not end the process.
  ///
  /// - Parameters:
  ///   - signals: signals such as `SIGTERM`, `SIGINT` and `SIGHUP`, but none that no program can catch.
  ///   - action: called with the signal's number, once per signal. Several signals of one kind in quick succession
  ///     may cause only one call.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if no thread or descriptor is available.
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
    // The handle keeps the watcher alive until libuv has released it.
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    let status = uv_signal_start(
      handle,
      { handle, signal in
        guard let data = handle?.pointee.data else { return }
        Unmanaged<SignalWatcher>.fromOpaque(data).takeUnretainedValue().action(signal)
      }, signal)
    precondition(status == 0, "no program can watch this signal")
  }

  /// Restores the system's default handling of the signals and ends the thread. Call once, not from `action`.
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
