import Foundation
import Glibc

/// A client that sends each request over its own connection, to set peers up. `wrk` produces the loads.
enum LoadClient {
  struct Reply {
    let status: Int
    let body: String
    /// The status line and the fields.
    let head: String
  }

  /// A sent request whose response is read later.
  final class Pending {
    fileprivate let socket: Int32
    fileprivate init(_ socket: Int32) { self.socket = socket }
    deinit { close(socket) }
  }

  /// Sends a request to this machine and waits for the response. Uses HTTP/1.0, so that the server closes the
  /// connection after it.
  /// - Throws: ``BenchmarkError`` if no server responds.
  static func send(
    _ method: String = "GET", port: Int, _ target: String, body: String = "", headers: [String: String] = [:]
  ) throws -> Reply {
    guard let reply = try attempt(method, port: port, target, body: body, headers: headers) else {
      throw BenchmarkError("no server responds on port \(port)")
    }
    return reply
  }

  /// Like ``send(_:port:_:body:headers:)``, but returns `nil` if the connection is refused or cut.
  static func attempt(
    _ method: String = "GET", port: Int, _ target: String, body: String = "", headers: [String: String] = [:]
  ) throws -> Reply? {
    try begin(method, port: port, target, body: body, headers: headers).flatMap(finish)
  }

  /// Sends a request without waiting for its response. Returns `nil` if the connection is refused or cut.
  static func begin(
    _ method: String = "GET", port: Int, _ target: String, body: String = "", headers: [String: String] = [:]
  ) throws -> Pending? {
    guard let socket = connection(port: port) else { return nil }
    let pending = Pending(socket)
    // SDKs wait as long for a commit.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var text = "\(method) \(target) HTTP/1.0\r\nHost: 127.0.0.1:\(port)\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if !body.isEmpty {
      if headers["Content-Type"] == nil { text += "Content-Type: application/json\r\n" }
      text += "Content-Length: \(body.utf8.count)\r\n"
    }
    text += "\r\n\(body)"
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      // A server that refuses a large body may close its side before it has read all of it.
      guard sent > 0 else { return rest.count < text.utf8.count ? pending : nil }
      rest = rest.dropFirst(sent)
    }
    return pending
  }

  /// Waits for the response to a request. Returns `nil` if the connection is cut.
  static func finish(_ pending: Pending) -> Reply? {
    let socket = pending.socket
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(socket, &chunk, chunk.count, 0)
      guard count > 0 else { break }
      received.append(contentsOf: chunk[..<count])
      if isWhole(received) { break }
    }
    let reply = String(decoding: received, as: UTF8.self)
    guard reply.hasPrefix("HTTP/1."), let status = Int(reply.split(separator: " ", maxSplits: 2)[1].prefix(3)),
      let blank = reply.range(of: "\r\n\r\n")
    else { return nil }
    return Reply(status: status, body: String(reply[blank.upperBound...]), head: String(reply[..<blank.lowerBound]))
  }

  /// Whether the complete response has arrived. Some servers keep the connection open even for HTTP/1.0.
  private static func isWhole(_ received: [UInt8]) -> Bool {
    let reply = String(decoding: received, as: UTF8.self)
    guard let blank = reply.range(of: "\r\n\r\n"),
      let field = reply[..<blank.lowerBound].range(of: "content-length:", options: .caseInsensitive),
      let length = Int(reply[field.upperBound...].drop { $0 == " " }.prefix { $0.isNumber })
    else { return false }
    return reply[blank.upperBound...].utf8.count >= length
  }

  /// Opens a connection to this machine, which the caller must close. Returns `nil` if it is refused.
  static func connection(port: Int) -> Int32? {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { return nil }
    guard withLoopback(port: port, { connect(socket, $0, $1) }) == 0 else {
      close(socket)
      return nil
    }
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return socket
  }

  /// Returns a port on which no program listens at the moment.
  static func freePort() throws -> Int {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    guard socket >= 0, withLoopback(port: 0, { bind(socket, $0, $1) }) == 0 else {
      throw BenchmarkError("no free port: \(String(cString: strerror(errno)))")
    }
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(socket, $0, &length) }
    }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  private static func withLoopback(port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
