import Glibc
import Testing

/// A blocking socket that speaks bytes, and reads replies as plainly as possible.
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
    // A reply that never comes fails the test instead of hanging it.
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
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

  /// Sends everything; a server that stopped listening to us is no error here.
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

  /// Goes away without a word: the server's side sees a reset.
  func reset() {
    var hard = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Whether so many bytes have come, waiting for as long as the socket does.
  func has(_ count: Int) -> Bool {
    while pending.count < count {
      guard fill() else { return false }
    }
    return true
  }

  /// Whether the server has ended the connection and left nothing to read.
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

  /// Reads one reply. `to` is the method asked with, since replies to HEAD have no body.
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
        try #require(line.last == 0x0d, "a line that does not end with CR LF")
        pending.removeFirst(end + 1)
        return String(decoding: line.dropLast(), as: UTF8.self)
      }
      guard fill() else { throw Ended() }
    }
  }

  private func fill() -> Bool {
    let space = [UInt8](unsafeUninitializedCapacity: 64 * 1024) { buffer, count in
      var received = 0
      // A signal sent to the process, as one test does, interrupts a call with a time limit.
      repeat { received = recv(socket, buffer.baseAddress, buffer.count, 0) } while received < 0 && errno == EINTR
      if received < 0 && errno == EAGAIN { Issue.record("the server neither replied nor closed") }
      count = max(0, received)
    }
    pending += space
    return !space.isEmpty
  }
}
