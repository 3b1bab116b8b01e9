import CHTTPParser
import Glibc

/// An incremental, in-place parser of HTTP/1 requests. http-parser reads the head, and this type's own strict rules
/// determine the length of the body. Does not depend on sockets. Positions are byte offsets from the start of the
/// message, so the buffer may move between calls.
final class HTTP1Parser {
  struct Limits {
    var headerBytesMax: Int
    var headerFieldsMax: Int
    var targetBytesMax: Int
    var bodyBytesMax: Int
  }

  enum Outcome {
    /// The message continues after the given bytes.
    case incomplete
    /// The head of a request with a body is complete. Reported once per request, before its body is read. Continue
    /// with `parse` or with `beginPassing`.
    case head
    /// The request is complete. It is `messageBytes` long, and its parts are in the properties.
    case request
    case refused(Refusal)
  }

  enum Phase { case idle, head, body }

  /// The state that the head callbacks fill in. Plain memory, so that C code can point to it without reference
  /// counting.
  private struct Head {
    var parser = http_parser()
    var base: UnsafeRawPointer?
    var targetStart = 0
    var targetCount = 0
    var fields: UnsafeMutablePointer<HeaderField>
    var fieldsCapacity: Int
    var fieldCount = 0
    var isInValue = false
    var isComplete = false
    var refusal: Refusal?
    let limits: Limits
  }

  private enum BodyFraming {
    case none
    case length(Int)
    case chunked(ChunkedDecoder)
  }

  /// The result of `pass`: the number of body bytes at the start of the input, and the number of consumed input
  /// bytes.
  struct Passed {
    var bodyCount: Int
    var consumedCount: Int
    var isComplete: Bool
  }

  private let head: UnsafeMutablePointer<Head>
  private let settings = HTTP1Parser.sharedSettings
  private var framing = BodyFraming.none
  private var scanned = 0

  private(set) var phase = Phase.idle
  private(set) var bodyStart = 0
  private(set) var bodyCount = 0
  private(set) var acceptsGzip = false
  private(set) var contentCoding = ContentCoding.identity
  private(set) var keepsAlive = false
  /// Whether the client waits for `100 Continue` before it sends the body.
  private(set) var expectsContinue = false
  /// Whether the body is known to exceed the limit for complete bodies.
  private(set) var isBodyTooLarge = false

  init(limits: Limits) {
    let capacity = 16
    head = .allocate(capacity: 1)
    head.initialize(
      to: Head(fields: .allocate(capacity: capacity), fieldsCapacity: capacity, limits: limits))
    reset()
  }

  deinit {
    head.pointee.fields.deallocate()
    head.deinitialize(count: 1)
    head.deallocate()
  }

  /// Resets the parser for the next message.
  func reset() {
    http_parser_init(&head.pointee.parser, HTTP_REQUEST)
    head.pointee.parser.data = UnsafeMutableRawPointer(head)
    head.pointee.targetStart = 0
    head.pointee.targetCount = 0
    head.pointee.fieldCount = 0
    head.pointee.isInValue = false
    head.pointee.isComplete = false
    framing = .none
    scanned = 0
    phase = .idle
    bodyStart = 0
    bodyCount = 0
    acceptsGzip = false
    contentCoding = .identity
    keepsAlive = false
    expectsContinue = false
    isBodyTooLarge = false
  }

  /// Parses further bytes. `message` points to `count` bytes, including those of earlier calls. While a chunked body
  /// is incomplete, its chunks are moved together and `count` is reduced accordingly. Costs one pass over the new
  /// bytes.
  func parse(_ message: UnsafeMutableRawPointer, count: inout Int) -> Outcome {
    do throws(Refusal) {
      if phase != .body {
        guard count > scanned else { return .incomplete }
        phase = .head
        guard try parseHead(message, count: count) else { return .incomplete }
        phase = .body
        if case .none = framing { return .request }
        return .head
      }
      return try parseBody(message, count: &count) ? .request : .incomplete
    } catch {
      return .refused(error)
    }
  }

  /// Prepares for a body of any length, read piece by piece with `pass`. The head's bytes are no longer needed.
  func beginPassing() {
    scanned = 0
    // Far above any real body, but the sum of two such lengths does not overflow.
    if case .chunked = framing { framing = .chunked(ChunkedDecoder(bodyBytesMax: Int.max >> 8)) }
  }

