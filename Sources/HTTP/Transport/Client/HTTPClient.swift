import CUV
import Glibc

/// A blocking HTTP/1.1 client over one connection, which it keeps from request to request. For tools, not for
/// servers.
///
/// Use it from one thread at a time.
package final class HTTPClient {
  /// The response to a request.
  package struct Response: Sendable {
    package var status: Int
    /// The header fields in order, with lower-case names.
    package var headers: [(name: String, value: String)] = []
    /// The complete body.
    package var body: [UInt8]

    /// Returns the first value of the field with this lower-case name, or `nil` if it is missing.
    package func header(_ lowercasedName: String) -> String? { headers.first { $0.name == lowercasedName }?.value }
  }

  /// The limits of a client.
  package struct Limits: Sendable {
    /// Seconds to wait for the connection.
    package var connectSeconds = 5
    /// Seconds without a byte in either direction before a request fails.
    package var stallSeconds = 60
    /// The largest accepted body, in bytes.
    package var bodyBytesMax = 64 << 20

    /// Creates limits with the defaults above.
    package init() {}
  }

  /// The server's address, as errors show it.
  package let address: String
  private let host: String
  private let port: Int
  private let limits: Limits
  private var socket: Int32 = -1

  /// Creates a client. It connects with the first request.
  package init(host: String, port: Int, limits: Limits = Limits()) {
    self.host = host
    self.port = port
    self.limits = limits
    address = "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  deinit { disconnect() }

  /// Sends a request and waits for the complete response.
  ///
  /// If the server has closed the kept connection meanwhile, the client opens a new one and repeats the request,
  /// except for POST.
  /// - Parameter headers: fields besides `Host` and `Content-Length`, without line breaks in names and values.
  /// - Throws: ``HTTPClientError`` if no complete response arrives. The connection is then closed.
  package func send(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []
  ) throws(HTTPClientError) -> Response {
    let message = message(method, target, headers, body)
    let isReused = socket >= 0
    do throws(HTTPClientError) {
      return try exchange(message, isHead: method == "HEAD")
    } catch {
      disconnect()
      guard isReused, method != "POST", case .closedEarly = error else { throw error }
    }
    do throws(HTTPClientError) {
      return try exchange(message, isHead: method == "HEAD")
    } catch {
      disconnect()
      throw error
    }
  }

  /// Sends a request and passes each piece of the response's body to `take` as it arrives, with the status. Uses
  /// memory for one piece.
  ///
  /// `take` returns whether to continue. If it returns `false`, the client closes the connection and discards the
  /// rest of the response. `take` is not called for a response without a body.
  /// - Returns: the status.
  /// - Throws: ``HTTPClientError`` if no complete response arrives. The connection is then closed.
  package func stream(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
    _ take: (_ status: Int, _ piece: [UInt8]) -> Bool
  ) throws(HTTPClientError) -> Int {
    disconnectIfStale()
    do throws(HTTPClientError) {
      return try exchange(message(method, target, headers, body), isHead: method == "HEAD", isTaken: true, take).status
    } catch {
      disconnect()
      throw error
    }
  }

  /// Sends a request whose body `next` provides in pieces, and waits for the complete response. Uses memory for one
  /// piece.
  ///
  /// `next` returns the next bytes, or none at the end. If the server responds early, as it does to reject an
  /// upload, the client does not send the rest.
  /// - Throws: ``HTTPClientError`` if no complete response arrives, or if `next` ends before `bodyBytes`. The
  ///   connection is then closed.
  package func upload(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], bodyBytes: Int,
    _ next: () -> [UInt8]
  ) throws(HTTPClientError) -> Response {
    disconnectIfStale()
    do throws(HTTPClientError) {
      if socket < 0 { try connect() }
      try write(head(method, target, headers, bodyBytes: bodyBytes))
      var left = bodyBytes
      while left > 0, !Self.poll(socket, Int16(POLLIN), seconds: 0) {
        let piece = next()
        guard !piece.isEmpty, piece.count <= left else { throw .closedEarly(address: address) }
        try write(piece)
        left -= piece.count
      }
      let response = try receive(isHead: false)
      if left > 0 { disconnect() }
      return response
    } catch {
      disconnect()
      throw error
    }
  }

  private func message(
    _ method: String, _ target: String, _ headers: [(name: String, value: String)], _ body: [UInt8]
  ) -> [UInt8] {
    let saysLength = !body.isEmpty || method == "POST" || method == "PATCH"
    return head(method, target, headers, bodyBytes: saysLength ? body.count : nil) + body
  }

  private func head(
    _ method: String, _ target: String, _ headers: [(name: String, value: String)], bodyBytes: Int?
  ) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host.contains(":") ? "[\(host)]" : host):\(port)\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let bodyBytes { head += "Content-Length: \(bodyBytes)\r\n" }
    return Array("\(head)\r\n".utf8)
  }

  private func exchange(
    _ message: [UInt8], isHead: Bool, isTaken: Bool = false, _ take: (Int, [UInt8]) -> Bool = { _, _ in true }
  ) throws(HTTPClientError) -> Response {
    if socket < 0 { try connect() }
    try write(message)
    return try receive(isHead: isHead, isTaken: isTaken, take)
  }

  private func receive(
    isHead: Bool, isTaken: Bool = false, _ take: (Int, [UInt8]) -> Bool = { _, _ in true }
  ) throws(HTTPClientError) -> Response {
    let parser = HTTPResponseParser(isHead: isHead, bodyBytesMax: limits.bodyBytesMax)
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      try wait(for: Int16(POLLIN))
      let count = recv(socket, &buffer, buffer.count, 0)
      if count < 0 {
        if errno == EINTR || errno == EAGAIN { continue }
        throw .closedEarly(address: address)
      }
      let outcome = parser.parse(buffer, count: count)
      if isTaken, outcome == .incomplete || outcome == .complete {
        let piece = parser.takeBody()
        if !piece.isEmpty, !take(parser.status, piece) {
          disconnect()
          return Response(status: parser.status, body: [])
        }
      }
      switch outcome {
      case .incomplete:
        if count == 0 { throw .closedEarly(address: address) }
      case .complete:
        if !parser.keepsAlive { disconnect() }
        return Response(status: parser.status, headers: parser.headers, body: parser.body)
      case .malformed: throw .malformed(address: address)
      case .tooLarge: throw .tooLarge(bytesMax: limits.bodyBytesMax)
      }
    }
  }

  // MARK: The socket

  private func connect() throws(HTTPClientError) {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &found) == 0, let first = found else {
      throw .hostNotFound(host: host)
    }
    defer { freeaddrinfo(first) }
    var next: UnsafeMutablePointer<addrinfo>? = first
    var code: Int32 = 0
    while let candidate = next {
      code = open(candidate.pointee)
      if code == 0 { return }
      next = candidate.pointee.ai_next
    }
    throw .notConnected(address: address, reason: String(cString: strerror(code)))
  }

  /// Connects to one address. Returns 0 or an `errno`.
  private func open(_ candidate: addrinfo) -> Int32 {
    let descriptor = Glibc.socket(
      candidate.ai_family, candidate.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
      candidate.ai_protocol)
    guard descriptor >= 0 else { return errno }
    var code: Int32 = 0
    if Glibc.connect(descriptor, candidate.ai_addr, candidate.ai_addrlen) != 0 {
      code = errno
      if code == EINPROGRESS {
        var length = socklen_t(MemoryLayout<Int32>.size)
        if Self.poll(descriptor, Int16(POLLOUT), seconds: limits.connectSeconds) {
          if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { code = errno }
        } else {
          code = ETIMEDOUT
        }
      }
    }
    guard code == 0 else {
      close(descriptor)
      return code
    }
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    socket = descriptor
    return 0
  }

  /// Closes a kept connection if it is readable before a request: the server has then closed it, or sent something
  /// unexpected.
  private func disconnectIfStale() {
    if socket >= 0, Self.poll(socket, Int16(POLLIN), seconds: 0) { disconnect() }
  }

  private func disconnect() {
    if socket >= 0 { close(socket) }
    socket = -1
  }

  private func write(_ message: [UInt8]) throws(HTTPClientError) {
    var offset = 0
    while offset < message.count {
      let count = message.withUnsafeBytes { bytes in
        Glibc.send(socket, bytes.baseAddress.map { $0 + offset }, bytes.count - offset, Int32(MSG_NOSIGNAL))
      }
      if count >= 0 {
        offset += count
      } else if errno == EAGAIN {
        try wait(for: Int16(POLLOUT))
      } else if errno != EINTR {
        // A server that rejects a large request may have responded already. Reading will show that.
        return
      }
    }
  }

  private func wait(for events: Int16) throws(HTTPClientError) {
    guard Self.poll(socket, events, seconds: limits.stallSeconds) else {
      throw .timedOut(address: address, seconds: limits.stallSeconds)
    }
  }

  private static func poll(_ descriptor: Int32, _ events: Int16, seconds: Int) -> Bool {
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    while true {
      let ready = Glibc.poll(&entry, 1, Int32(seconds) * 1000)
      if ready >= 0 { return ready > 0 }
      guard errno == EINTR else { return true }
    }
  }
}
