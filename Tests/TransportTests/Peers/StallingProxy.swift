import Foundation
import Glibc
import Synchronization
import TestSupport

/// A proxy between two servers of this machine that can stop to forward, while both connections stay open, like a machine
/// that lost its network.
final class StallingProxy: Sendable {
  let port: UInt16
  private let listener: Int32
  private let isStalled = Mutex(false)

  init(to target: Int) throws {
    let (listener, port) = try LoopbackAddress.bind()
    self.listener = listener
    self.port = port
    guard listen(listener, 16) == 0 else { throw LoopbackError("cannot listen: errno \(errno)") }
    Thread { [weak self] in
      defer { close(listener) }
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0, self != nil else { return }
        Thread { [weak self] in Self.serve(client, UInt16(target)) { self?.isStalled.withLock { $0 } ?? true } }.start()
      }
    }.start()
  }

  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  /// Forwards nothing from now on.
  func stall() { isStalled.withLock { $0 = true } }

  private static func serve(_ client: Int32, _ target: UInt16, isStalled: () -> Bool) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer {
      close(client)
      close(server)
    }
    guard LoopbackAddress.with(port: target, { connect(server, $0, $1) }) == 0 else { return }
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      var entries = [
        pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&entries, 2, 50) >= 0 else { return }
      if isStalled() {
        // Until one side closes its connection, which a lost network would not show the other.
        var byte: UInt8 = 0
        if recv(client, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0 { return }
        _ = poll(nil, 0, 10)
        continue
      }
      for (index, other) in [(0, server), (1, client)] where entries[index].revents != 0 {
        let count = recv(entries[index].fd, &buffer, buffer.count, 0)
        guard count > 0, send(other, buffer, count, Int32(MSG_NOSIGNAL)) == count else { return }
      }
    }
  }
}
