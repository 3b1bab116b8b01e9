/// A request made in this process.
package struct LocalRequest: Sendable {
  /// A header field.
  package typealias Field = (name: String, value: String)

  /// The method.
  package var method: HTTPMethod
  /// Path and query, as they would stand in a request line.
  package var target: String
  /// The header fields.
  package var fields: [Field]
  /// The body, neither chunked nor compressed.
  package var body: [UInt8]

  /// Describes a request.
  package init(_ method: HTTPMethod, _ target: String, fields: [Field] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.fields = fields
    self.body = body
  }
}

/// How a reply to a ``LocalRequest`` begins.
package struct LocalResponseHead: Sendable {
  /// The status.
  package var status: Int
  /// The header fields, in the order written.
  package var fields: [LocalRequest.Field]
}

/// What comes of a reply's body.
package enum LocalPiece: Sendable {
  /// More of it.
  case bytes([UInt8])
  /// It is whole; these fields follow it.
  case end(trailers: [LocalRequest.Field])
  /// It was cut short: by the handler, or because the server was closed.
  case cut
}

/// The bytes of a request as a connection would have received them.
struct LocalMessage {
  /// Target, names and values one after the other, padded; then the body, padded.
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

  /// The target's length, in bytes.
  var targetBytes: Int { targetCount }

  /// Lends the request, with its body or without.
  func withRequest<Result>(hasBody: Bool, _ use: (borrowing HTTPRequest) -> Result) -> Result {
    bytes.withUnsafeBytes { bytes in
      fields.withUnsafeBufferPointer { fields in
        // The bytes are never empty, as they are padded.
        guard let message = bytes.baseAddress else { preconditionFailure("a message without bytes") }
        let body = bytes[bodyStart..<bodyStart + (hasBody ? bodyCount : 0)]
        return use(
          HTTPRequest(
            // Replies may have trailers, so all dialects can be spoken.
            version: .http2, method: method, target: UnsafeRawBufferPointer(rebasing: bytes[..<targetCount]),
            body: UnsafeRawBufferPointer(rebasing: body), message: message, fields: fields, socket: -1))
      }
    }
  }

  /// Lends part of the body.
  func withBody(from start: Int, countMax: Int, _ use: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
      let range = bodyStart + start..<bodyStart + min(start + countMax, bodyCount)
      use(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
  }
}
