/// A request that came inside the body of another one.
package struct RequestPart: Sendable {
  /// The method.
  package var method = HTTPMethod.other
  /// Path and query, undecoded.
  package var target: [UInt8] = []
  /// The header fields, in their order.
  package var fields: [(name: [UInt8], value: [UInt8])] = []
  /// The body.
  package var body: [UInt8] = []

  /// Asks for nothing yet.
  package init() {}

  /// Lends it as a request, whose bytes are gone when the call returns. `nil` where it has no target.
  package func withRequest<R>(_ use: (borrowing HTTPRequest) -> R) -> R? {
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
            version: .http11, method: method, target: UnsafeRawBufferPointer(rebasing: bytes[..<target.count]),
            body: UnsafeRawBufferPointer(rebasing: bytes[bodyStart..<(bodyStart + body.count)]), message: start,
            fields: places, socket: -1))
      }
    }
  }
}
