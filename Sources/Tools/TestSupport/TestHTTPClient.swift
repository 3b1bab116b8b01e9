import Glibc

/// The response to an HTTP request.
package struct HTTPResponse: Sendable {
  package let status: Int
  /// Names in lower case, in the order received.
  package let headers: [(name: String, value: String)]
  package let body: [UInt8]

  /// Returns the first header with this lower-case name, or `nil`.
  package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// The body as text. Invalid UTF-8 is replaced.
  package var text: String { String(decoding: body, as: UTF8.self) }
}

package enum TestHTTPClientError: Error, Equatable {
  /// The server did not accept a connection; carries `errno`.
  case notConnected(Int32)
  /// The server closed the connection before the response was complete.
  case closed
  /// No byte arrived within the client's time limit.
  case timedOut
  /// The response is not HTTP/1.1.
  case malformed(String)
}

/// A blocking HTTP/1.1 client on one connection to a loopback port, kept open between requests.
///
/// It never sends a request twice. A request whose response is lost fails, so the caller knows which requests were
/// acknowledged. Use it from one thread at a time.
package final class TestHTTPClient {
  private let port: UInt16
  private let timeoutSeconds: Int
  private var descriptor: Int32 = -1
  private var received: [UInt8] = []

  /// Creates a client of `127.0.0.1:port` that waits at most `timeoutSeconds` for each piece of a response.
  package init(port: UInt16, timeoutSeconds: Int = 30) {
    self.port = port
    self.timeoutSeconds = timeoutSeconds
  }

  deinit { close() }

  /// Closes the connection. The next request opens a new one.
  package func close() {
    if descriptor >= 0 { _ = Glibc.close(descriptor) }
    descriptor = -1
    received.removeAll(keepingCapacity: true)
  }

  /// Sends one request and waits for the complete response. `target` is sent unchanged, so the caller escapes it.
  ///
  /// - Throws: ``TestHTTPClientError`` if no complete response arrives. The connection is then closed.
  package func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws(TestHTTPClientError) -> HTTPResponse {
    do {
      if isStale { close() }
      if descriptor < 0 { try connect() }
      try write(Self.head(method, target, port, headers, body) + (body ?? []))
      return try readResponse(hasBody: method != "HEAD")
    } catch {
      close()
      throw error
    }
  }

  /// Sends one request whose response may be endless. ``readChunk()`` returns its pieces. A response that is not
  /// chunked is returned as a whole.
  ///
  /// - Throws: ``TestHTTPClientError`` if no response arrives. The connection is then closed.
  package func open(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws(TestHTTPClientError) -> HTTPResponse {
    close()
    do {
      try connect()
      try write(Self.head(method, target, port, headers, body) + (body ?? []))
      return try readResponse(hasBody: method != "HEAD", isOpen: true)
    } catch {
      close()
      throw error
    }
  }

  /// Returns the next piece of a response that ``open(_:_:headers:body:)`` began, or `nil` at its end.
  /// - Throws: ``TestHTTPClientError`` if the response breaks off. The connection is then closed.
  package func readChunk() throws(TestHTTPClientError) -> [UInt8]? {
    do {
      if let bytes = try nextChunk() { return bytes }
      close()
      return nil
    } catch {
      close()
      throw error
    }
  }

  private static func head(
    _ method: String, _ target: String, _ port: UInt16, _ headers: [(String, String)], _ body: [UInt8]?
  ) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    return Array((head + "\r\n").utf8)
  }

  /// Whether the server has closed, or written to, a connection that should be silent.
  private var isStale: Bool {
    guard descriptor >= 0 else { return false }
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return !received.isEmpty || poll(&entry, 1, 0) > 0
  }

  private func connect() throws(TestHTTPClientError) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .notConnected(errno) }
    var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var noDelay: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw .notConnected(errno) }
  }

  private func write(_ bytes: [UInt8]) throws(TestHTTPClientError) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count > 0 {
        sent += count
      } else if errno == EAGAIN {
        throw .timedOut
      } else if errno != EINTR {
        // The server may have responded and closed before it read everything. Use its response.
        return
      }
    }
  }

  /// Appends at least one byte to `received`.
  private func receive() throws(TestHTTPClientError) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count > 0 {
        received += buffer[..<count]
        return
      }
      if count == 0 { throw .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN: throw .timedOut
      default: throw .closed
      }
    }
  }

  private func readLine() throws(TestHTTPClientError) -> String {
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        var line = String(decoding: received[..<end], as: UTF8.self)
        if line.utf8.last == 0x0D { line.unicodeScalars.removeLast() }
        received.removeSubrange(...end)
        return line
      }
      try receive()
    }
  }

  private func readBytes(_ count: Int) throws(TestHTTPClientError) -> [UInt8] {
    while received.count < count { try receive() }
    let bytes = Array(received[..<count])
    received.removeSubrange(..<count)
    return bytes
  }

  /// Reads a response, but only the head if the response is chunked and `isOpen`.
  private func readResponse(hasBody: Bool, isOpen: Bool = false) throws(TestHTTPClientError) -> HTTPResponse {
    let statusLine = try readLine()
    let words = statusLine.utf8.split(separator: 0x20, maxSplits: 2)
    guard words.count >= 2, statusLine.hasPrefix("HTTP/1."), let status = Int(String(words[1]) ?? "") else {
      throw .malformed(statusLine)
    }
    var headers: [(name: String, value: String)] = []
    while true {
      let line = try readLine()
      if line.isEmpty { break }
      guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .malformed(line) }
      let value = line[line.utf8.index(after: colon)...].drop { $0 == " " }
      headers.append((line[..<colon].lowercased(), String(value)))
    }
    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    var body: [UInt8] = []
    if hasBody, status != 204, status != 304 {
      if let text = header("content-length") {
        guard let count = Int(text), count >= 0 else { throw .malformed("Content-Length: \(text)") }
        body = try readBytes(count)
      } else if header("transfer-encoding") == "chunked" {
        if isOpen { return HTTPResponse(status: status, headers: headers, body: []) }
        body = try readChunks()
      } else {
        do { while true { try receive() } } catch .closed {}
        body = received
        close()
      }
    }
    if header("connection")?.lowercased() == "close" { close() }
    return HTTPResponse(status: status, headers: headers, body: body)
  }

  private func readChunks() throws(TestHTTPClientError) -> [UInt8] {
    var body: [UInt8] = []
    while let bytes = try nextChunk() { body += bytes }
    return body
  }

  /// Returns the next piece of a chunked body, or `nil` after the last one, when the trailer was read too.
  private func nextChunk() throws(TestHTTPClientError) -> [UInt8]? {
    let line = try readLine()
    let digits = line.prefix { $0 != ";" && $0 != " " }
    guard let count = Int(digits, radix: 16) else { throw .malformed("chunk size \(line)") }
    if count == 0 {
      while try !readLine().isEmpty {}
      return nil
    }
    let bytes = try readBytes(count)
    guard try readLine().isEmpty else { throw .malformed("unterminated chunk") }
    return bytes
  }
}
