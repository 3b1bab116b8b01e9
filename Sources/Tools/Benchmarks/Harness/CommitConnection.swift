import Glibc

/// A kept connection that commits changes to documents over Firestore's REST API.
final class CommitConnection {
  private let socket: Int32
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)
  /// The number of responses.
  private(set) var answered = 0
  private var sent = 0
  /// The last bytes of the previous read, which may contain the start of a response.
  private var tail: [UInt8] = []
  private static let marker = Array("HTTP/1.1 200".utf8)

  init(port: Int) throws {
    guard let socket = LoadClient.connection(port: port) else { throw BenchmarkError("cannot connect to port \(port)") }
    self.socket = socket
  }

  deinit { close(socket) }

  /// Sets the number of one document and waits for the response.
  func write(_ path: String, _ number: Int) throws {
    try send(path, number)
    while answered < sent { try drain(waits: true) }
  }

  /// Sends a commit without waiting for the response.
  func send(_ path: String, _ number: Int) throws {
    let body = """
      {"writes": [{"update": {"name": "\(FirestoreFilling.documents.dropFirst("/v1/".count))/\(path)", "fields": {\
      "title": {"stringValue": "Buy oat milk and bread"}, "done": {"booleanValue": false}, \
      "sentAt": {"integerValue": "\(number)"}, "score": {"doubleValue": 3.75}, \
      "createdAt": {"timestampValue": "2025-03-27T14:30:00.123456Z"}}}}]}
      """
    var text =
      "POST \(FirestoreFilling.documents):commit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
      + body
    let count = text.withUTF8 { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard count == text.utf8.count else { throw BenchmarkError("the server accepts no more commits") }
    sent += 1
  }

  /// Reads the available responses.
  func drain(waits: Bool = false) throws {
    let count = recv(socket, &buffer, buffer.count, waits ? 0 : Int32(MSG_DONTWAIT))
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      throw BenchmarkError("the server closed a writer's connection")
    }
    let bytes = tail + buffer[..<count]
    var place = 0
    while place + Self.marker.count <= bytes.count {
      if bytes[place] == Self.marker[0], bytes[place..<(place + Self.marker.count)].elementsEqual(Self.marker) {
        answered += 1
        place += Self.marker.count
      } else {
        place += 1
      }
    }
    tail = Array(bytes[place...])
  }
}
