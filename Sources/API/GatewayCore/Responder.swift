import Basics
package import DatabaseService
package import Transport

/// Sends the response to one request, with the parts that every response has: content type, CORS headers, errors.
///
/// It is sendable so that a commit can pass it to the writer and back. Use it on its exchange's loop only, or
/// through ``onLoop(_:)``.
package struct Responder: Sendable {
  package let exchange: Exchange
  /// The origin of the page that sends the request, if a browser reports it.
  private let origin: String?
  /// The time after which the client may try again, or `nil` if the response does not say so.
  private var retryAfterSeconds: Int?
  /// The header fields that scripts of other origins may read.
  package var exposedHeaders: StaticString =
    "ETag, X-HTTP-Session-Id, X-Client-Wire-Protocol, X-HTTP-Initial-Response"

  /// Creates a responder for a request.
  package init(_ exchange: Exchange, _ request: borrowing HTTPRequest) {
    self.exchange = exchange
    origin = request.header("origin").map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns a responder that asks the client to wait as long as an error says.
  package func delaying(_ error: any Error) -> Responder {
    guard let seconds = (error as? Status)?.retryAfterSeconds else { return self }
    var responder = self
    responder.retryAfterSeconds = seconds
    return responder
  }

  /// Runs `work` on the loop of the connection. Use it to respond from another thread.
  package func onLoop(_ work: @escaping @Sendable () -> Void) {
    if exchange.loop.isOnLoop {
      work()
    } else {
      exchange.loop.execute(work)
    }
  }

  private static let workers = BoundedWorkers(
    "administration", threads: WorkerLimits.administrationThreadsMax,
    unfinishedMax: WorkerLimits.administrationUnfinishedMax)

  /// Runs work of an administrator's request that is too long for the loop on another thread, which must respond
  /// through ``onLoop(_:)``. Responds with RESOURCE_EXHAUSTED if too many such requests are unfinished.
  package func work(_ body: @escaping @Sendable () -> Void) {
    if !Self.workers.run(body) {
      sendError(Status(.resourceExhausted, "The server is busy with other requests. Try again in a moment."))
    }
  }

  /// Responds with JSON. `cacheControl` overrides the default, which leaves caching to the client.
  package func sendJSON(_ body: [UInt8], status: Int = 200, etag: String? = nil, cacheControl: String? = nil) {
    sendJSON(status: status, etag: etag, cacheControl: cacheControl) { $0.append(contentsOf: body) }
  }

  /// Responds with the JSON that `write` appends to the output of the connection. If it throws, nothing is sent.
  ///
  /// - Throws: The error that `write` throws.
  package func sendJSON(
    status: Int = 200, etag: String? = nil, cacheControl: String? = nil, _ write: (inout [UInt8]) throws -> Void
  ) rethrows {
    try exchange.respond(
      status: status,
      headers: { headers in
        writeHeaders(&headers, etag: etag)
        if let cacheControl { headers.add("Cache-Control", cacheControl) }
      },
      body: write)
  }

  /// Responds with a stream of JSON.
  package func streamJSON(from source: any BodySource) {
    exchange.stream(status: 200, headers: { writeHeaders(&$0, etag: nil) }, from: source)
  }

  /// Responds that the client's copy is current.
  package func sendNotModified(etag: String) {
    exchange.respond(status: 304, headers: { writeHeaders(&$0, etag: etag) }, body: { _ in })
  }

  /// Responds with an error. On streaming methods the error object is in an array (firestore-api.md, section 1.3).
  package func sendError(_ status: Status, inArray: Bool = false) {
    let httpStatus = ErrorJSON.httpStatus(status.code)
    exchange.logFailure(of: status)
    var body = ErrorJSON.encode(status, httpStatus: httpStatus)
    if inArray { body = [UInt8(ascii: "[")] + body + [UInt8(ascii: "]")] }
    delaying(status).sendJSON(body, status: httpStatus)
  }

  /// Responds that the body exceeds the limit of the database. The transport responds the same way to even longer
  /// bodies.
  package func sendTooLarge(bytesMax: Int) {
    sendJSON(
      ErrorJSON.body(httpStatus: 413, message: "The request's body is larger than \(bytesMax) bytes."),
      status: 413)
  }

  /// Responds with plain text.
  package func sendText(_ status: Int, _ text: StaticString) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", "text/plain; charset=utf-8")
        writeOrigin(&headers)
      },
      body: { $0.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) })
  }

  /// Responds with an HTML page.
  package func sendPage(_ body: [UInt8]) {
    exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", "text/html; charset=utf-8")
        writeOrigin(&headers)
      },
      body: { $0.append(contentsOf: body) })
  }

  /// Redirects the client to a URL, which must not contain line breaks.
  package func sendRedirect(to location: String, status: Int) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Location", location)
        headers.add("Cache-Control", "no-store")
        writeOrigin(&headers)
      },
      body: { _ in })
  }

  /// Responds to a CORS preflight request.
  package func sendPreflight(_ request: borrowing HTTPRequest) {
    let wanted = request.header("access-control-request-headers").map { String(decoding: $0, as: UTF8.self) }
    let isPrivate = request.header("access-control-request-private-network")?.elementsEqual("true".utf8) ?? false
    exchange.respond(
      status: 200,
      headers: { headers in
        writeOrigin(&headers)
        if let wanted { headers.add("Access-Control-Allow-Headers", wanted) }
        // A public page requests an address in its own private network.
        if isPrivate { headers.add("Access-Control-Allow-Private-Network", "true") }
        headers.add("Access-Control-Max-Age", "3600")
      },
      body: { _ in })
  }

  private func writeHeaders(_ headers: inout HeaderWriter, etag: String?) {
    headers.add(lines: "Content-Type: application/json; charset=UTF-8\r\nX-Content-Type-Options: nosniff\r\n")
    if let etag {
      headers.add("ETag", etag)
      headers.add(lines: "Cache-Control: private, no-cache\r\n")
    }
    if let retryAfterSeconds { headers.add("Retry-After", "\(retryAfterSeconds)") }
    writeOrigin(&headers)
  }

  /// Adds the CORS headers, which allow a page of another origin to read the response.
  package func writeOrigin(_ headers: inout HeaderWriter) {
    guard let origin else { return }
    headers.add("Access-Control-Allow-Origin", origin)
    headers.add("Access-Control-Allow-Credentials", "true")
    headers.add("Access-Control-Allow-Methods", "DELETE,GET,HEAD,PATCH,POST,PUT")
    headers.add("Access-Control-Expose-Headers", exposedHeaders)
    headers.add("Vary", "Origin")
  }
}
