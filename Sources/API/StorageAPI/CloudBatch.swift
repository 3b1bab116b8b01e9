import Files
import GatewayCore
import Transport
import WireFormat

/// Runs a batch: several Cloud Storage requests in one, `POST /batch/storage/v1`. The requests run one after the
/// other, each succeeds or fails by itself, and one response contains all of theirs. They cannot transfer content.
///
/// Use it on the exchange's loop only.
final class CloudBatch {
  /// The limit of the responses' total length. When it is reached, the remaining requests are rejected.
  private static let responsesBytesMax = 16 << 20
  private static let contentType: StaticString = "multipart/mixed; boundary=batch_hearth_2f0c7a41"
  private static let boundary = "\(contentType)".drop { $0 != "=" }.dropFirst()

  private let storageRequest: StorageRequest
  /// Finds the operation of each request; see ``CloudOperation/all``.
  private let router: Router
  private var parts: ArraySlice<BatchReader.Part>
  private var responses: [UInt8] = []

  private init(_ storageRequest: StorageRequest, _ parts: [BatchReader.Part], _ router: Router) {
    self.storageRequest = storageRequest
    self.router = router
    self.parts = parts[...]
  }

  /// Parses the batch and runs it.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the batch is malformed or empty.
  static func handle(
    _ storageRequest: StorageRequest, _ request: borrowing HTTPRequest, _ router: Router
  ) throws(FilesError) {
    let parts = try BatchReader.parts(of: request.body, contentType: request.text("content-type"))
    guard !parts.isEmpty else { throw .invalid("The batch has no requests.") }
    CloudBatch(storageRequest, parts, router).next()
  }

  /// Runs the next request, or sends the response if none is left.
  private func next() {
    guard let part = parts.popFirst() else { return send() }
    var made = storageRequest
    let bound = LoopBound(self, to: storageRequest.responder.exchange.loop)
    made.answered = { status, type, body in
      // Wait for the loop's next turn: a chain of requests that finish at once would otherwise grow the stack.
      bound.later { batch in
        batch.append(part, status, type, body)
        batch.next()
      }
    }
    guard responses.count < Self.responsesBytesMax else {
      return made.fail(
        .invalid("The responses of the batch exceed \(Self.responsesBytesMax) bytes. Send fewer requests."))
    }
    let isMade = part.request.withRequest { request in
      perform(request, made)
      return true
    }
    if isMade == nil { made.failUnknown() }
  }

  private func perform(_ request: borrowing HTTPRequest, _ made: StorageRequest) {
    let match = router.match(request)
    guard let number = match.number else { return made.failUnknown() }
    var made = made
    made.respond(request) { request in
      let parameters = try StorageContext.parameters(of: request)
      try CloudStorageAPI.requireNoKeys(parameters, request)
      guard parameters.value("alt") != "media" else {
        throw FilesError.invalid("A batch cannot transfer content. Send this request on its own.")
      }
      made.parameters = parameters
      made.fields = try FieldSelection(parameters)
      let path = CloudPath(request, match)
      made.respond(request) { request in
        try CloudOperation.all[number].run(CloudStorageHandler(made), path, request)
      }
    }
  }

  // MARK: - Responses

  private func append(_ part: BatchReader.Part, _ status: Int, _ type: StaticString?, _ body: [UInt8]) {
    var head = "--\(Self.boundary)\r\nContent-Type: application/http\r\n"
    if let id = part.contentID {
      let plain = id.drop { $0 == "<" }
      head += "Content-ID: <response-\(plain.hasSuffix(">") ? plain.dropLast() : plain)>\r\n"
    }
    head += "\r\nHTTP/1.1 \(status) \(Self.reason(status))\r\n"
    if let type { head += "Content-Type: \(type)\r\n" }
    head += "Content-Length: \(body.count)\r\n\r\n"
    responses += head.utf8
    responses += body
    responses += "\r\n".utf8
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200...299: "OK"
    case 304: "Not Modified"
    case 404: "Not Found"
    case 412: "Precondition Failed"
    default: "Error"
    }
  }

  private func send() {
    storageRequest.sendBody(
      responses + "--\(Self.boundary)--\r\n".utf8, type: Self.contentType, status: 200, { _ in })
  }
}