  /// Parses the next `count` bytes of a body that is read piece by piece. Moves chunks together in `bytes`.
  /// - Throws: ``Refusal`` if the chunked coding is malformed.
  func pass(_ bytes: UnsafeMutableRawPointer, count: Int) throws(Refusal) -> Passed {
    switch framing {
    case .none:
      return Passed(bodyCount: 0, consumedCount: 0, isComplete: true)
    case .length(let remaining):
      let taken = min(count, remaining)
      framing = .length(remaining - taken)
      return Passed(bodyCount: taken, consumedCount: taken, isComplete: taken == remaining)
    case .chunked(var decoder):
      var cursor = 0
      var end = 0
      let isComplete = try decoder.decode(bytes, from: &cursor, to: count, bodyEnd: &end)
      framing = .chunked(decoder)
      return Passed(bodyCount: end, consumedCount: cursor, isComplete: isComplete)
    }
  }

  /// The length of the message, in bytes. Meaningful after `.request`.
  var messageBytes: Int { scanned }

  /// The total length of the message, if known: a hint for the size of the buffer.
  var expectedBytes: Int? {
    if case .length(let length) = framing { return bodyStart + length }
    return nil
  }

  var isHTTP10: Bool { head.pointee.parser.http_minor == 0 }
  var target: Range<Int> { head.pointee.targetStart..<(head.pointee.targetStart + head.pointee.targetCount) }
  var fields: UnsafeBufferPointer<HeaderField> {
    UnsafeBufferPointer(start: head.pointee.fields, count: head.pointee.fieldCount)
  }

  var method: HTTPMethod {
    switch http_method(UInt32(head.pointee.parser.method)) {
    case HTTP_GET: .get
    case HTTP_HEAD: .head
    case HTTP_POST: .post
    case HTTP_PUT: .put
    case HTTP_PATCH: .patch
    case HTTP_DELETE: .delete
    case HTTP_OPTIONS: .options
    default: .other
    }
  }

  // MARK: - Head

  private func parseHead(_ message: UnsafeMutableRawPointer, count: Int) throws(Refusal) -> Bool {
    head.pointee.base = UnsafeRawPointer(message)
    let unread = message + scanned
    scanned += http_parser_execute(
      &head.pointee.parser, settings, unread.assumingMemoryBound(to: CChar.self), count - scanned)
    if let refusal = head.pointee.refusal { throw refusal }
    guard head.pointee.isComplete else {
      let code = http_errno(UInt32(head.pointee.parser.http_errno))
      guard code == HPE_OK else { throw refusal(for: code, message) }
      if scanned > head.pointee.limits.headerBytesMax { throw .headTooLarge }
      return false
    }
    if scanned > head.pointee.limits.headerBytesMax { throw .headTooLarge }
    // The library as built by Debian accepts any byte in place of the last LF.
    let endsWithLineFeed = message.load(fromByteOffset: scanned - 1, as: UInt8.self) == 0x0a
    guard endsWithLineFeed else { throw .malformed }
    bodyStart = scanned
    try checkHead(UnsafeRawPointer(message))
    return true
  }

