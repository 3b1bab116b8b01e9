import CUV
import Glibc

/// Accepts connections on one loop and distributes them to all loops. There is one acceptor rather than a listening
/// socket per loop, because the kernel chooses among such sockets by a hash, which spreads few connections badly.
final class Acceptor: @unchecked Sendable {
  // Sendable: after creation it is used on its loop's thread only.

  /// Connections accepted in one turn, so that a flood of new ones does not delay the open ones.
  private static let acceptsPerTurn = 128
  private static let retryMilliseconds = 250

  private let loop: EventLoop
  private let descriptor: Int32
  private let poll: UnsafeMutablePointer<uv_poll_t>
  private let onAccept: (Int32) -> Void

  init(_ listening: ListeningSocket, on loop: EventLoop, onAccept: @escaping (Int32) -> Void) {
    self.loop = loop
    descriptor = listening.descriptor
    poll = .allocate(capacity: 1)
    self.onAccept = onAccept
  }

  /// Starts accepting. On the loop's thread.
  func start() {
    uv_poll_init(loop.raw, poll, descriptor)
    // The handle keeps the acceptor alive until libuv has released it.
    poll.pointee.data = Unmanaged.passRetained(self).toOpaque()
    listen()
  }

  /// Stops accepting and closes the socket. On the loop's thread, once, after `start`.
  func close() {
    uv_poll_stop(poll)
    Glibc.close(descriptor)
    uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) { handle in
      guard let data = handle?.pointee.data else { return }
      UnsafeMutableRawPointer(handle)?.deallocate()
      Unmanaged<Acceptor>.fromOpaque(data).release()
    }
  }

  private var isClosing: Bool {
    uv_is_closing(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) != 0
  }

  private func listen() {
    uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
      guard let data = handle?.pointee.data else { return }
      Unmanaged<Acceptor>.fromOpaque(data).takeUnretainedValue().acceptPending()
    }
  }

  private func acceptPending() {
    for _ in 0..<Self.acceptsPerTurn {
      let socket = cuv_accept(descriptor)
      if socket >= 0 {
        onAccept(socket)
        continue
      }
      switch errno {
      case EINTR, ECONNABORTED, EPROTO: continue
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: pause()
      default: break
      }
      return
    }
  }

  /// Stops accepting for a while if no descriptors are left. The waiting client stays in the backlog, and polling it
  /// again at once would only spin.
  private func pause() {
    uv_poll_stop(poll)
    loop.schedule(afterMilliseconds: Self.retryMilliseconds) { [weak self] in
      guard let self, !isClosing else { return }
      listen()
    }
  }
}
