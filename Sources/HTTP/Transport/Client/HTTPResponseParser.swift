import CHTTPParser

/// An incremental parser of one HTTP/1.1 response, chunked bodies included. Wraps http-parser and does not depend on
/// sockets.
final class HTTPResponseParser {
  enum Outcome: Equatable { case incomplete, complete, malformed, tooLarge }

  /// The state that the parser's callbacks fill in. Plain memory, because C code points to it.
  private struct State {
    var parser = http_parser()
    var body: [UInt8] = []
    /// Names and values, as received.
    var fields: [(name: [UInt8], value: [UInt8])] = []
    /// Whether the value of the last field has begun. If so, the next name starts another field.
    var isInValue = true
    var bodyBytesMax: Int
    var isHead: Bool
    var isTooLarge = false
    var isComplete = false
    var keepsAlive = false
  }

  private let state: UnsafeMutablePointer<State>
  private var settings = http_parser_settings()

  /// Creates a parser of a new response. The response to a HEAD request has no body, regardless of its fields.
  init(isHead: Bool, bodyBytesMax: Int) {
    state = .allocate(capacity: 1)
    state.initialize(to: State(bodyBytesMax: bodyBytesMax, isHead: isHead))
    http_parser_init(&state.pointee.parser, HTTP_RESPONSE)
    state.pointee.parser.data = UnsafeMutableRawPointer(state)
    http_parser_settings_init(&settings)
    settings.on_message_begin = { parser in
      guard let state = HTTPResponseParser.state(parser) else { return -1 }
      // The fields of an interim response do not belong to the final one.
      state.pointee.fields = []
      state.pointee.isInValue = true
      return 0
    }
    settings.on_header_field = { parser, bytes, count in
      guard let state = HTTPResponseParser.state(parser), let bytes else { return -1 }
      if state.pointee.isInValue { state.pointee.fields.append(([], [])) }
      state.pointee.isInValue = false
      state.pointee.fields[state.pointee.fields.count - 1].name += UnsafeRawBufferPointer(start: bytes, count: count)
      return 0
    }
    settings.on_header_value = { parser, bytes, count in
      guard let state = HTTPResponseParser.state(parser), let bytes else { return -1 }
      guard !state.pointee.fields.isEmpty else { return -1 }
      state.pointee.isInValue = true
      state.pointee.fields[state.pointee.fields.count - 1].value += UnsafeRawBufferPointer(start: bytes, count: count)
      return 0
    }
    settings.on_headers_complete = { parser in
      guard let state = HTTPResponseParser.state(parser) else { return -1 }
      return state.pointee.isHead ? 1 : 0
    }
    settings.on_body = { parser, bytes, count in
      guard let state = HTTPResponseParser.state(parser), let bytes else { return -1 }
      guard state.pointee.body.count + count <= state.pointee.bodyBytesMax else {
        state.pointee.isTooLarge = true
        return -1
      }
      state.pointee.body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
      return 0
    }
    settings.on_message_complete = { parser in
      guard let state = HTTPResponseParser.state(parser), let parser else { return -1 }
      // An interim response (100 Continue) is not the final one.
      guard parser.pointee.status_code >= 200 else { return 0 }
      state.pointee.isComplete = true
      state.pointee.keepsAlive = http_should_keep_alive(parser) != 0
      http_parser_pause(parser, 1)
      return 0
    }
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Parses the next bytes. Zero bytes mean that the peer closed the connection, which ends a body of unknown
  /// length.
  func parse(_ bytes: [UInt8], count: Int) -> Outcome {
    _ = bytes.withUnsafeBytes { buffer in
      http_parser_execute(
        &state.pointee.parser, &settings, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), count)
    }
    if state.pointee.isComplete { return .complete }
    if state.pointee.isTooLarge { return .tooLarge }
    let code = http_errno(UInt32(state.pointee.parser.http_errno))
    if code == HPE_INVALID_EOF_STATE { return .incomplete }
    return code == HPE_OK ? .incomplete : .malformed
  }

  /// The header fields in order, with lower-case names, including the trailers of a chunked body. The parser limits
  /// their size.
  var headers: [(name: String, value: String)] {
    state.pointee.fields.map { field in
      (String(decoding: field.name, as: UTF8.self).lowercased(), String(decoding: field.value, as: UTF8.self))
    }
  }

  var status: Int { Int(state.pointee.parser.status_code) }
  var body: [UInt8] { state.pointee.body }

  /// Returns the body bytes that arrived since the last call. They no longer count toward the limit.
  func takeBody() -> [UInt8] {
    defer { state.pointee.body = [] }
    return state.pointee.body
  }

  var keepsAlive: Bool { state.pointee.keepsAlive }

  private static func state(_ parser: UnsafeMutablePointer<http_parser>?) -> UnsafeMutablePointer<State>? {
    parser?.pointee.data?.assumingMemoryBound(to: State.self)
  }
}