  /// Determines the framing of the body from the complete head, and rejects heads that two implementations could
  /// frame differently.
  private func checkHead(_ message: UnsafeRawPointer) throws(Refusal) {
    let parser = head.pointee.parser
    guard parser.http_major == 1 else {
      throw Refusal(status: 505, message: "only HTTP/1.0 and HTTP/1.1 are supported")
    }
    guard head.pointee.targetCount > 0, endsLines(message) else { throw .malformed }
    keepsAlive = http_should_keep_alive(&head.pointee.parser) != 0
    var transferCodings = 0
    var hosts = 0
    var host = 0
    var hasLength = false
    var end = target.upperBound
    for index in 0..<head.pointee.fieldCount {
      end = try trim(&head.pointee.fields[index], in: message)
      let field = head.pointee.fields[index]
      let name = message + Int(field.nameStart)
      switch field.nameCount {
      case 4:
        if equalIgnoringCase(name, "host") {
          hosts += 1
          host = index
        }
      case 6:
        if equalIgnoringCase(name, "expect"), !isHTTP10 { try readExpect(field, message) }
      case 14:
        if equalIgnoringCase(name, "content-length") {
          if hasLength || field.valueCount == 0 { throw .malformed }
          hasLength = true
        }
      case 15:
        if equalIgnoringCase(name, "accept-encoding") {
          acceptsGzip = acceptsGzip || ContentCoding.offersGzip(value(of: field, message))
        }
      case 16:
        if equalIgnoringCase(name, "content-encoding") { try readContentEncoding(field, message) }
      case 17:
        if equalIgnoringCase(name, "transfer-encoding") {
          transferCodings += 1
          guard hasValue(field, "chunked", message) else {
            throw Refusal(status: 501, message: "the only transfer coding supported is chunked")
          }
        }
      default: break
      }
    }
    // After the last field, only line ends may precede the body. Without fields, the version may too.
    let restBytesMax = head.pointee.fieldCount > 0 ? 4 : " HTTP/1.1\r\n\r\n".utf8.count
    guard bodyStart - end <= restBytesMax, hosts <= 1, transferCodings <= 1 else { throw .malformed }
    // RFC 9112, section 3.2.
    guard hosts == 1 || isHTTP10 else { throw Refusal(status: 400, message: "the Host field is missing") }
    try readAbsoluteTarget(message, host: hosts == 1 ? host : nil)
    if transferCodings == 1 {
      if hasLength || isHTTP10 { throw .malformed }
      framing = .chunked(ChunkedDecoder(bodyBytesMax: head.pointee.limits.bodyBytesMax))
    } else if hasLength {
      guard let length = Int(exactly: parser.content_length) else { throw .bodyTooLarge }
      isBodyTooLarge = length > head.pointee.limits.bodyBytesMax
      // A body of zero bytes has no framing, because no byte would arrive to end it.
      if length > 0 { framing = .length(length) }
    }
    if case .none = framing { expectsContinue = false }
  }

  /// Whether CR precedes the LF of the request line and of the empty line. `trim` checks the other lines. The library
  /// accepts LF alone, which other servers read differently.
  private func endsLines(_ message: UnsafeRawPointer) -> Bool {
    func isReturn(_ offset: Int) -> Bool { message.load(fromByteOffset: offset, as: UInt8.self) == 0x0d }
    var lineFeed = target.upperBound
    while message.load(fromByteOffset: lineFeed, as: UInt8.self) != 0x0a { lineFeed += 1 }
    return isReturn(lineFeed - 1) && isReturn(bodyStart - 2)
  }

  /// Reduces an absolute target to its path. Its authority replaces the value of the Host field (RFC 9112, section
  /// 3.2.2).
  private func readAbsoluteTarget(_ message: UnsafeRawPointer, host: Int?) throws(Refusal) {
    let first = message.load(fromByteOffset: target.lowerBound, as: UInt8.self)
    if first == UInt8(ascii: "/") || first == UInt8(ascii: "*") || method == .other { return }
    let whole = UnsafeRawBufferPointer(start: message, count: target.upperBound)
    let authorityStart: Int
    if target.count > 7 && equalIgnoringCase(message + target.lowerBound, "http://") {
      authorityStart = target.lowerBound + 7
    } else if target.count > 8 && equalIgnoringCase(message + target.lowerBound, "https://") {
      authorityStart = target.lowerBound + 8
    } else {
      throw .malformed
    }
    let pathStart = whole[authorityStart...].firstIndex(of: UInt8(ascii: "/")) ?? whole.endIndex
    let authority = whole[authorityStart..<pathStart]
    guard !authority.isEmpty, !authority.contains(where: { $0 == 0x40 || $0 == 0x3f || $0 == 0x23 }) else {
      throw .malformed
    }
    if let host {
      head.pointee.fields[host].valueStart = UInt32(authorityStart)
      head.pointee.fields[host].valueCount = UInt32(authority.count)
    }
    // Without a path, the target is the slash before the authority.
    head.pointee.targetStart = pathStart < whole.endIndex ? pathStart : authorityStart - 1
    head.pointee.targetCount = pathStart < whole.endIndex ? whole.endIndex - pathStart : 1
  }

