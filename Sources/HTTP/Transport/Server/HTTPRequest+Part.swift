/// A request inside the body of another request, as in a batch.
package struct RequestPart: Sendable {
  package var method = HTTPMethod.other
  /// The path and query, undecoded.
  package var target: [UInt8] = []
  /// The header fields, in order.
  package var fields: [(name: [UInt8], value: [UInt8])] = []
  package var body: [UInt8] = []

  /// Creates an empty request with the method `other`.
  package init() {}

  /// Calls `use` with this request, of HTTP/1.1 or HTTP/2. Its bytes are valid only during the call. Returns `nil` if
  /// the request has no target.
  package func withRequest<R>(isHTTP2: Bool = false, _ use: (borrowing HTTPRequest) -> R) -> R? {
    guard !target.isEmpty else { return nil }
    var message = target
    var places: [HeaderField] = []
    for (name, value) in fields {
      let start = message.count
      message += name + value
      places.append(
        HeaderField(
          nameStart: UInt32(start), nameCount: UInt32(name.count), valueStart: UInt32(start + name.count),
          valueCount: UInt32(value.count)))
    }
    let bodyStart = message.count
    message += body + [UInt8](repeating: 0, count: InputBuffer.paddingBytes)
    return message.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return nil }
      return places.withUnsafeBufferPointer { places in
        use(
          HTTPRequest(
            version: isHTTP2 ? .http2 : .http11, method: method,
            target: UnsafeRawBufferPointer(rebasing: bytes[..<target.count]),
            body: UnsafeRawBufferPointer(rebasing: bytes[bodyStart..<(bodyStart + body.count)]), message: start,
            fields: places, socket: -1))
      }
    }
  }
}
