import DatabaseService
import WireFormat

/// How the events of a feed are told apart.
enum FeedFormat: Sendable {
  /// One JSON object a line (`application/x-ndjson`).
  case lines
  /// Server-sent events (`text/event-stream`), as a browser's `EventSource` takes them.
  case events

  var contentType: StaticString {
    switch self {
    case .lines: "application/x-ndjson"
    case .events: "text/event-stream"
    }
  }
}

/// Writes the events of a feed; each is one JSON object.
///
/// In server-sent events an event's token is its `id`, which browsers send back as `Last-Event-ID`.
struct ChangeFeedWriter {
  let format: FeedFormat
  private var json = JSONWriter(.compact)

  init(_ format: FeedFormat) { self.format = format }

  /// How long browsers wait before they connect again.
  private static let retryLine: StaticString = "retry: 2000\n\n"

  /// What was written and not taken, in bytes.
  var byteCount: Int { json.bytes.count }

  /// Exchanges what was written for another buffer, to be appended to. Costs no copy.
  mutating func swapBytes(_ other: inout [UInt8]) { swap(&json.bytes, &other) }

  /// Writes bytes that were swapped out before.
  mutating func append(_ bytes: [UInt8]) { json.bytes.append(contentsOf: bytes) }

  /// Starts the feed.
  mutating func begin() {
    if format == .events { append(Self.retryLine) }
  }

  /// Writes an event whose object `write` appends.
  mutating func event(token: [UInt8]? = nil, _ write: (inout JSONWriter) throws -> Void) rethrows {
    let start = json.bytes.count
    beginEvent()
    do {
      try write(&json)
    } catch {
      // Half an event would spoil the one that says what failed.
      json = JSONWriter(.compact, bytes: Array(json.bytes[..<start]))
      throw error
    }
    endEvent(token: token)
  }

  /// Starts an event that is written piece by piece.
  mutating func beginEvent() {
    if format == .events { append("data: ") }
  }

  /// Writes a piece of an event.
  mutating func piece(_ write: (inout JSONWriter) throws -> Void) rethrows { try write(&json) }

  /// Ends an event that is written piece by piece.
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

  /// Writes the event that says why the feed ends.
  mutating func error(_ status: Status) {
    event { ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &$0) }
  }

  /// Writes a comment, so that proxies keep the connection and a client that is gone is noticed. Lines have no such
  /// thing, and need none: feeds tell the time now and then.
  mutating func keepAlive() {
    if format == .events { append(": keep-alive\n\n") }
  }

  private mutating func append(_ text: StaticString) {
    json.bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
