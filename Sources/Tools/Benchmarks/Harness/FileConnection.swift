import Glibc

/// A kept connection that transfers large bodies with as little work as possible.
final class FileConnection {
  private let socket: Int32
  private let port: Int
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)

  init(port: Int) throws {
    guard let socket = LoadClient.connection(port: port) else { throw BenchmarkError("cannot connect to port \(port)") }
    self.socket = socket
    self.port = port
  }

  deinit { close(socket) }

  /// Downloads a target and lets the kernel discard the content. Returns the number of bytes.
  func download(_ target: String) throws -> Int {
    try send(Array("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n".utf8))
    let (length, came) = try readHead()
    var rest = length - came
    while rest > 0 {
      let count = recv(socket, nil, min(rest, 4 << 20), Int32(MSG_TRUNC))
      guard count > 0 else { throw BenchmarkError("the server ended a download early") }
      rest -= count
    }
    return length
  }

  /// Posts content and waits for the response.
  func upload(_ target: String, _ content: [UInt8], type: String = "application/octet-stream") throws {
    let head =
      "POST \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: Bearer owner\r\n"
      + "Content-Type: \(type)\r\nContent-Length: \(content.count)\r\n\r\n"
    try send(Array(head.utf8))
    try send(content)
    var (length, came) = try readHead()
    while came < length { came += try receive(at: 0) }
  }

  private func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(socket, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw BenchmarkError("the server accepts no more bytes") }
      sent += count
    }
  }

  private func receive(at place: Int) throws -> Int {
    let count = buffer.withUnsafeMutableBytes { recv(socket, $0.baseAddress.map { $0 + place }, $0.count - place, 0) }
    guard count > 0 else { throw BenchmarkError("the server closed the connection") }
    return count
  }

  /// Reads the head of a response, which must have status 200. Returns the length of its content and the number of
  /// content bytes already read.
  private func readHead() throws -> (length: Int, came: Int) {
    var filled = 0
    while filled < buffer.count {
      filled += try receive(at: filled)
      let text = String(decoding: buffer[..<filled], as: UTF8.self)
      guard let end = text.utf8.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
      let head = text[..<end.lowerBound].lowercased()
      guard head.hasPrefix("http/1.1 200"), let field = head.utf8.firstRange(of: Array("content-length:".utf8)),
        let length = Int(String(head[field.upperBound...].drop { $0 == " " }.prefix { $0.isNumber }))
      else { throw BenchmarkError("unexpected response: \(head)") }
      let headBytes = text.utf8.distance(from: text.utf8.startIndex, to: end.upperBound)
      // Binary content changes the length of the text after the head, but not of the head.
      return (length, filled - headBytes)
    }
    throw BenchmarkError("the head of the response exceeds 64 KiB")
  }
}
