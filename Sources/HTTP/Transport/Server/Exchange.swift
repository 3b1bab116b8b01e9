/// A handler of HTTP requests.
package protocol RequestHandler: AnyObject, Sendable {
  /// Handles a complete request. Called on the loop's thread. The handler must respond through `exchange`, now or
  /// later, on the same loop. The request's bytes are valid only during the call.
  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange)

  /// Called on the loop's thread with the head of a request, before its body. Here a handler can choose to receive
  /// the body piece by piece, of any length, or respond before the body is complete. HTTP/1 requests without a body
  /// go directly to `handle`. A response before the end of a body closes an HTTP/1 connection.
  ///
  /// - Returns: the sink that receives the body, or `nil` to have `handle` called with the complete request. If the
  ///   handler has already responded through `exchange`, `nil` discards the body.
  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)?
}

extension RequestHandler {
  /// Returns `nil`: every request goes to `handle` with its complete body.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? { nil }
}

/// The protocol's side of exchanges. An HTTP/1 session has one response at a time, other protocols have many.
protocol ResponseSink: AnyObject {
  // Both call `body` once, unless the status allows none. If it throws, nothing was sent.
  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) throws -> Void
  ) rethrows
  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) throws -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) rethrows
  func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int?, from source: any BodySource)
  func resume()
  /// Whether the client takes its responses fast enough for another one.
  var hasRoom: Bool { get }
  /// Runs `work` now or when there is room.
  func whenRoom(_ work: @escaping () -> Void)
  func pauseBody()
  func resumeBody()
}

extension ResponseSink {
  /// A sink with one response at a time has room for it.
  var hasRoom: Bool { true }

  func whenRoom(_ work: @escaping () -> Void) { work() }
}

