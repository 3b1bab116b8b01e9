import Testing
import TestSupport
import WireFormat

/// An HTTP/2 connection to a test's server that makes gRPC calls.
final class GRPCConnection {
  /// The response to a call.
  struct Response {
    var fields: [String: String] = [:]
    var frames: [(isCompressed: Bool, message: [UInt8])] = []
    var resetCode: Int?

    var status: Int? { fields["grpc-status"].flatMap { Int($0) } }
    /// The message of the status, still percent-encoded.
    var statusMessage: String { fields["grpc-message"] ?? "" }
    var messages: [[UInt8]] { frames.map(\.message) }
  }

  private struct Call {
    var reply = Response()
    /// Data that is not a complete message yet.
    var body: [UInt8] = []
    var isEnded = false
  }

  private let socket: LoopbackSocket
  private let decoder: HTTP2HeaderDecoder
  private var pending: [UInt8] = []
  private var calls: [UInt32: Call] = [:]
  private var nextStream: UInt32 = 1
  private var isGoingAway = false
  private var isPingAnswered = false

  /// `windowBytes` is the number of bytes the server may send ahead on each stream.
  init(port: UInt16, windowBytes: Int = 0x7FFF_FFFF) throws {
    socket = try LoopbackSocket(port: port)
    decoder = try HTTP2HeaderDecoder()
    socket.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    // By default the windows are too large to fill: SETTINGS_INITIAL_WINDOW_SIZE, and that of the connection.
    send(.settings([(id: 4, value: windowBytes)]))
    send(.windowUpdate(0, 0x7F00_0000))
  }

  /// Calls a method of the Firestore service.
  func call(_ method: String, _ message: [UInt8], headers: [(String, String)] = []) throws -> Response {
    try call(path: "/google.firestore.v1.Firestore/" + method, body: Self.framed(message), headers: headers)
  }

  /// Calls a path with a body that is already framed.
  func call(path: String, body: [UInt8], headers: [(String, String)] = []) throws -> Response {
    let wasGoingAway = isGoingAway
    let reply = try end(of: begin(path: path, body: body, headers: headers))
    if isGoingAway != wasGoingAway { Issue.record("the server sent GOAWAY") }
    return reply
  }

  /// Begins a call whose whole request is `body`. Returns the number of its stream.
  func begin(path: String, body: [UInt8], headers: [(String, String)] = []) -> UInt32 {
    let stream = open(path: path, headers: headers, end: body.isEmpty)
    if !body.isEmpty { send(body, on: stream, end: true) }
    return stream
  }

  // MARK: Bidirectional calls

  /// Opens a call of the Firestore service. Returns the number of its stream. Several streams may be open.
  func open(_ method: String, headers: [(String, String)] = []) -> UInt32 {
    open(path: "/google.firestore.v1.Firestore/" + method, headers: headers)
  }

