import Testing
import TestSupport

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

  private let socket: LoopbackSocket
  private var pending: [UInt8] = []

  init(port: Int) throws { socket = try LoopbackSocket(port: UInt16(port), readSeconds: 20, writeSeconds: 20) }

  /// Sends all bytes. A server that has stopped reading is not an error.
  func send(_ bytes: [UInt8]) { socket.send(bytes) }

  func send(_ text: String) { socket.send(text) }

  func endSending() { socket.endSending() }

  /// Closes the connection with a reset.
  func reset() { socket.reset() }

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
    switch socket.receive() {
    case .bytes(let bytes):
      pending += bytes
      return true
    case .ended: return false
    case .timedOut:
      Issue.record("the server neither responded nor closed the connection")
      return false
    }
  }
}
