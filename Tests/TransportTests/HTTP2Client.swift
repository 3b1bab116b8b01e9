import CNGHTTP2
import Testing

/// One frame in its wire format.
struct HTTP2Frame: Equatable {
  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation, unknown = 0xbb
  }

  static let endStream: UInt8 = 0x1
  static let acknowledgement: UInt8 = 0x1
  static let endHeaders: UInt8 = 0x4
  static let padded: UInt8 = 0x8

  var kind: Kind
  var flags: UInt8 = 0
  var stream: UInt32 = 0
  var payload: [UInt8] = []

  var endsStream: Bool { (kind == .data || kind == .headers) && flags & Self.endStream != 0 }

  var bytes: [UInt8] {
    Self.number(payload.count, bytes: 3) + [kind.rawValue, flags] + Self.number(Int(stream), bytes: 4) + payload
  }

  /// The error code of a RST_STREAM or GOAWAY.
  var code: Int {
    switch kind {
    case .reset: Self.number(payload[...])
    case .goAway: Self.number(payload[4..<8])
    default: -1
    }
  }

  static func number(_ value: Int, bytes: Int) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  static func settings(_ entries: [(id: Int, value: Int)] = []) -> HTTP2Frame {
    HTTP2Frame(kind: .settings, payload: entries.flatMap { number($0.id, bytes: 2) + number($0.value, bytes: 4) })
  }

  static func windowUpdate(_ stream: UInt32, _ increment: Int) -> HTTP2Frame {
    HTTP2Frame(kind: .windowUpdate, stream: stream, payload: number(increment, bytes: 4))
  }

  static func reset(_ stream: UInt32, code: Int = 8) -> HTTP2Frame {
    HTTP2Frame(kind: .reset, stream: stream, payload: number(code, bytes: 4))
  }

  static func data(_ stream: UInt32, _ bytes: [UInt8], end: Bool = false) -> HTTP2Frame {
    HTTP2Frame(kind: .data, flags: end ? endStream : 0, stream: stream, payload: bytes)
  }

  /// The head of a request, or its trailers if the fields have no method. All fields are literals without compression.
  static func headers(
    _ stream: UInt32, _ fields: [(String, String)], end: Bool = true, endHeaders: Bool = true
  ) -> HTTP2Frame {
    HTTP2Frame(
      kind: .headers, flags: (end ? endStream : 0) | (endHeaders ? Self.endHeaders : 0), stream: stream,
      payload: block(fields))
  }

  /// Encodes fields as HPACK literals that do not enter the table.
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { [0] + string($0.0) + string($0.1) }
  }

  private static func string(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    if bytes.count < 127 { return [UInt8(bytes.count)] + bytes }
    var rest = bytes.count - 127
    var length: [UInt8] = [127]
    while rest >= 128 {
      length.append(UInt8(rest & 127) | 128)
      rest >>= 7
    }
    return length + [UInt8(rest)] + bytes
  }
}

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
  private let inflater: OpaquePointer

  /// - Parameter settings: the client's SETTINGS. Id 3 is the number of streams, 4 the window of a stream.
  init(_ server: TestServer, settings: [(id: Int, value: Int)] = []) throws {
    raw = try server.connect()
    var inflater: OpaquePointer?
    try #require(nghttp2_hd_inflate_new(&inflater) == 0)
    self.inflater = try #require(inflater)
    raw.send(Self.preface + HTTP2Frame.settings(settings).bytes)
  }

  deinit {
    nghttp2_hd_inflate_del(inflater)
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
    let head = try raw.read(9)
    let payload = try raw.read(HTTP2Frame.number(head[0..<3]))
    let frame = HTTP2Frame(
      kind: HTTP2Frame.Kind(rawValue: head[3]) ?? .unknown, flags: head[4],
      stream: UInt32(HTTP2Frame.number(head[5..<9])), payload: payload)
    try take(frame)
    return frame
  }

  private func take(_ frame: HTTP2Frame) throws {
    switch frame.kind {
    case .headers:
      try #require(frame.flags & HTTP2Frame.endHeaders != 0, "the server sent a CONTINUATION")
      let fields = try inflate(frame.payload)
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

  private func inflate(_ block: [UInt8]) throws -> [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    var rest = block[...]
    while true {
      var field = nghttp2_nv()
      var flags: Int32 = 0
      let count = Array(rest).withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
      }
      try #require(count >= 0, "the field block is malformed")
      rest = rest.dropFirst(count)
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
        let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
        fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0 && rest.isEmpty { break }
    }
    nghttp2_hd_inflate_end_headers(inflater)
    return fields
  }
}
