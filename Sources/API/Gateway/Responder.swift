import DatabaseService
import Transport

/// The reply to one request, with what every reply needs: content type, cross-origin headers, errors.
///
/// Sendable, so that a commit can carry it to the writer and back; it is only used on its exchange's loop.
struct Responder: Sendable {
  let exchange: Exchange
  /// The page that calls, where a browser says so.
  private let origin: String?
  /// The header fields that scripts of other origins may read.
  var exposedHeaders: StaticString =
    "ETag, X-HTTP-Session-Id, X-Client-Wire-Protocol, X-HTTP-Initial-Response"

  init(_ exchange: Exchange, _ request: borrowing HTTPRequest) {
    self.exchange = exchange
    origin = request.header("origin").map { String(decoding: $0, as: UTF8.self) }
  }

  /// Runs `work` on the loop of the connection: for answers that come from another thread.
  func onLoop(_ work: @escaping @Sendable () -> Void) {
    if exchange.loop.isOnLoop {
      work()
    } else {
      exchange.loop.execute(work)
    }
  }

  /// Answers with JSON. `cacheControl` says who may keep the answer, where that is not left to the client.
  func sendJSON(_ body: [UInt8], status: Int = 200, etag: String? = nil, cacheControl: String? = nil) {
    exchange.respond(
      status: status,
      headers: { headers in
        writeHeaders(&headers, etag: etag)
        if let cacheControl { headers.add("Cache-Control", cacheControl) }
      },
      body: { $0.append(contentsOf: body) })
  }

  /// Streams JSON.
  func streamJSON(from source: any BodySource) {
    exchange.stream(status: 200, headers: { writeHeaders(&$0, etag: nil) }, from: source)
  }

  /// Streams a feed, which nobody on the way is to keep or to hold back.
  func stream(_ format: FeedFormat, from source: any BodySource) {
    exchange.stream(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", format.contentType)
        headers.add("X-Content-Type-Options", "nosniff")
        headers.add("Cache-Control", "no-store, no-transform")
        headers.add("X-Accel-Buffering", "no")
        writeOrigin(&headers)
      }, from: source)
  }

  /// Answers that the client's copy is still good.
  func sendNotModified(etag: String) {
    exchange.respond(status: 304, headers: { writeHeaders(&$0, etag: etag) }, body: { _ in })
  }

  /// Answers with an error; on calls that stream, the object stands in an array (firestore-api.md, section 1.3).
  func sendError(_ status: Status, inArray: Bool = false) {
    let httpStatus = ErrorJSON.httpStatus(status.code)
    exchange.tell(status)
    var body = ErrorJSON.encode(status, httpStatus: httpStatus)
    if inArray { body = [UInt8(ascii: "[")] + body + [UInt8(ascii: "]")] }
    sendJSON(body, status: httpStatus)
  }

  /// Answers that the body is longer than the database takes, as the transport does for bodies that are longer still.
  func sendTooLarge(bytesMax: Int) {
    sendJSON(
      HTTPGateway.errorBody(httpStatus: 413, message: "The request's body is larger than \(bytesMax) bytes."), status: 413)
  }

  /// Answers with plain text.
  func sendText(_ status: Int, _ text: StaticString) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", "text/plain; charset=utf-8")
        writeOrigin(&headers)
      },
      body: { $0.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) })
  }

  /// Answers with a web page.
  func sendPage(_ body: [UInt8]) {
    exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", "text/html; charset=utf-8")
        writeOrigin(&headers)
      },
      body: { $0.append(contentsOf: body) })
  }

  /// Sends the client on to another address, which holds no line breaks.
  func sendRedirect(to location: String, status: Int) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Location", location)
        headers.add("Cache-Control", "no-store")
        writeOrigin(&headers)
      },
      body: { _ in })
  }

  /// Answers a browser that asks what it may send.
  func sendPreflight(_ request: borrowing HTTPRequest) {
    let wanted = request.header("access-control-request-headers").map { String(decoding: $0, as: UTF8.self) }
    let isPrivate = request.header("access-control-request-private-network")?.elementsEqual("true".utf8) ?? false
    exchange.respond(
      status: 200,
      headers: { headers in
        writeOrigin(&headers)
        if let wanted { headers.add("Access-Control-Allow-Headers", wanted) }
        // A public page that calls an address of its own network.
        if isPrivate { headers.add("Access-Control-Allow-Private-Network", "true") }
        headers.add("Access-Control-Max-Age", "3600")
      },
      body: { _ in })
  }

  private func writeHeaders(_ headers: inout HeaderWriter, etag: String?) {
    headers.add("Content-Type", "application/json; charset=UTF-8")
    headers.add("X-Content-Type-Options", "nosniff")
    if let etag {
      headers.add("ETag", etag)
      headers.add("Cache-Control", "private, no-cache")
    }
    writeOrigin(&headers)
  }

  /// Says whether a page of another origin may read the answer.
  func writeOrigin(_ headers: inout HeaderWriter) {
    guard let origin else { return }
    headers.add("Access-Control-Allow-Origin", origin)
    headers.add("Access-Control-Allow-Credentials", "true")
    headers.add("Access-Control-Allow-Methods", "DELETE,GET,HEAD,PATCH,POST,PUT")
    headers.add("Access-Control-Expose-Headers", exposedHeaders)
    headers.add("Vary", "Origin")
  }
}
