import Glibc
import TestSupport
import Testing

/// A client with a blocking socket that sends raw bytes and parses responses in the simplest way.
final class RawClient {
  struct Reply {
    var status = 0
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []

    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    var text: String { String(decoding: body, as: UTF8.self) }
  }

  struct Ended: Error {}

  private let socket: Int32
  private var pending: [UInt8] = []

  init(port: Int) throws {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(socket >= 0)
    // A missing response makes the test fail instead of hang.
    setTimeouts(of: socket, readSeconds: 20, writeSeconds: 20)
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else { throw Ended() }
  }

  deinit {
    close(socket)
  }

  /// Sends all bytes. A server that has stopped reading is not an error.
  func send(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      sent += count
    }
  }

  func send(_ text: String) {
    send(Array(text.utf8))
  }

  func endSending() {
    shutdown(socket, Int32(SHUT_WR))
  }

  /// Closes the connection with a reset.
  func reset() {
    var hard = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Whether `count` bytes arrive within the socket's time limit.
  func has(_ count: Int) -> Bool {
    while pending.count < count {
      guard fill() else { return false }
    }
    return true
  }

  /// Whether the server has ended the connection and no input is left.
  func isEnded() -> Bool {
    if !pending.isEmpty { return false }
    return !fill()
  }

  /// Reads everything up to the end of the connection.
  func readToEnd() -> [UInt8] {
    while fill() {}
    defer { pending = [] }
    return pending
  }

  /// Reads one response. `to` is the method of the request, since responses to HEAD have no body.
  func readReply(to method: String = "GET") throws -> Reply {
    var reply = Reply()
    let statusLine = try readLine()
    let parts = statusLine.split(separator: " ")
    try #require(parts.count >= 2 && parts[0] == "HTTP/1.1", "status line: \(statusLine)")
    reply.status = try #require(Int(parts[1]))
    while true {
      let line = try readLine()
      if line.isEmpty { break }
      let colon = try #require(line.firstIndex(of: ":"))
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      reply.fields.append((line[..<colon].lowercased(), String(value)))
    }
    if method == "HEAD" || reply.status == 204 || reply.status == 304 || reply.status < 200 { return reply }
    if reply.field("transfer-encoding") == "chunked" {
      while true {
        let count = try #require(Int(try readLine(), radix: 16))
        reply.body += try read(count)
        try #require(try readLine() == "")
        if count == 0 { break }
      }
    } else if let length = reply.field("content-length") {
      reply.body = try read(try #require(Int(length)))
    } else {
      reply.body = readToEnd()
    }
    return reply
  }

  func read(_ count: Int) throws -> [UInt8] {
    while pending.count < count {
      guard fill() else { throw Ended() }
    }
    let bytes = Array(pending[..<count])
    pending.removeFirst(count)
    return bytes
  }

  private func readLine() throws -> String {
    while true {
      if let end = pending.firstIndex(of: 0x0a) {
        let line = pending[..<end]
        try #require(line.last == 0x0d, "the line does not end with CR LF")
        pending.removeFirst(end + 1)
        return String(decoding: line.dropLast(), as: UTF8.self)
      }
      guard fill() else { throw Ended() }
    }
  }

  private func fill() -> Bool {
    let space = [UInt8](unsafeUninitializedCapacity: 64 * 1024) { buffer, count in
      var received = 0
      // A signal to the process, which one test sends, interrupts a call with a time limit.
      repeat { received = recv(socket, buffer.baseAddress, buffer.count, 0) } while received < 0 && errno == EINTR
      if received < 0 && errno == EAGAIN { Issue.record("the server neither responded nor closed the connection") }
      count = max(0, received)
    }
    pending += space
    return !space.isEmpty
  }
}
