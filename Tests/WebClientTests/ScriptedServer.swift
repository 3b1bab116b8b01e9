import Foundation
import Glibc
import Synchronization

/// A server on this machine that sends fixed texts and records the requests.
final class ScriptedServer: Sendable {
  /// The treatment of one connection. It ends after the last text.
  struct Connection: Sendable {
    /// The text to send after each request.
    var answers: [String]
    /// The maximum number of bytes in one packet.
    var pieceBytes = Int.max
    /// Whether the connection stays open and silent after the last text, until the client closes it.
    var staysOpen = false
    /// Whether the server reads the bodies of requests.
    var readsBodies = true
  }

  private struct State {
    var connections: [Connection]
    var requests: [String] = []
    var connectionCount = 0
  }

  let port: Int
  private let listener: Int32
  private let state: Mutex<State>
  private let received = DispatchSemaphore(value: 0)

  /// Starts the server. It closes further connections at once.
  init(_ connections: [Connection]) throws {
    state = Mutex(State(connections: connections))
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    guard isBound else { throw CocoaError(.fileReadUnknown) }
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread { [weak self] in
      // Only this thread closes the socket, after it was shut down.
      defer { close(listener) }
      while true {
        let client = accept(listener, nil, nil)
        if client < 0, errno == EINVAL { return }
        guard client >= 0 else { continue }
        self?.serve(client)
        close(client)
      }
    }.start()
  }

  convenience init(_ answers: String..., pieceBytes: Int = .max) throws {
    try self.init([Connection(answers: answers, pieceBytes: pieceBytes)])
  }

  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  /// The heads and bodies of all received requests.
  var requests: [String] { state.withLock { $0.requests } }
  /// The number of accepted connections.
  var connectionCount: Int { state.withLock { $0.connectionCount } }

  /// Waits for one more request.
  func waitForRequest() -> Bool { received.wait(timeout: .now() + 20) == .success }

  private func serve(_ client: Int32) {
    let connection = state.withLock { state -> Connection? in
      state.connectionCount += 1
      return state.connections.isEmpty ? nil : state.connections.removeFirst()
    }
    guard let connection else { return }
    var on: Int32 = 1
    setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    for answer in connection.answers {
      guard let request = readRequest(client, withBody: connection.readsBodies) else { return }
      state.withLock { $0.requests.append(request) }
      received.signal()
      var rest = Array(answer.utf8)[...]
      while !rest.isEmpty {
        let piece = Array(rest.prefix(connection.pieceBytes))
        guard send(client, piece, piece.count, Int32(MSG_NOSIGNAL)) == piece.count else { return }
        rest = rest.dropFirst(piece.count)
      }
    }
    guard connection.staysOpen else { return }
    // POLLRDHUP, whose declaration Swift does not see: the client has closed the connection.
    var entry = pollfd(fd: client, events: 0x2000, revents: 0)
    _ = poll(&entry, 1, 20_000)
  }

  private func readRequest(_ client: Int32, withBody: Bool) -> String? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      if let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
          .flatMap { Int($0.dropFirst("content-length: ".count)) }
        if !withBody || bytes.count - end.upperBound >= length ?? 0 { return String(decoding: bytes, as: UTF8.self) }
      }
      let count = recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
    }
  }
}
