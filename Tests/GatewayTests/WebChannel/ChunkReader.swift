import Glibc
import TestSupport
import Testing

/// Reads the chunks of a back channel as they arrive, on a connection of its own.
final class ChunkReader {
  /// The status line and the headers.
  let head: String
  let status: Int
  private let descriptor: Int32
  private var received: [UInt8] = []
  /// The part of the body that is received but not read, without chunk headers.
  private var body: [UInt8] = []
  private var isEnded = false

  /// Sends a GET and waits for the head of the response.
  init(port: UInt16, target: String) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    setTimeouts(of: descriptor, readSeconds: 20)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    self.descriptor = descriptor
    let request = Array("GET \(target) HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page.test\r\n\r\n".utf8)
    let sent = send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
    var bytes: [UInt8] = []
    let end = Array("\r\n\r\n".utf8)
    while connected == 0, sent == request.count, !bytes.contains(end) {
      var byte: UInt8 = 0
      guard recv(descriptor, &byte, 1, 0) == 1 else { break }
      bytes.append(byte)
    }
    head = String(decoding: bytes, as: UTF8.self)
    status = Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0
    try #require(status != 0, "no answer")
  }

  deinit { close(descriptor) }

  /// The rest of the body as text.
  var text: String {
    while receive() {}
    return String(decoding: body, as: UTF8.self)
  }

  /// The text of the next chunk, whose length is checked, or `nil` if the response ends.
  func next() throws -> String? {
    while true {
      if let line = body.firstIndex(of: 0x0A) {
        let count = try #require(Int(String(decoding: body[..<line], as: UTF8.self)), "no length")
        if body.count > line + count {
          let text = String(decoding: body[(line + 1)...(line + count)], as: UTF8.self)
          body.removeFirst(line + 1 + count)
          return text
        }
      }
      guard receive() else {
        #expect(isEnded && body.isEmpty, "the response was truncated")
        return nil
      }
    }
  }

  /// Receives more of the body. Returns `false` at its end.
  private func receive() -> Bool {
    guard !isEnded else { return false }
    guard head.lowercased().contains("transfer-encoding: chunked") else {
      return receiveBytes(into: &body)
    }
    while true {
      if let line = received.firstRange(of: [13, 10]) {
        let count = Int(String(decoding: received[..<line.lowerBound], as: UTF8.self), radix: 16) ?? 0
        if received.count >= line.upperBound + count + 2 {
          body += received[line.upperBound..<(line.upperBound + count)]
          received.removeFirst(line.upperBound + count + 2)
          isEnded = count == 0
          return !isEnded
        }
      }
      guard receiveBytes(into: &received) else { return false }
    }
  }

  private func receiveBytes(into bytes: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    // A body with a length ends after that length. The bodies of these tests are short and arrive at once.
    if !head.lowercased().contains("transfer-encoding: chunked"), !bytes.isEmpty { return false }
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { return false }
    bytes += buffer[..<count]
    return true
  }
}
