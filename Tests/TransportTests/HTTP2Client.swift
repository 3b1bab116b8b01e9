import Testing
import TestSupport

/// An HTTP/2 client that sends exactly the frames of a test, valid or not.
final class HTTP2Client {
  struct Reply {
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var trailers: [(name: String, value: String)] = []
    /// The error code with which the stream was reset, after its end or instead of it.
    var resetCode: Int?
    var isEnded = false
    var dataFrames = 0

    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    func trailer(_ name: String) -> String? { trailers.first { $0.name == name }?.value }
    var status: Int? { field(":status").flatMap { Int($0) } }
    var text: String { String(decoding: body, as: UTF8.self) }
  }

  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  let raw: RawClient
  /// All frames except those of streams, in the order received.
  private(set) var control: [HTTP2Frame] = []
  private(set) var replies: [UInt32: Reply] = [:]
  /// Whether the client reopens windows after DATA. If not, the server may send only the window's initial size.
  var opensWindows = true
  /// Whether the client answers PINGs. If not, it behaves like a dead client.
  var answersPings = true
  private let decoder: HTTP2HeaderDecoder

  /// - Parameter settings: the client's SETTINGS. Id 3 is the number of streams, 4 the window of a stream.
  init(_ server: TestServer, settings: [(id: Int, value: Int)] = []) throws {
    raw = try server.connect()
    decoder = try HTTP2HeaderDecoder()
    raw.send(Self.preface + HTTP2Frame.settings(settings).bytes)
  }

  func send(_ frames: [HTTP2Frame]) { raw.send(frames.flatMap(\.bytes)) }
  func send(_ frames: HTTP2Frame...) { send(frames) }

  /// Sends the head of a request.
  func request(
    _ stream: UInt32, _ method: String = "GET", _ path: String = "/", _ fields: [(String, String)] = [],
    end: Bool = true
  ) {
    send(.headers(stream, Self.head(method, path) + fields, end: end))
  }

  /// Sends a body to its end, as the window of the stream allows.
  func upload(_ body: [UInt8], on stream: UInt32, windowBytes: Int = 256 * 1024) throws {
    var sent = 0
    while sent < body.count {
      let granted = control.filter { $0.kind == .windowUpdate && $0.stream == stream }.reduce(windowBytes) {
        $0 + HTTP2Frame.number($1.payload[...])
      }
      let count = min(16_000, body.count - sent, granted - sent)
      if count > 0 {
        sent += count
        send(.data(stream, Array(body[sent - count..<sent]), end: sent == body.count))
      } else {
        guard try readFrame() != nil, replies[stream]?.resetCode == nil else { return }
      }
    }
  }

  static func head(_ method: String, _ path: String) -> [(String, String)] {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test.example")]
  }

  /// Reads frames until a stream's response has ended or was reset, or the connection has ended.
  @discardableResult
  func reply(_ stream: UInt32) throws -> Reply {
    while !(replies[stream]?.isEnded ?? false) && replies[stream]?.resetCode == nil {
      guard try readFrame() != nil else { break }
    }
    return try #require(replies[stream], "the connection ended: \(control.suffix(3))")
  }

  /// Reads frames until a response's body has `count` bytes.
  func read(_ count: Int, of stream: UInt32) throws {
    while replies[stream]?.body.count ?? 0 < count { _ = try #require(try readFrame(), "the connection ended") }
  }

  /// Reads frames until one of this kind arrives for the connection.
  func next(_ kind: HTTP2Frame.Kind) throws -> HTTP2Frame {
    while true {
      let frame = try #require(try readFrame(), "the connection ended")
      if frame.kind == kind { return frame }
    }
  }

  /// Reads to the end of the connection. Returns the code of its last GOAWAY.
  func goAwayCode() throws -> Int? {
    while try readFrame() != nil {}
    return control.last { $0.kind == .goAway }?.code
  }

  /// Reads all frames that respond to the input so far, with the help of a PING.
  func settle() throws {
    let payload = Array("settled!".utf8)
    send(HTTP2Frame(kind: .ping, payload: payload))
    while let frame = try readFrame() {
      if frame.kind == .ping, frame.flags == HTTP2Frame.acknowledgement, frame.payload == payload { return }
    }
  }

  /// Reads one frame. Returns `nil` at the end of the connection.
  func readFrame() throws -> HTTP2Frame? {
    guard raw.has(9) else { return nil }
    var (frame, length) = HTTP2Frame.parse(head: try raw.read(9))
    frame.payload = try raw.read(length)
    try take(frame)
    return frame
  }

  private func take(_ frame: HTTP2Frame) throws {
    switch frame.kind {
    case .headers:
      try #require(frame.flags & HTTP2Frame.endHeaders != 0, "the server sent a CONTINUATION")
      let fields = try decoder.fields(of: frame.payload)
      var reply = replies[frame.stream] ?? Reply()
      if reply.fields.isEmpty { reply.fields = fields } else { reply.trailers = fields }
      reply.isEnded = frame.endsStream
      replies[frame.stream] = reply
    case .data:
      replies[frame.stream, default: Reply()].body += frame.payload
      replies[frame.stream, default: Reply()].dataFrames += 1
      replies[frame.stream, default: Reply()].isEnded = frame.endsStream
      if opensWindows && !frame.payload.isEmpty {
        send(.windowUpdate(0, frame.payload.count))
        if !frame.endsStream { send(.windowUpdate(frame.stream, frame.payload.count)) }
      }
    case .reset:
      replies[frame.stream, default: Reply()].resetCode = frame.code
    case .settings where frame.flags == 0:
      control.append(frame)
      send(HTTP2Frame(kind: .settings, flags: HTTP2Frame.acknowledgement))
    case .ping where frame.flags == 0:
      control.append(frame)
      if answersPings {
        send(HTTP2Frame(kind: .ping, flags: HTTP2Frame.acknowledgement, payload: frame.payload))
      }
    default:
      control.append(frame)
    }
  }
}
