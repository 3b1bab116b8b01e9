/// A response over HTTP/1.1, read as it arrives. Use it on one thread; every wait has a time limit.
package final class StreamedResponse {
  /// The status line and the headers as received.
  package private(set) var head = ""
  /// The status, or 0 as long as the head has not arrived.
  package private(set) var status = 0
  /// The headers in the order received, with names in lower case.
  package private(set) var headers: [(name: String, value: String)] = []
  /// The body so far, without the framing of chunks.
  package private(set) var body: [UInt8] = []
  /// Whether the whole response has arrived.
  package private(set) var isComplete = false
  private let socket: LoopbackSocket
  private let hasBody: Bool
  private var received: [UInt8] = []
  private var isHeadRead = false

  /// Connects to a port and sends a request. Reads nothing yet. `hasBody` is `false` for responses to HEAD.
  /// - Throws: ``LoopbackError`` if the connection is not accepted, or the request cannot be sent.
  package init(port: UInt16, request: [UInt8], hasBody: Bool = true, readSeconds: Int = 30) throws {
    self.hasBody = hasBody
    socket = try LoopbackSocket(port: port, readSeconds: readSeconds)
    // A server that responds early need not read the whole request.
    socket.send(request)
  }

  /// Closes the connection.
  package func close() { socket.close() }

  /// Waits until the server closes or resets the connection. Returns `false` if the time limit passes first.
  package func isCut() -> Bool { socket.isCut() }

  /// Returns the first header with this lower-case name, or `nil`.
  package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// Removes and returns the first bytes of the body.
  package func take(_ count: Int) -> [UInt8] {
    defer { body.removeFirst(count) }
    return Array(body[..<count])
  }

  /// Waits for the head.
  /// - Throws: ``LoopbackError`` if it does not arrive.
  package func readHead() throws { while !isHeadRead { try receive() } }

  /// Waits for the complete response.
  /// - Throws: ``LoopbackError`` if it breaks off.
  package func readToEnd() throws { while !isComplete { try receive() } }

  /// Waits for the end of the connection. Returns what arrives after the response: nothing from a correct server.
  package func readRest() -> [UInt8] {
    var rest = received
    while case .bytes(let bytes) = socket.receive() { rest += bytes }
    return rest
  }

  /// Waits for more of the response.
  /// - Throws: ``LoopbackError`` if nothing arrives in time, or the connection closes before the response is complete.
  package func receive() throws {
    switch socket.receive() {
    case .bytes(let bytes): received += bytes
    case .timedOut: throw LoopbackError("timeout after: \(head)\n\(end)")
    case .ended:
      guard isHeadRead, header("transfer-encoding") == nil, header("content-length") == nil else {
        throw LoopbackError("the connection closed after: \(head)\n\(end)")
      }
      isComplete = true
    }
    if !isHeadRead { try parseHead() }
    if isHeadRead { try parseBody() }
  }

  private var end: String { String(decoding: body.suffix(2000) + received.suffix(200), as: UTF8.self) }

  private func parseHead() throws {
    guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
    head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
    received.removeFirst(end.upperBound)
    var lines = head.split(separator: "\r\n")
    let words = lines.removeFirst().split(separator: " ")
    guard words.count > 1, let status = Int(words[1]) else { throw LoopbackError("not a response: \(head)") }
    self.status = status
    for line in lines {
      let colon = line.firstIndex(of: ":") ?? line.endIndex
      let value = line[colon...].dropFirst().drop { $0 == " " }
      headers.append((line[..<colon].lowercased(), String(value)))
    }
    isHeadRead = true
    if !hasBody || status == 204 || status == 304 { isComplete = true }
  }

  private func parseBody() throws {
    if isComplete { return }
    guard header("transfer-encoding") == "chunked" else {
      body += received
      received = []
      if let length = header("content-length"), body.count >= Int(length) ?? 0 { isComplete = true }
      return
    }
    while !isComplete, let line = received.firstIndex(of: 13) {
      guard let count = Int(String(decoding: received[..<line], as: UTF8.self), radix: 16) else {
        throw LoopbackError("malformed chunk: \(end)")
      }
      guard received.count >= line + 2 + count + 2 else { return }
      body += received[(line + 2)..<(line + 2 + count)]
      received.removeFirst(line + 2 + count + 2)
      if count == 0 { isComplete = true }
    }
  }
}
