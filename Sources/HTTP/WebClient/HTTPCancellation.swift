import CCurl
import Synchronization

/// Ends the requests of one client from any thread.
package final class HTTPCancellation: Sendable {
  private struct State {
    var isCancelled = false
    /// The address of libcurl's handle, which waits for the network, while the client exists.
    var waiting: UInt?
  }

  private let state = Mutex(State())

  /// Makes the client's current request, and every later one, fail with ``HTTPClientError/cancelled(address:)``.
  package func cancel() {
    state.withLock { state in
      state.isCancelled = true
      if let waiting = state.waiting, let multi = UnsafeMutableRawPointer(bitPattern: waiting) {
        _ = hearth_curl_multi_wakeup(multi)
      }
    }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Sets the handle to wake up. The client passes `nil` before it destroys the handle.
  func watch(_ multi: UnsafeMutableRawPointer?) { state.withLock { $0.waiting = multi.map { UInt(bitPattern: $0) } } }
}
