/// Answers requests.
package protocol RequestHandler: AnyObject, Sendable {
  /// Called on the loop's thread with a whole request. Must reply through `exchange`, now or later, on the same loop.
  /// The request's bytes are gone when the call returns.
  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange)

  /// Called on the loop's thread with the head of a request before its body: the place to choose to take the body piece
  /// by piece, of whatever length, and to reply before it is whole. Requests by HTTP/1 that have no body do not pass
  /// here, and a reply before the end of a body closes an HTTP/1 connection.
  ///
  /// - Returns: what takes the body; or `nil`, and `handle` is called with the whole request, unless `exchange` was
  ///   used to reply already: then the body is thrown away.
  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)?
}

extension RequestHandler {
  /// Takes every request whole.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? { nil }
}

/// The protocol's side of an exchange: HTTP/1 has one reply at a time, other protocols have many.
protocol ResponseSink: AnyObject {
  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) -> Void)
  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) -> Void,
    trailers: (inout HeaderWriter) -> Void)
  func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int?, from source: any BodySource)
  func resume()
  func pauseBody()
  func resumeBody()
}

/// The reply side of one request. Belongs to its loop's thread; from any other, `exchange.loop.execute { … }`.
package final class Exchange: @unchecked Sendable {
  // Sendable: `loop` never changes; all else is touched on the loop's thread only, which `requireLoop` checks in
  // debug builds.

  /// About how much a `BodySource` should append at a time.
  package static let sliceBytes = 32 * 1024

  private enum State { case awaitingResponse, streaming, answered, closed }

  /// The loop the connection lives on.
  package let loop: EventLoop
  private let resources: any LoopResources
  private var state = State.awaitingResponse
  private var sink: (any ResponseSink)?
  /// What the request is counted as, from 1 below `TransportCounts.kinds`; 0 is what no handler claimed.
  package var kind = 0
  /// The status that the request is counted with, where the reply's own says nothing, as gRPC's does.
  package var countedStatus: Int?
  private var method = HTTPMethod.other
  private var begunMicroseconds = 0
  /// What the log is to say, where it is this request's turn.
  private var record: RequestRecord?
  /// The beginning of the target, for failures; kept where these are told.
  private var targetStart: [UInt8] = []
  private var isFailureLogged = false
  private var closeActions: [() -> Void] = []
  private var shutdownActions: [() -> Void] = []

  init(_ resources: any LoopResources) {
    self.resources = resources
    loop = resources.loop
  }

  /// Whether the client went away; replies are then ignored.
  package var isClosed: Bool { state == .closed }

  /// Whether nothing was replied yet, and there is somebody to reply to.
  package var isAwaitingResponse: Bool { state == .awaitingResponse }

  /// Whether there is nothing left to reply, or nobody to reply to.
  var isComplete: Bool { state == .answered || state == .closed }

  /// Calls `action` once if the client goes away before the reply is complete: tells long work to stop. Called at once
  /// when it is gone already, and never after the reply is complete.
  package func onClose(_ action: @escaping () -> Void) {
    requireLoop()
    switch state {
    case .awaitingResponse, .streaming: closeActions.append(action)
    case .closed: action()
    case .answered: break
    }
  }

  /// Calls `action` once when the server is told to stop before the reply is complete. A reply without an end of its
  /// own should finish then; what has not finished within the server's grace is cut.
  package func onShutdown(_ action: @escaping () -> Void) {
    requireLoop()
    if state == .awaitingResponse || state == .streaming { shutdownActions.append(action) }
  }

  /// Sends a whole reply. `body` appends to the connection's own output, which may hold bytes already: it must touch
  /// nothing before the place where it starts. `HEAD`, 204 and 304 send no body.
  ///
  /// - Parameter compressible: lets a body of 1 KiB or more be sent with gzip, if the client takes it.
  package func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool = true, body: (inout [UInt8]) -> Void
  ) {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "one request, one reply")
      return
    }
    complete()
    count(status)
    sink.respond(status: status, headers: headers, compressible: compressible, body: body)
  }

  /// Sends a whole reply with fields after its body. Only HTTP/2 has them, HTTP/1 leaves them out; `body` as above.
  /// A reply without a body is its trailers alone if it puts them into `headers` and uses the call above.
  package func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "one request, one reply")
      return
    }
    complete()
    count(status)
    sink.respond(status: status, headers: headers, body: body, trailers: trailers)
  }

  /// Sends a reply in slices. `source` is asked for them only while the client takes them; a ``FileBody`` over plain
  /// HTTP/1 is sent by the kernel.
  ///
  /// - Parameter contentLength: how many bytes the source will give in all, where that is known.
  package func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int? = nil, from source: any BodySource
  ) {
    requireLoop()
    guard state == .awaitingResponse, let sink else {
      assert(state == .closed, "one request, one reply")
      return
    }
    state = .streaming
    count(status)
    sink.stream(status: status, headers: headers, contentLength: contentLength, from: source)
  }

  /// Asks a source that said `.waiting` again. Harmless at any other time.
  package func resume() {
    requireLoop()
    if state == .streaming { sink?.resume() }
  }

  /// Lets the client send no more of a body that a `BodySink` takes than it may have sent already: by HTTP/2 up to
  /// `HTTP2Limits.streamWindowBytes` may still come. Harmless at any other time.
  package func pauseBody() {
    requireLoop()
    sink?.pauseBody()
  }

  /// Lets the client send on.
  package func resumeBody() {
    requireLoop()
    sink?.resumeBody()
  }

  /// Takes bytes of the loop's budget for requests that are half received; `false` where it has none left. For what a
  /// `BodySink` keeps until more has come; `release` gives them back.
  package func reserve(_ bytes: Int) -> Bool {
    requireLoop()
    return resources.pool.reserve(bytes)
  }

  /// Gives back what `reserve` took.
  package func release(_ bytes: Int) {
    requireLoop()
    resources.pool.release(bytes)
  }

  /// Returns the gzip form of `bytes`, or `nil` when that is not smaller. Uses the loop's one compressor.
  package func compress(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
    requireLoop()
    return resources.compressor.compress(bytes)
  }

  /// Returns what gzip members hold. Uses the loop's one decompressor.
  ///
  /// - Throws: `.malformed` for anything but whole gzip members, `.tooLarge` beyond `bytesMax` decoded bytes.
  package func decompress(_ bytes: UnsafeRawBufferPointer, bytesMax: Int) throws(GzipError) -> [UInt8] {
    requireLoop()
    var decoded = try resources.decompressor.decompress(bytes, bodyBytesMax: bytesMax)
    decoded.removeLast(InputBuffer.paddingBytes)
    return decoded
  }

  /// Makes the exchange ready for a request; also again, once nobody but the connection holds it.
  func begin(_ sink: any ResponseSink, _ method: HTTPMethod) {
    state = .awaitingResponse
    self.sink = sink
    self.method = method
    kind = 0
    countedStatus = nil
    isFailureLogged = false
    begunMicroseconds = EventLoop.microseconds()
  }

  /// Keeps what the log says of the request if it fails.
  func keepTarget(_ target: UnsafeRawBufferPointer) {
    guard resources.failureLog != nil else { return }
    targetStart.removeAll(keepingCapacity: true)
    targetStart.append(contentsOf: target.prefix(RequestRecord.pathBytesMax))
  }

  /// Tells the log, once for a request, that it fails for a fault of the server's, and what that is. Clients are told
  /// by the reply, which may say less.
  package func tellFailure(_ message: String, status: Int = 500) {
    requireLoop()
    guard !isFailureLogged, let log = resources.failureLog else { return }
    isFailureLogged = true
    log(FailedRequest(method: method, path: RequestRecord.path(targetStart), status: status, message: message))
  }

  /// Keeps what the log says of the request.
  func logRequest(_ target: UnsafeRawBufferPointer, from socket: Int32) {
    record = RequestRecord(
      kind: 0, method: method, path: RequestRecord.path(target), status: 0, microseconds: 0,
      client: SocketAddress.peer(of: socket)?.host ?? "")
  }

  /// Counts the request, and tells the log.
  private func count(_ status: Int) {
    // Whatever answers so, and gave no reason. Replies of gRPC, which have 200 here, tell their own.
    if status == 500 { tellFailure("no reason was given") }
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

  /// The reply has been handed over whole.
  func complete() {
    state = .answered
    sink = nil
    forgetActions()
  }

  /// The client went away first.
  func close() {
    guard state == .awaitingResponse || state == .streaming else { return }
    let actions = closeActions
    if state == .awaitingResponse { count(0) }
    state = .closed
    sink = nil
    forgetActions()
    for action in actions { action() }
  }

  /// The server is about to stop.
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
    assert(loop.isOnLoop, "an exchange belongs to its loop's thread")
  }
}
