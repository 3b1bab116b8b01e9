import Glibc
import TestSupport
import Testing

/// A client of one feed that reads events as they arrive. Use it on one thread; every wait has a timeout.
final class FeedConnection {
  private var socket: Int32
  private var received: [UInt8] = []
  private var isHeadRead = false
  private(set) var status = 0
  private(set) var head = ""
  /// The body so far, without chunk headers.
  private(set) var body = ""
  /// Whether the whole body has arrived.
  private(set) var isComplete = false

  /// Connects to a port of this machine and sends a request. Reads nothing yet.
  init(port: UInt16, _ method: String = "GET", _ target: String, headers: [(String, String)] = [], body: String = "")
    throws
  {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(socket >= 0, "errno \(errno)")
    setTimeouts(of: socket, readSeconds: 30)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(result == 0, "errno \(errno)")
    var request = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
    for (name, value) in headers { request += "\(name): \(value)\r\n" }
    if method == "POST" { request += "Content-Length: \(body.utf8.count)\r\n" }
    let bytes = Array((request + "\r\n" + body).utf8)
    try #require(send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
  }

  deinit { close() }

  /// Closes the connection.
  func close() {
    if socket >= 0 { _ = Glibc.close(socket) }
    socket = -1
  }

  /// Reads until the body so far satisfies a condition, and returns the body. Fails if the body ends first.
  @discardableResult
  func read(until isEnough: (String) -> Bool) throws -> String {
    while !(isHeadRead && isEnough(body)) {
      try #require(!isComplete, "the feed ended early: \(head)\n\(body)")
      try receive()
    }
    return body
  }

  /// Reads until the body so far contains a text `count` times.
  @discardableResult
  func read(until text: String, count: Int = 1) throws -> String {
    try read { $0.split(separator: text, omittingEmptySubsequences: false).count > count }
  }

  /// Reads until the response is complete.
  @discardableResult
  func readToEnd() throws -> String {
    while !isComplete { try receive() }
    return body
  }

  /// Waits until the server closes or resets the connection, discarding data that arrives before. Returns whether it
  /// did.
  func isCut() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { return true }
      if count < 0, errno == EAGAIN { return false }
    }
  }

  private func receive() throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(socket, &buffer, buffer.count, 0)
    try #require(count >= 0, "timeout (errno \(errno)) after: \(head)\n\(body.suffix(2000))")
    try #require(count > 0, "the connection closed after: \(head)\n\(body.suffix(2000))")
    received += buffer[..<count]
    if !isHeadRead { readHead() }
    if isHeadRead { try readBody() }
  }

  private func readHead() {
    let text = String(decoding: received, as: UTF8.self)
    guard let end = text.utf8.firstRange(of: "\r\n\r\n".utf8) else { return }
    head = String(text[..<end.lowerBound]).lowercased()
    status = Int(text.split(separator: " ")[1]) ?? 0
    received.removeFirst(text.utf8.distance(from: text.startIndex, to: end.upperBound))
    isHeadRead = true
  }

  private func readBody() throws {
    guard head.contains("transfer-encoding: chunked") else {
      body += String(decoding: received, as: UTF8.self)
      received = []
      let length = head.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
      isComplete = length.flatMap { Int($0.filter(\.isNumber)) } == body.utf8.count
      return
    }
    while let end = received.firstIndex(of: 13) {
      let size = try #require(Int(String(decoding: received[..<end], as: UTF8.self), radix: 16))
      guard received.count >= end + 2 + size + 2 else { return }
      body += String(decoding: received[(end + 2)..<(end + 2 + size)], as: UTF8.self)
      received.removeFirst(end + 2 + size + 2)
      if size == 0 { isComplete = true }
    }
  }
}