  func open(path: String, headers: [(String, String)] = [], end: Bool = false) -> UInt32 {
    let stream = nextStream
    nextStream += 2
    calls[stream] = Call()
    var fields = [
      (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("te", "trailers"),
    ]
    if !headers.contains(where: { $0.0 == "content-type" }) { fields.append(("content-type", "application/grpc")) }
    send(.headers(stream, fields + headers, end: end))
    return stream
  }

  /// Sends bytes of the request in frames of at most `piece` bytes.
  func send(_ bytes: [UInt8], on stream: UInt32, end: Bool = false, piece: Int = 16_384) {
    var frames: [UInt8] = []
    var rest = bytes[...]
    repeat {
      let next = rest.prefix(piece)
      rest = rest.dropFirst(next.count)
      frames += HTTP2Frame.data(stream, Array(next), end: end && rest.isEmpty).bytes
    } while !rest.isEmpty
    socket.send(frames)
  }

  /// The next message of the response, or `nil` if it ended.
  func next(on stream: UInt32) throws -> [UInt8]? {
    while true {
      let body = calls[stream]?.body ?? []
      if body.count >= 5 {
        let count = HTTP2Frame.number(body[1..<5])
        if body.count >= 5 + count {
          let message = Array(body[5..<(5 + count)])
          calls[stream]?.body.removeFirst(5 + count)
          calls[stream]?.reply.frames.append((body[0] == 1, message))
          return message
        }
      }
      if calls[stream]?.isEnded ?? true { return nil }
      try readFrame()
    }
  }

  /// Waits for the end of the response.
  func end(of stream: UInt32) throws -> Response {
    while try next(on: stream) != nil {}
    let ended = calls.removeValue(forKey: stream)
    return try #require(ended).reply
  }

  /// Cancels a call as clients do.
  func cancel(_ stream: UInt32) {
    send(.reset(stream))
    calls[stream] = nil
  }

  /// Lets the server send `bytes` more bytes on a stream.
  func widen(_ stream: UInt32, by bytes: Int) { send(.windowUpdate(stream, bytes)) }

  /// Waits until the server has handled everything that was sent.
  func ping() throws {
    isPingAnswered = false
    send(HTTP2Frame(kind: .ping, payload: [UInt8](repeating: 0, count: 8)))
    while !isPingAnswered { try readFrame() }
  }

  /// A message with its gRPC header.
  static func framed(_ message: [UInt8], isCompressed: Bool = false) -> [UInt8] {
    [isCompressed ? 1 : 0] + HTTP2Frame.number(message.count, bytes: 4) + message
  }

  private func send(_ frame: HTTP2Frame) { socket.send(frame.bytes) }

  private func readFrame() throws {
    var (frame, length) = HTTP2Frame.parse(head: try read(9))
    frame.payload = try read(length)
    let stream = frame.stream
    switch frame.kind {
    case .data: calls[stream]?.body += frame.payload
    case .headers:
      // The fields of canceled calls are decoded too, because later header blocks may refer to them.
      for (name, value) in try decoder.fields(of: frame.payload) { calls[stream]?.reply.fields[name] = value }
    case .reset: calls[stream]?.reply.resetCode = frame.code
    case .settings where frame.flags == 0:
      send(HTTP2Frame(kind: .settings, flags: HTTP2Frame.acknowledgement))
    case .ping where frame.flags == 0:
      send(HTTP2Frame(kind: .ping, flags: HTTP2Frame.acknowledgement, payload: frame.payload))
    case .ping: isPingAnswered = true
    case .goAway: isGoingAway = true
    default: break
    }
    if frame.kind == .reset || frame.endsStream { calls[stream]?.isEnded = true }
  }

  private func read(_ count: Int) throws -> [UInt8] {
    while pending.count < count {
      switch socket.receive() {
      case .bytes(let bytes): pending += bytes
      case .ended: throw LoopbackError("the connection ended")
      case .timedOut: throw LoopbackError("the server sent nothing within the time limit")
      }
    }
    defer { pending.removeFirst(count) }
    return Array(pending[..<count])
  }
}

/// The bytes of a message, one field after the other.
struct Message {
  private(set) var bytes: [UInt8] = []

  init(_ fields: (inout [UInt8]) -> Void) { fields(&bytes) }

  /// The payloads of the length-delimited fields with a number.
  static func fields(_ number: Int, of message: [UInt8]) -> [[UInt8]] {
    message.withUnsafeBytes { bytes in
      var reader = ProtobufReader(bytes)
      var payloads: [[UInt8]] = []
      while let field = try? reader.next() {
        if field.number == number, field.wireType == .lengthDelimited { payloads.append([UInt8](field.bytes)) }
      }
      return payloads
    }
  }

  /// The strings of the fields with a number.
  static func texts(_ number: Int, of message: [UInt8]) -> [String] {
    fields(number, of: message).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The last varint field with a number.
  static func number(_ number: Int, of message: [UInt8]) -> Int64? {
    message.withUnsafeBytes { bytes in
      var reader = ProtobufReader(bytes)
      var last: Int64?
      while let field = try? reader.next() {
        if field.number == number, field.wireType == .varint { last = field.int64 }
      }
      return last
    }
  }
}
