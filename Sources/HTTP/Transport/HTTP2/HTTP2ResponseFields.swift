import CNGHTTP2

/// Collects the fields of a response or of its trailers in the form that nghttp2 requires. Each loop has one and
/// reuses its memory.
final class HTTP2ResponseFields {
  private let responseHead: ResponseHead
  /// Lines in the format of HTTP/1, `name: value CR LF`.
  private var lines: [UInt8] = []
  private var list: [nghttp2_nv] = []

  init(_ responseHead: ResponseHead) {
    self.responseHead = responseHead
  }

  /// Starts the head of a response with its status and the date.
  func beginHead(status: Int) {
    beginTrailers()
    lines.append(":status:     \r\n")
    lines.writeDecimal(min(max(status, 100), 999), at: lines.count - 5, width: 3)
    responseHead.appendDate(to: &lines)
  }

  /// Starts trailers.
  func beginTrailers() {
    lines.removeAll(keepingCapacity: true)
  }

  /// Adds the fields that the caller writes.
  func add(_ write: (inout HeaderWriter) -> Void) {
    var taken: [UInt8] = []
    swap(&taken, &lines)
    var writer = HeaderWriter(bytes: taken)
    taken = []
    write(&writer)
    lines = writer.bytes
  }

  /// Adds the length of the body.
  func addContentLength(_ count: Int) {
    lines.append("content-length:                    \r\n")
    lines.writeDecimal(count, at: lines.count - 21, width: 19)
  }

  /// Calls `body` with the fields, their names in lower case. nghttp2 copies the fields that it keeps.
  func withFields<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
    list.removeAll(keepingCapacity: true)
    return lines.withUnsafeMutableBufferPointer { lines in
      var start = 0
      while let field = Self.field(in: lines, at: &start) { list.append(field) }
      return list.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }
  }

  /// Reads the line at `start` and advances to the next one. Returns `nil` at the end.
  private static func field(in lines: UnsafeMutableBufferPointer<UInt8>, at start: inout Int) -> nghttp2_nv? {
    guard let base = lines.baseAddress, start < lines.count else { return nil }
    // The first byte may be the colon of `:status`.
    var nameEnd = start + 1
    while nameEnd < lines.count, lines[nameEnd] != UInt8(ascii: ":") { nameEnd += 1 }
    for index in start..<nameEnd where lines[index] &- 0x41 < 26 { lines[index] |= 0x20 }
    var valueStart = min(nameEnd + 1, lines.count)
    while valueStart < lines.count, lines[valueStart] == 0x20 { valueStart += 1 }
    var end = valueStart
    while end < lines.count, lines[end] != 0x0d { end += 1 }
    var valueEnd = end
    while valueEnd > valueStart, lines[valueEnd - 1] == 0x20 { valueEnd -= 1 }
    let field = nghttp2_nv(
      name: base + start, value: base + valueStart, namelen: nameEnd - start, valuelen: valueEnd - valueStart,
      flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
    start = end + 2
    return field
  }
}