  /// Checks that CR ends the value, and removes blanks from its end. Rejects a blank in a name and a line end before a
  /// value, because the library accepts both but other servers read them differently. Returns the position of the CR.
  private func trim(_ field: inout HeaderField, in message: UnsafeRawPointer) throws(Refusal) -> Int {
    let nameEnd = Int(field.nameStart) + Int(field.nameCount)
    for index in Int(field.nameStart)..<nameEnd where message.load(fromByteOffset: index, as: UInt8.self) == 0x20 {
      throw .malformed
    }
    if field.valueCount == 0 {
      field.valueStart = UInt32(nameEnd + 1)
      var end = nameEnd + 1
      while message.load(fromByteOffset: end, as: UInt8.self) == 0x20
        || message.load(fromByteOffset: end, as: UInt8.self) == 0x09
      { end += 1 }
      guard message.load(fromByteOffset: end, as: UInt8.self) == 0x0d else { throw .malformed }
      return end
    }
    let end = Int(field.valueStart + field.valueCount)
    guard message.load(fromByteOffset: end, as: UInt8.self) == 0x0d else { throw .malformed }
    for index in (nameEnd + 1)..<Int(field.valueStart) {
      let byte = message.load(fromByteOffset: index, as: UInt8.self)
      guard byte == 0x20 || byte == 0x09 else { throw .malformed }
    }
    while field.valueCount > 0 {
      let last = message.load(fromByteOffset: Int(field.valueStart + field.valueCount) - 1, as: UInt8.self)
      guard last == 0x20 || last == 0x09 else { break }
      field.valueCount -= 1
    }
    return end
  }

  private func readExpect(_ field: HeaderField, _ message: UnsafeRawPointer) throws(Refusal) {
    guard hasValue(field, "100-continue", message) else {
      throw Refusal(status: 417, message: "the only expectation supported is 100-continue")
    }
    expectsContinue = true
  }

  private func readContentEncoding(_ field: HeaderField, _ message: UnsafeRawPointer) throws(Refusal) {
    let coding = try ContentCoding(value(of: field, message))
    if coding == .identity { return }
    guard contentCoding == .identity else { throw .unknownCoding }
    contentCoding = coding
  }

  private func hasValue(_ field: HeaderField, _ lowercasedValue: StaticString, _ message: UnsafeRawPointer) -> Bool {
    Int(field.valueCount) == lowercasedValue.utf8CodeUnitCount
      && equalIgnoringCase(message + Int(field.valueStart), lowercasedValue)
  }