/// The response side of one request. Belongs to its loop's thread. From another thread, use `exchange.loop.execute {
/// … }`.
package final class Exchange: @unchecked Sendable {
  // Sendable: `loop` never changes. All else is used on the loop's thread only, which `requireLoop` checks in debug
  // builds.

  /// About how many bytes a `BodySource` should append at a time.
  package static let sliceBytes = 32 * 1024

  private enum State { case awaitingResponse, streaming, answered, closed }

  /// The event loop of the connection.
  package let loop: EventLoop
  private let resources: any LoopResources
  private var state = State.awaitingResponse
  private var sink: (any ResponseSink)?
  /// The kind under which the request is counted, from 1 up to but excluding `TransportCounts.kinds`. Requests that
  /// no handler classified have kind 0.
  package var kind = 0
  /// The route of the request. The handler sets it when it first sees the request, in `openBody` or in `handle`.
  package var match = RouteMatch()
  /// The handler of the request, if the server's own handler only chooses one. The exchange retains it until the
  /// response is complete.
  package var chosen: (any RequestHandler)?
  /// The status to count if the response's own says nothing about success, as in gRPC.
  package var countedStatus: Int?
  private var method = HTTPMethod.other
  private(set) var begunMicroseconds = 0
  /// The log record, if this request is to be logged.
  private var record: RequestRecord?
  /// The start of the target, for the failure log. Kept only if failures are logged.
  private var targetStart: [UInt8] = []
  private var isFailureLogged = false
  private var closeActions: [() -> Void] = []
  private var shutdownActions: [() -> Void] = []

  init(_ resources: any LoopResources) {
    self.resources = resources
    loop = resources.loop
  }

  /// Whether the client has disconnected. Responses are then ignored.
  package var isClosed: Bool { state == .closed }

  /// Whether no response has begun and the client is still connected.
  package var isAwaitingResponse: Bool { state == .awaitingResponse }

  /// Whether the response is complete or the client has disconnected.
  var isComplete: Bool { state == .answered || state == .closed }

  /// Calls `action` once if the client disconnects before the response is complete, so that long work can stop. If
  /// the client has already disconnected, calls it immediately. Never calls it after the response is complete.
  package func onClose(_ action: @escaping () -> Void) {
    requireLoop()
    switch state {
    case .awaitingResponse, .streaming: closeActions.append(action)
    case .closed: action()
    case .answered: break
    }
  }

  /// Calls `action` once if the server begins to stop before the response is complete. An endless response should
  /// finish then. The server cuts responses that do not finish within its grace period.
  package func onShutdown(_ action: @escaping () -> Void) {
    requireLoop()
    if state == .awaitingResponse || state == .streaming { shutdownActions.append(action) }
  }

  /// Sends a complete response. `body` appends to the connection's own output, which may already hold other bytes,
  /// and must not change those. Responses to `HEAD` and responses with status 204 or 304 have no body. If `body`
  /// throws, nothing is sent, and the request still needs a response.
  ///
  /// - Parameter compressible: whether a body of 1 KiB or more may be sent with gzip if the client accepts it.
  package func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool = true,
    body: (inout [UInt8]) throws -> Void
  ) rethrows {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "a request gets only one response")
      return
    }
    if !Self.hasBody(status) { complete(status) }
    try sink.respond(
      status: status, headers: headers, compressible: compressible,
      body: { out in
        try body(&out)
        complete(status)
      })
  }

  /// Sends a complete response with fields after its body. HTTP/1 leaves these trailers out. `body` works as above.
  /// To send a gRPC error, which has no body, put the trailers into `headers` and call the method above. Rethrows the
  /// error of `body`, after which another response can be sent.
  package func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) throws -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) rethrows {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "a request gets only one response")
      return
    }
    if !Self.hasBody(status) { complete(status) }
    try sink.respond(
      status: status, headers: headers,
      body: { out in
        try body(&out)
        complete(status)
      }, trailers: trailers)
  }

  /// Whether a response with a status has a body, even an empty one.
  static func hasBody(_ status: Int) -> Bool { status >= 200 && status != 204 && status != 304 }

  private func complete(_ status: Int) {
    complete()
    count(status)
  }

  /// Sends a response in slices. `source` is asked for a slice only while the client takes them. Over plain HTTP/1
  /// the kernel sends a ``FileBody``.
  ///
  /// - Parameter contentLength: the total number of bytes from the source, if it is known.
  package func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int? = nil, from source: any BodySource
  ) {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "a request gets only one response")
      return
    }
    state = .streaming
    count(status)
    sink.stream(status: status, headers: headers, contentLength: contentLength, from: source)
  }

  /// Asks a source that returned `.waiting` again. Harmless at any other time.
  package func resume() {
    requireLoop()
    if state == .streaming { sink?.resume() }
  }

  /// A closure that calls ``resume()`` on the loop's thread. It may be called on any thread.
  package var wake: @Sendable () -> Void {
    { [self] in
      if loop.isOnLoop { resume() } else { loop.execute { self.resume() } }
    }
  }

  /// Stops granting the client room for more of a body that a `BodySink` receives. Over HTTP/2, up to
  /// `HTTP2Limits.streamWindowBytes` granted before may still arrive. Harmless at any other time.
  package func pauseBody() {
    requireLoop()
    sink?.pauseBody()
  }

  /// Lets the client continue to send the body.
  package func resumeBody() {
    requireLoop()
    sink?.resumeBody()
  }

  /// Takes bytes from the loop's budget for partly received requests, for data that a `BodySink` keeps until more
  /// arrives. Returns `false` if the budget is exhausted. Return the bytes with `release`.
  package func reserve(_ bytes: Int) -> Bool {
    requireLoop()
    return resources.pool.reserve(bytes)
  }

  /// Gives the bytes that `reserve` took back to the budget.
  package func release(_ bytes: Int) {
    requireLoop()
    resources.pool.release(bytes)
  }

  /// Starts the production of a response that may be long: now, or after other work of the loop had its turn and the
  /// client has taken earlier responses. So requests that cost little do not wait behind it. Does nothing if the client
  /// disconnects or the request gets another response first.
  package func produce(_ work: @escaping () -> Void) {
    requireLoop()
    guard state == .awaitingResponse, let sink else { return }
    if loop.isCalm && sink.hasRoom { return work() }
    loop.atNextTurn { [self] in
      guard state == .awaitingResponse else { return }
      self.sink?.whenRoom { [self] in if state == .awaitingResponse { work() } }
    }
  }

  /// Starts the production of a response that is kept in memory until it is complete. The loop produces a few at a
  /// time; the others wait. `start` runs now or later on the loop. Call ``endWhole()`` once after it, in any case.
  package func beginWhole(_ start: @escaping () -> Void) {
    requireLoop()
    if loop.isCalm { return resources.wholeResponses.begin(start) }
    loop.atNextTurn { [resources] in resources.wholeResponses.begin(start) }
  }

  /// Ends what ``beginWhole(_:)`` started.
  package func endWhole() {
    requireLoop()
    if let next = resources.wholeResponses.end() { loop.atNextTurn(next) }
  }

  /// Returns the gzip form of `bytes`, or `nil` if that is not smaller. Uses the loop's one compressor.
  package func compress(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
    requireLoop()
    return resources.compressor.compress(bytes)
  }

  /// Returns the content of gzip members. Uses the loop's one decompressor.
  ///
  /// - Throws: ``GzipError/malformed`` if the bytes are not complete gzip members, ``GzipError/tooLarge`` if they
  ///   hold more than `bytesMax` bytes.
  package func decompress(_ bytes: UnsafeRawBufferPointer, bytesMax: Int) throws(GzipError) -> [UInt8] {
    requireLoop()
    var decoded = try resources.decompressor.decompress(bytes, bodyBytesMax: bytesMax)
    decoded.removeLast(InputBuffer.paddingBytes)
    return decoded
  }

  /// Prepares the exchange for a request. A connection reuses its exchange if nothing else holds it.
  func begin(_ sink: any ResponseSink, _ method: HTTPMethod) {
    state = .awaitingResponse
    self.sink = sink
    self.method = method
    kind = 0
    match = RouteMatch()
    chosen = nil
    countedStatus = nil
    isFailureLogged = false
    begunMicroseconds = EventLoop.microseconds()
  }

  /// Keeps the part of the target that the failure log reports.
  func keepTarget(_ target: UnsafeRawBufferPointer) {
    guard resources.failureLog != nil else { return }
    targetStart.removeAll(keepingCapacity: true)
    targetStart.append(raw: UnsafeRawBufferPointer(rebasing: target.prefix(RequestRecord.pathBytesMax)))
  }

  /// Reports to the log, once per request, a failure of the server itself and its cause. Clients see only the
  /// response, which may say less.
  package func logFailure(_ message: String, status: Int = 500) {
    requireLoop()
    guard !isFailureLogged, let log = resources.failureLog else { return }
    isFailureLogged = true
    log(FailedRequest(method: method, path: RequestRecord.path(targetStart), status: status, message: message))
  }

  /// Keeps the request's details for the log.
  func logRequest(_ target: UnsafeRawBufferPointer, from socket: Int32, _ client: RelayedClient? = nil) {
    record = RequestRecord(
      kind: 0, method: method, path: RequestRecord.path(target), status: 0, microseconds: 0,
      client: client?.address ?? SocketAddress.peer(of: socket)?.host ?? "")
  }

  /// Counts the request and writes its log record.
  private func count(_ status: Int) {
    // A handler responded with 500 and gave no reason. gRPC responses have status 200 here and log their own reason.
    if status == 500 { logFailure("the handler responded with status 500 and gave no reason") }
    let status = countedStatus ?? status
    let microseconds = EventLoop.microseconds() - begunMicroseconds
    resources.counters.countRequest(kind: kind, method: method, status: status, microseconds: microseconds)
    guard var record else { return }
    self.record = nil
    record.kind = kind
    record.status = status
    record.microseconds = microseconds
    resources.requestLog?.write(record)
  }

  /// Called when the complete response has been passed to the protocol.
  func complete() {
    state = .answered
    sink = nil
    chosen = nil
    forgetActions()
  }

  /// Called when the client disconnects first.
  func close() {
    guard state == .awaitingResponse || state == .streaming else { return }
    let actions = closeActions
    if state == .awaitingResponse { count(0) }
    state = .closed
    sink = nil
    chosen = nil
    forgetActions()
    for action in actions { action() }
  }

  /// Called when the server is about to stop.
  func announceShutdown() {
    let actions = shutdownActions
    shutdownActions = []
    for action in actions { action() }
  }

  private func forgetActions() {
    if !closeActions.isEmpty { closeActions = [] }
    if !shutdownActions.isEmpty { shutdownActions = [] }
  }

  @inline(__always)
  private func requireLoop() {
    assert(loop.isOnLoop, "an exchange must be used on its loop's thread")
  }
}
