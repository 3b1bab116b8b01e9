import CNGHTTP2

/// The head of a request in the form in which a peer receives it.
struct RelayedHead {
  /// Names and values, in one array.
  private var bytes: [UInt8] = []
  private var fields: [HeaderField] = []
  /// The position of the field that changes with each request and so is not worth a place in the compression's table.
  private var envelopeIndex = 0
  private let client: RelayedClient

  /// The number of bytes.
  var count: Int { bytes.count }

  /// Copies the head of a request.
  ///
  /// - Parameter isWhole: whether the body is complete, and so without the coding that the fields name.
  init(_ request: borrowing HTTPRequest, client: RelayedClient, isWhole: Bool) {
    self.client = client
    bytes.reserveCapacity(512)
    add(":method", Self.name(of: request.method))
    add(":scheme", "https")
    // The client's own host follows the envelope, because HTTP/1 allows more of a host and a target than HTTP/2.
    add(":authority", "peer")
    if client.hasTarget { add(":path", "/") } else { add(":path", request.target) }
    envelopeIndex = fields.count
    client.text().withUnsafeBytes { add(RelayedClient.fieldName, $0) }
    if client.hasHost, let host = request.header("host") { add(RelayedClient.hostName, host) }
    if client.hasTarget { add(RelayedClient.targetName, request.target) }
    let connection = request.version == .http2 ? nil : request.header("connection")
    for index in 0..<request.headerCount {
      let (name, value) = request.header(at: index)
      if isRelayed(name, value, connection: connection, isWhole: isWhole) { add(name, value) }
    }
  }

  /// Makes the head of a request of this node itself, with the method POST.
  init(ofNode path: String) {
    client = RelayedClient()
    add(":method", "POST")
    add(":scheme", "https")
    add(":authority", "peer")
    var path = path
    path.withUTF8 { add(":path", UnsafeRawBufferPointer($0)) }
    envelopeIndex = fields.count
    client.text().withUnsafeBytes { add(RelayedClient.fieldName, $0) }
  }

  private func isRelayed(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, connection: UnsafeRawBufferPointer?, isWhole: Bool
  ) -> Bool {
    guard let start = name.baseAddress else { return false }
    func isNamed(_ text: StaticString) -> Bool {
      name.count == text.utf8CodeUnitCount && equalIgnoringCase(start, text)
    }
    // HTTP/2 allows this value, and gRPC requires it.
    if isNamed("te") { return value.matches("trailers") }
    if RelayedFields.isOfConnection(name) || isNamed("host") { return false }
    if isWhole && (isNamed("content-length") || isNamed("content-encoding")) { return false }
    return connection.map { !RelayedFields.list($0, names: name) } ?? true
  }

  private mutating func add(_ name: StaticString, _ value: StaticString) {
    add(name, UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
  }

  private mutating func add(_ name: StaticString, _ value: UnsafeRawBufferPointer) {
    add(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value)
  }

  private mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    let start = bytes.count
    for byte in name { bytes.append(RelayedFields.lowered(byte)) }
    bytes.append(raw: value)
    fields.append(
      HeaderField(
        nameStart: UInt32(start), nameCount: UInt32(name.count), valueStart: UInt32(start + name.count),
        valueCount: UInt32(value.count)))
  }

  /// Calls `use` with the fields, which nghttp2 copies. With `mayPassOn`, the receiver may pass the request on to the owner.
  func withFields<Result>(mayPassOn: Bool, _ use: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
    guard mayPassOn else { return withFields(use) }
    var other = self
    let envelope = client.text(mayPassOn: true)
    other.fields[envelopeIndex].valueStart = UInt32(bytes.count)
    other.fields[envelopeIndex].valueCount = UInt32(envelope.count)
    other.bytes += envelope
    return other.withFields(use)
  }

  private func withFields<Result>(_ use: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { bytes in
      // nghttp2 does not change the bytes, though its type would allow it.
      let start = UnsafeMutablePointer(mutating: bytes.baseAddress)
      let list = fields.indices.map { index in
        let field = fields[index]
        let flags = index == envelopeIndex ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
        return nghttp2_nv(
          name: start.map { $0 + Int(field.nameStart) }, value: start.map { $0 + Int(field.valueStart) },
          namelen: Int(field.nameCount), valuelen: Int(field.valueCount), flags: UInt8(flags.rawValue))
      }
      return list.withUnsafeBufferPointer { use($0.baseAddress, $0.count) }
    }
  }

  private static func name(of method: HTTPMethod) -> StaticString {
    switch method {
    case .get: "GET"
    case .head: "HEAD"
    case .post: "POST"
    case .put: "PUT"
    case .patch: "PATCH"
    case .delete: "DELETE"
    case .options: "OPTIONS"
    // Handlers see only that the method is another one.
    case .other: "OTHER"
    }
  }
}
