/// One frame in its wire format.
package struct HTTP2Frame: Equatable, Sendable {
  package enum Kind: UInt8, Sendable {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation, unknown = 0xbb
  }

  package static let endStream: UInt8 = 0x1
  package static let acknowledgement: UInt8 = 0x1
  package static let endHeaders: UInt8 = 0x4
  package static let padded: UInt8 = 0x8

  package var kind: Kind
  package var flags: UInt8
  package var stream: UInt32
  package var payload: [UInt8]

  package init(kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) {
    self.kind = kind
    self.flags = flags
    self.stream = stream
    self.payload = payload
  }

  /// Parses the first 9 bytes of a frame. Returns the frame without its payload, and the length of the payload.
  package static func parse(head: [UInt8]) -> (frame: HTTP2Frame, length: Int) {
    let frame = HTTP2Frame(
      kind: Kind(rawValue: head[3]) ?? .unknown, flags: head[4], stream: UInt32(number(head[5..<9])))
    return (frame, number(head[0..<3]))
  }

  package var endsStream: Bool { (kind == .data || kind == .headers) && flags & Self.endStream != 0 }

  package var bytes: [UInt8] {
    Self.number(payload.count, bytes: 3) + [kind.rawValue, flags] + Self.number(Int(stream), bytes: 4) + payload
  }

  /// The error code of a RST_STREAM or GOAWAY.
  package var code: Int {
    switch kind {
    case .reset: Self.number(payload[...])
    case .goAway: Self.number(payload[4..<8])
    default: -1
    }
  }

  package static func number(_ value: Int, bytes: Int) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  package static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  package static func settings(_ entries: [(id: Int, value: Int)] = []) -> HTTP2Frame {
    HTTP2Frame(kind: .settings, payload: entries.flatMap { number($0.id, bytes: 2) + number($0.value, bytes: 4) })
  }

  package static func windowUpdate(_ stream: UInt32, _ increment: Int) -> HTTP2Frame {
    HTTP2Frame(kind: .windowUpdate, stream: stream, payload: number(increment, bytes: 4))
  }

  package static func reset(_ stream: UInt32, code: Int = 8) -> HTTP2Frame {
    HTTP2Frame(kind: .reset, stream: stream, payload: number(code, bytes: 4))
  }

  package static func data(_ stream: UInt32, _ bytes: [UInt8], end: Bool = false) -> HTTP2Frame {
    HTTP2Frame(kind: .data, flags: end ? endStream : 0, stream: stream, payload: bytes)
  }

  /// The head of a request, or its trailers if the fields have no method. All fields are literals without compression.
  package static func headers(
    _ stream: UInt32, _ fields: [(String, String)], end: Bool = true, endHeaders: Bool = true
  ) -> HTTP2Frame {
    HTTP2Frame(
      kind: .headers, flags: (end ? endStream : 0) | (endHeaders ? Self.endHeaders : 0), stream: stream,
      payload: block(fields))
  }

  /// Encodes fields as HPACK literals that do not enter the table.
  package static func block(_ fields: [(String, String)]) -> [UInt8] {
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