  private func value(of field: HeaderField, _ message: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: message + Int(field.valueStart), count: Int(field.valueCount))
  }

  private func refusal(for code: http_errno, _ message: UnsafeMutableRawPointer) -> Refusal {
    switch code {
    case HPE_HEADER_OVERFLOW: return .headTooLarge
    case HPE_INVALID_METHOD: return isUnknownMethod(message) ? .unknownMethod : .malformed
    case HPE_INVALID_VERSION: return Refusal(status: 505, message: "only HTTP/1.0 and HTTP/1.1 are supported")
    case HPE_INVALID_CONTENT_LENGTH: return Refusal(status: 400, message: "invalid Content-Length")
    case HPE_UNEXPECTED_CONTENT_LENGTH:
      return Refusal(status: 400, message: "Content-Length given twice, or together with Transfer-Encoding")
    default: return .malformed
    }
  }

  /// Whether a word in capital letters precedes the byte that the parser rejected. If so, the input is an unknown
  /// method rather than noise. Reads no further bytes, so the result does not depend on how the bytes arrive.
  private func isUnknownMethod(_ message: UnsafeMutableRawPointer) -> Bool {
    let word = UnsafeRawBufferPointer(start: message, count: scanned).drop { $0 == 0x0d || $0 == 0x0a }
    return !word.isEmpty && word.allSatisfy { $0 &- 0x41 < 26 }
  }

  // MARK: - Body

  private func parseBody(_ message: UnsafeMutableRawPointer, count: inout Int) throws(Refusal) -> Bool {
    switch framing {
    case .none:
      return true
    case .length(let length):
      bodyCount = min(count - bodyStart, length)
      scanned = bodyStart + bodyCount
      return bodyCount == length
    case .chunked(var decoder):
      var end = bodyStart + bodyCount
      let isComplete = try decoder.decode(message, from: &scanned, to: count, bodyEnd: &end)
      bodyCount = end - bodyStart
      framing = .chunked(decoder)
      if !isComplete {
        // All bytes were consumed. The bytes after the body so far are framing that is no longer needed.
        count = end
        scanned = end
      }
      return isComplete
    }
  }

  // MARK: - Callbacks

  // Written once, before any other thread can read it.
  private nonisolated(unsafe) static let sharedSettings: UnsafePointer<http_parser_settings> = {
    let settings = UnsafeMutablePointer<http_parser_settings>.allocate(capacity: 1)
    http_parser_settings_init(settings)
    settings.pointee.on_url = { parser, at, length in
      HTTP1Parser.receivedTarget(HTTP1Parser.head(parser), at, length)
    }
    settings.pointee.on_header_field = { parser, at, length in
      HTTP1Parser.receivedName(HTTP1Parser.head(parser), at, length)
    }
    settings.pointee.on_header_value = { parser, at, length in
      HTTP1Parser.receivedValue(HTTP1Parser.head(parser), at, length)
    }
    // 1 tells the library not to read the body and not to handle an upgrade.
    settings.pointee.on_headers_complete = { parser in
      parser?.pointee.upgrade = 0
      return 1
    }
    settings.pointee.on_message_complete = { parser in
      HTTP1Parser.head(parser)?.pointee.isComplete = true
      http_parser_pause(parser, 1)
      return 0
    }
    return UnsafePointer(settings)
  }()

  @inline(__always)
  private static func head(_ parser: UnsafeMutablePointer<http_parser>?) -> UnsafeMutablePointer<Head>? {
    parser?.pointee.data?.assumingMemoryBound(to: Head.self)
  }

  @inline(__always)
  private static func offset(_ head: UnsafeMutablePointer<Head>, _ at: UnsafePointer<CChar>) -> Int {
    guard let base = head.pointee.base else { return 0 }
    return UnsafeRawPointer(at) - base
  }

  private static func receivedTarget(
    _ head: UnsafeMutablePointer<Head>?, _ at: UnsafePointer<CChar>?, _ length: Int
  ) -> Int32 {
    guard let head, let at else { return 1 }
    if head.pointee.targetCount == 0 { head.pointee.targetStart = offset(head, at) }
    head.pointee.targetCount += length
    guard head.pointee.targetCount <= head.pointee.limits.targetBytesMax else {
      head.pointee.refusal = Refusal(status: 414, message: "the request target is too long")
      return 1
    }
    return 0
  }

  private static func receivedName(
    _ head: UnsafeMutablePointer<Head>?, _ at: UnsafePointer<CChar>?, _ length: Int
  ) -> Int32 {
    guard let head, let at else { return 1 }
    let count = head.pointee.fieldCount
    if count > 0 && !head.pointee.isInValue {
      head.pointee.fields[count - 1].nameCount += UInt32(length)
      return 0
    }
    guard count < head.pointee.limits.headerFieldsMax else {
      head.pointee.refusal = .headTooLarge
      return 1
    }
    if count == head.pointee.fieldsCapacity { growFields(head) }
    let start = UInt32(offset(head, at))
    head.pointee.fields[count] = HeaderField(
      nameStart: start, nameCount: UInt32(length), valueStart: 0, valueCount: 0)
    head.pointee.fieldCount = count + 1
    head.pointee.isInValue = false
    return 0
  }

  private static func receivedValue(
    _ head: UnsafeMutablePointer<Head>?, _ at: UnsafePointer<CChar>?, _ length: Int
  ) -> Int32 {
    guard let head, let at, head.pointee.fieldCount > 0 else { return 1 }
    let field = head.pointee.fields + (head.pointee.fieldCount - 1)
    let start = UInt32(offset(head, at))
    if !head.pointee.isInValue {
      head.pointee.isInValue = true
      field.pointee.valueStart = start
    } else if field.pointee.valueStart + field.pointee.valueCount != start {
      // A second piece that does not follow the first directly is a folded line.
      head.pointee.refusal = .malformed
      return 1
    }
    field.pointee.valueCount += UInt32(length)
    return 0
  }

  private static func growFields(_ head: UnsafeMutablePointer<Head>) {
    let capacity = head.pointee.fieldsCapacity * 2
    let fields = UnsafeMutablePointer<HeaderField>.allocate(capacity: capacity)
    fields.update(from: head.pointee.fields, count: head.pointee.fieldCount)
    head.pointee.fields.deallocate()
    head.pointee.fields = fields
    head.pointee.fieldsCapacity = capacity
  }
}
