/// The head of an HTTP/2 request, collected field by field. Names and values are stored in one array of bytes, as
/// `HTTPRequest` requires.
struct HTTP2RequestHead {
  private(set) var bytes: [UInt8] = []
  private(set) var fields: [HeaderField] = []
  private(set) var target = 0..<0
  private(set) var method = HTTPMethod.other
  private(set) var acceptsGzip = false
  private(set) var coding = ContentCoding.identity
  private(set) var isGRPC = false
  /// The reason for which the request will be rejected. Later fields are then not collected.
  private(set) var refusal: Refusal?
  /// The client of another node that sent the request there, on connections of nodes.
  private(set) var client: RelayedClient?
  private var hasHost = false
  private var listBytes = 0

  init() {
    bytes.reserveCapacity(512)
    fields.reserveCapacity(16)
  }

  /// Adds a field. nghttp2 has already checked that the name is lower-case and that name and value are legal.
  mutating func add(
    name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, _ configuration: TransportConfiguration
  ) {
    // Read this field in any case, because the form of a refusal depends on it.
    if name.matches("content-type") { isGRPC = Self.isGRPC(value) }
    guard refusal == nil else { return }
    // Count as the protocol counts a field section: 32 bytes of overhead per field.
    listBytes += name.count + value.count + 32
    guard listBytes <= configuration.headerBytesMax, fields.count < configuration.headerFieldsMax else {
      refusal = .headTooLarge
      return
    }
    do throws(Refusal) {
      if name.first == UInt8(ascii: ":") {
        try addPseudo(name: name, value: value, configuration)
      } else {
        try note(name: name, value: value)
        append(name: name, value: value)
      }
    } catch {
      refusal = error
    }
  }

  /// Rejects requests that no handler supports.
  mutating func complete() {
    if target.isEmpty { refuse(.unknownMethod) }
  }

  /// Sets the refusal, unless there is one already.
  mutating func refuse(_ reason: Refusal) {
    if refusal == nil { refusal = reason }
  }

  /// Sets the client of a relayed request, and replaces the first fields, which describe it, with its host.
  mutating func take(_ client: RelayedClient, fieldCount: Int, host: HeaderField?, target: Range<Int>?) {
    self.client = client
    fields.replaceSubrange(..<fieldCount, with: host.map { [$0] } ?? [])
    if let target { self.target = target }
  }

  /// Frees the memory after the request was handled.
  mutating func forget() {
    bytes = []
    fields = []
    target = 0..<0
  }

  private mutating func addPseudo(
    name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, _ configuration: TransportConfiguration
  ) throws(Refusal) {
    if name.matches(":path") {
      guard value.count <= configuration.targetBytesMax else {
        throw Refusal(status: 414, message: "the request target is too long")
      }
      target = bytes.count..<(bytes.count + value.count)
      bytes.append(raw: value)
    } else if name.matches(":method") {
      method = Self.method(value)
    } else if name.matches(":authority") {
      StaticString("host").withUTF8Buffer { append(name: UnsafeRawBufferPointer($0), value: value) }
      hasHost = true
    }
  }

  private mutating func note(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(Refusal) {
    switch name.count {
    case 15 where name.matches("accept-encoding"):
      acceptsGzip = acceptsGzip || ContentCoding.offersGzip(value)
    case 16 where name.matches("content-encoding"):
      let given = try ContentCoding(value)
      if given == .identity { return }
      guard coding == .identity else { throw .unknownCoding }
      coding = given
    default: break
    }
  }

  private mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    if hasHost && name.matches("host") { return }
    let start = bytes.count
    bytes.append(raw: name)
    bytes.append(raw: value)
    fields.append(
      HeaderField(
        nameStart: UInt32(start), nameCount: UInt32(name.count), valueStart: UInt32(start + name.count),
        valueCount: UInt32(value.count)))
  }

  private static func isGRPC(_ contentType: UnsafeRawBufferPointer) -> Bool {
    contentType.count >= 16 && UnsafeRawBufferPointer(rebasing: contentType[..<16]).matches("application/grpc")
  }

  private static func method(_ value: UnsafeRawBufferPointer) -> HTTPMethod {
    let known: [(StaticString, HTTPMethod)] = [
      ("GET", .get), ("POST", .post), ("PATCH", .patch), ("DELETE", .delete), ("HEAD", .head), ("PUT", .put),
      ("OPTIONS", .options),
    ]
    for (name, method) in known where value.matches(name) { return method }
    return .other
  }
}

extension UnsafeRawBufferPointer {
  /// Whether these are exactly the bytes of `text`.
  @inline(__always)
  func matches(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in 0..<count where self[index] != text.utf8Start[index] { return false }
    return true
  }
}
