import CNGHTTP2
import Glibc
import TestSupport
import Testing
import WireFormat

/// An HTTP/2 connection to a test's server that makes gRPC calls, one after the other.
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

  private let socket: Int32
  private let inflater: OpaquePointer
  private var stream: UInt32 = 1
  private var pending: [UInt8] = []
  /// Data received on streams that stay open.
  private var open: [UInt32: (reply: Response, body: [UInt8], isEnded: Bool)] = [:]

  /// `windowBytes` is the number of bytes the server may send ahead on each stream.
  init(port: UInt16, windowBytes: Int = 0x7FFF_FFFF) throws {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.socket = socket
    try #require(socket >= 0)
    setTimeouts(of: socket, readSeconds: 30)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(status == 0, "errno \(errno)")
    var inflater: OpaquePointer?
    try #require(nghttp2_hd_inflate_new(&inflater) == 0)
    self.inflater = try #require(inflater)
    // By default the windows are too large to fill: SETTINGS_INITIAL_WINDOW_SIZE, and that of the connection.
    send(
      Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        + Self.frame(4, 0, 0, [0, 4] + Self.number(windowBytes, bytes: 4))
        + Self.frame(8, 0, 0, [0x7F, 0, 0, 0]))
  }

  deinit {
    nghttp2_hd_inflate_del(inflater)
    close(socket)
  }

  /// Calls a method of the Firestore service.
  func call(_ method: String, _ message: [UInt8], headers: [(String, String)] = []) throws -> Response {
    try call(path: "/google.firestore.v1.Firestore/" + method, body: Self.framed(message), headers: headers)
  }

  /// Calls a path with a body that is already framed.
  func call(path: String, body: [UInt8], headers: [(String, String)] = []) throws -> Response {
    begin(path: path, body: body, headers: headers)
    defer { stream += 2 }
    return try reply()
  }

  /// Begins a call whose whole request is `body`. Continue with `firstData` or `cancel`.
  func begin(path: String, body: [UInt8], headers: [(String, String)] = []) {
    var frames = head(path: path, headers: headers, end: body.isEmpty)
    var rest = body[...]
    while !rest.isEmpty {
      let piece = rest.prefix(16_384)
      rest = rest.dropFirst(piece.count)
      frames += Self.frame(0, rest.isEmpty ? 1 : 0, stream, Array(piece))
    }
    send(frames)
  }

  private func head(path: String, headers: [(String, String)], end: Bool) -> [UInt8] {
    var fields = [
      (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("te", "trailers"),
    ]
    if !headers.contains(where: { $0.0 == "content-type" }) { fields.append(("content-type", "application/grpc")) }
    let block = (fields + headers).flatMap { [UInt8(0)] + Self.text($0.0) + Self.text($0.1) }
    return Self.frame(1, end ? 5 : 4, stream, block)
  }

  // MARK: Bidirectional calls

  /// Opens a call of the Firestore service. Returns the number of its stream. Several streams may be open.
  func open(_ method: String, headers: [(String, String)] = []) -> UInt32 {
    open(path: "/google.firestore.v1.Firestore/" + method, headers: headers)
  }

  func open(path: String, headers: [(String, String)] = []) -> UInt32 {
    defer { stream += 2 }
    send(head(path: path, headers: headers, end: false))
    open[stream] = (Response(), [], false)
    return stream
  }

  /// Sends bytes of the request in frames of at most `piece` bytes.
  func send(_ bytes: [UInt8], on stream: UInt32, end: Bool = false, piece: Int = 16_384) {
    var rest = bytes[...]
    repeat {
      let next = rest.prefix(piece)
      rest = rest.dropFirst(next.count)
      send(Self.frame(0, end && rest.isEmpty ? 1 : 0, stream, Array(next)))
    } while !rest.isEmpty
  }

  /// The next message of the response, or `nil` if it ended.
  func next(on stream: UInt32) throws -> [UInt8]? {
    while true {
      let body = open[stream]?.body ?? []
      if body.count >= 5 {
        let count = body[1..<5].reduce(0) { $0 << 8 | Int($1) }
        if body.count >= 5 + count {
          let message = Array(body[5..<(5 + count)])
          open[stream]?.body.removeFirst(5 + count)
          open[stream]?.reply.frames.append((body[0] == 1, message))
          return message
        }
      }
      if open[stream]?.isEnded ?? true { return nil }
      try readFrame()
    }
  }

  /// Waits for the end of the response.
  func end(of stream: UInt32) throws -> Response {
    while try next(on: stream) != nil {}
    let ended = open.removeValue(forKey: stream)
    return try #require(ended).reply
  }

  /// Cancels a call as clients do.
  func cancel(_ stream: UInt32) {
    send(Self.frame(3, 0, stream, [0, 0, 0, 8]))
    open[stream] = nil
  }

  /// Lets the server send `bytes` more bytes on a stream.
  func widen(_ stream: UInt32, by bytes: Int) { send(Self.frame(8, 0, stream, Self.number(bytes, bytes: 4))) }

  private func readFrame() throws {
    let head = try read(9)
    let payload = try read(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
    let id = head[5...8].reduce(0) { $0 << 8 | UInt32($1) }
    switch head[3] {
    case 0: open[id]?.body += payload
    case 1:
      var reply = open[id]?.reply ?? Response()
      try inflate(payload, into: &reply)
      open[id]?.reply = reply
    case 3: open[id]?.reply.resetCode = payload.reduce(0) { $0 << 8 | Int($1) }
    case 4 where head[4] == 0: send(Self.frame(4, 1, 0, []))
    case 6 where head[4] == 0: send(Self.frame(6, 1, 0, payload))
    default: break
    }
    if head[3] == 3 || (head[3] < 2 && head[4] & 1 != 0) { open[id]?.isEnded = true }
  }

  /// Waits until the first part of the response's messages arrives.
  func firstData() throws {
    while true {
      let head = try read(9)
      let payload = try read(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
      switch head[3] {
      case 0: return
      case 1: try skipFields(payload)
      default: break
      }
    }
  }

  /// Cancels the call begun last, as clients do.
  func cancel() {
    send(Self.frame(3, 0, stream, [0, 0, 0, 8]))
    stream += 2
  }

  /// A message with its gRPC header.
  static func framed(_ message: [UInt8], isCompressed: Bool = false) -> [UInt8] {
    [isCompressed ? 1 : 0] + number(message.count, bytes: 4) + message
  }

  private func reply() throws -> Response {
    var reply = Response()
    var body: [UInt8] = []
    while true {
      let head = try read(9)
      let payload = try read(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
      let id = head[5...8].reduce(0) { $0 << 8 | UInt32($1) }
      switch head[3] {
      case 0 where id == stream: body += payload
      case 1 where id == stream: try inflate(payload, into: &reply)
      case 1: try skipFields(payload)
      case 3 where id == stream: reply.resetCode = payload.reduce(0) { $0 << 8 | Int($1) }
      case 4 where head[4] == 0: send(Self.frame(4, 1, 0, []))
      case 7: Issue.record("the server sent GOAWAY")
      default: break
      }
      if id == stream, head[3] == 3 || (head[3] < 2 && head[4] & 1 != 0) { break }
    }
    var rest = body[...]
    while rest.count >= 5 {
      let count = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
      reply.frames.append((rest.first == 1, Array(rest.dropFirst(5).prefix(count))))
      rest = rest.dropFirst(5 + count)
    }
    return reply
  }

  /// Decodes fields of a call that the test does not wait for: later header blocks may refer to them.
  private func skipFields(_ block: [UInt8]) throws {
    var ignored = Response()
    try inflate(block, into: &ignored)
  }

  private func inflate(_ block: [UInt8], into reply: inout Response) throws {
    var rest = block[...]
    while true {
      var field = nghttp2_nv()
      var flags: Int32 = 0
      let count = Array(rest).withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
      }
      try #require(count >= 0, "the header block is malformed")
      rest = rest.dropFirst(count)
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        let name = String(decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
        reply.fields[name] = String(
          decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen), as: UTF8.self)
      } else if rest.isEmpty || flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
        break
      }
    }
    nghttp2_hd_inflate_end_headers(inflater)
  }

  private func send(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while pending.count < count {
      let received = recv(socket, &buffer, buffer.count, 0)
      try #require(received > 0, "the connection ended")
      pending += buffer[..<received]
    }
    defer { pending.removeFirst(count) }
    return Array(pending[..<count])
  }

  private static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
    number(payload.count, bytes: 3) + [kind, flags] + number(Int(stream), bytes: 4) + payload
  }

  static func number(_ value: Int, bytes: Int) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// An HPACK string without compression.
  private static func text(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
    var length: [UInt8] = [127]
    var rest = bytes.count - 127
    while rest >= 128 {
      length.append(UInt8(rest & 127) | 128)
      rest >>= 7
    }
    return length + [UInt8(rest)] + bytes
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
