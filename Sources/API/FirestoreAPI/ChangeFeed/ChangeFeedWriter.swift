import DatabaseService
import GatewayCore
import WireFormat

/// The format that separates the events of a feed.
enum ChangeFeedFormat: Sendable {
  /// One JSON object per line (`application/x-ndjson`).
  case lines
  /// Server-sent events (`text/event-stream`), which a browser's `EventSource` reads.
  case events

  var contentType: StaticString {
    switch self {
    case .lines: "application/x-ndjson"
    case .events: "text/event-stream"
    }
  }
}

/// Writes the events of a feed. Each event is one JSON object.
///
/// In server-sent events the `id` of an event is its resume token. Browsers send it back as `Last-Event-ID`.
struct ChangeFeedWriter {
  let format: ChangeFeedFormat
  private var json = JSONWriter(.compact)

  init(_ format: ChangeFeedFormat) { self.format = format }

  /// The delay after which browsers reconnect.
  private static let retryLine: StaticString = "retry: 2000\n\n"

  /// The number of bytes written and not yet taken.
  var byteCount: Int { json.bytes.count }

  /// Exchanges the written bytes for another buffer, to which the writer then appends. Copies nothing.
  mutating func swapBytes(_ other: inout [UInt8]) { swap(&json.bytes, &other) }

  /// Appends bytes that were swapped out before.
  mutating func append(_ bytes: [UInt8]) { json.bytes.append(contentsOf: bytes) }

  /// Writes the beginning of the feed.
  mutating func begin() {
    if format == .events { append(Self.retryLine) }
  }

  /// Writes an event whose JSON object is appended by `write`.
  mutating func event(token: [UInt8]? = nil, _ write: (inout JSONWriter) throws -> Void) rethrows {
    let start = json.bytes.count
    beginEvent()
    do {
      try write(&json)
    } catch {
      // An incomplete event would corrupt the error event that follows.
      json = JSONWriter(.compact, bytes: Array(json.bytes[..<start]))
      throw error
    }
    endEvent(token: token)
  }

  /// Begins an event that is written in pieces.
  mutating func beginEvent() {
    if format == .events { append("data: ") }
  }

  /// Writes a piece of an event.
  mutating func piece(_ write: (inout JSONWriter) throws -> Void) rethrows { try write(&json) }

  /// Ends an event that was written in pieces.
  mutating func endEvent(token: [UInt8]?) {
    append("\n")
    guard format == .events else { return }
    if let token {
      append("id: ")
      token.withUnsafeBytes { Base64.append($0, to: &json.bytes) }
      append("\n")
    }
    append("\n")
  }

  /// Writes an event with the error that ends the feed.
  mutating func error(_ status: Status) {
    event { ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &$0) }
  }

  /// Writes a comment, which keeps proxies from closing the connection and detects disconnected clients. NDJSON has
  /// no comments and needs none, because feeds send a read time from time to time.
  mutating func keepAlive() {
    if format == .events { append(": keep-alive\n\n") }
  }

  private mutating func append(_ text: StaticString) {
    json.bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
