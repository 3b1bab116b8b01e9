/// An in-process request.
package struct LocalRequest: Sendable {
  /// A header field.
  package typealias Field = (name: String, value: String)

  package var method: HTTPMethod
  /// The path and query, as in a request line.
  package var target: String
  package var fields: [Field]
  /// The body, neither chunked nor compressed.
  package var body: [UInt8]

  package init(_ method: HTTPMethod, _ target: String, fields: [Field] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.fields = fields
    self.body = body
  }
}

/// The status and header fields of the response to a ``LocalRequest``.
package struct LocalResponseHead: Sendable {
  package var status: Int
  /// The header fields, in the order written.
  package var fields: [LocalRequest.Field]
}

/// One step in the delivery of a response's body.
package enum LocalPiece: Sendable {
  /// The next bytes of the body.
  case bytes([UInt8])
  /// The body is complete. The trailers follow it.
  case end(trailers: [LocalRequest.Field])
  /// The body was cut short, by the handler or because the server closed.
  case cut
}

/// The bytes of a request in the layout that a connection would have received.
struct LocalMessage {
  /// The target, then all names and values in turn, padded; then the body, padded.
  private var bytes: [UInt8] = []
  private var fields: [HeaderField] = []
  private let method: HTTPMethod
  private let targetCount: Int
  private let bodyStart: Int
  let bodyCount: Int

  init(_ request: LocalRequest) {
    method = request.method
    bytes.append(contentsOf: request.target.utf8)
    targetCount = bytes.count
    for field in request.fields {
      let nameStart = bytes.count
      bytes.append(contentsOf: field.name.utf8)
      let valueStart = bytes.count
      bytes.append(contentsOf: field.value.utf8)
      fields.append(
        HeaderField(
          nameStart: UInt32(nameStart), nameCount: UInt32(valueStart - nameStart), valueStart: UInt32(valueStart),
          valueCount: UInt32(bytes.count - valueStart)))
    }
    bytes.append(contentsOf: repeatElement(0, count: InputBuffer.paddingBytes))
    bodyStart = bytes.count
    bodyCount = request.body.count
    bytes.append(contentsOf: request.body)
    bytes.append(contentsOf: repeatElement(0, count: InputBuffer.paddingBytes))
  }

  /// The length of the target, in bytes.
  var targetBytes: Int { targetCount }

  /// Calls `use` with the request, with or without its body. The request is valid only during the call.
  func withRequest<Result>(hasBody: Bool, _ use: (borrowing HTTPRequest) -> Result) -> Result {
    bytes.withUnsafeBytes { bytes in
      fields.withUnsafeBufferPointer { fields in
        // The padding ensures that the array is never empty.
        guard let message = bytes.baseAddress else { preconditionFailure("the message has no bytes") }
        let body = bytes[bodyStart..<bodyStart + (hasBody ? bodyCount : 0)]
        return use(
          HTTPRequest(
            // A response may have trailers, so handlers of every protocol work, gRPC included.
            version: .http2, method: method, target: UnsafeRawBufferPointer(rebasing: bytes[..<targetCount]),
            body: UnsafeRawBufferPointer(rebasing: body), message: message, fields: fields, socket: -1))
      }
    }
  }

  /// Calls `use` with up to `countMax` bytes of the body, from `start`.
  func withBody(from start: Int, countMax: Int, _ use: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
      let range = bodyStart + start..<bodyStart + min(start + countMax, bodyCount)
      use(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
  }
}
