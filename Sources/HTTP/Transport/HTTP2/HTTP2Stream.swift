import CNGHTTP2

/// One request and its reply among the many of an HTTP/2 connection. This file takes the request; what is sent is in
/// `HTTP2Stream+Reply.swift`.
final class HTTP2Stream: ResponseSink {
  /// How far the request has come.
  enum Phase {
    /// Its fields are arriving.
    case head
    /// Its body is gathered to be handed over whole.
    case gathering
    /// Its body is handed on piece by piece.
    case passing(any BodySink)
    /// It was refused or answered early: what still comes is thrown away.
    case discarding
    /// It is whole.
    case whole
  }

  let id: Int32
  /// Its place among the connection's streams.
  var index = 0
  /// When the client last sent or took part of it, on the loop's clock.
  var progressMilliseconds: Int
  private(set) var phase = Phase.head
  private(set) var isClosed = false
  private(set) var head = HTTP2RequestHead()
  /// What the head takes of the loop's budget.
  private var headBytesCharged = 0

  unowned let multiplexer: HTTP2Multiplexer
  let exchange: Exchange
  private var body = HTTP2RequestBody()
  private var isBodyPaused = false
  /// Bytes taken that the client was not told of, as its body is paused.
  private var withheldBytes = 0

  // What the reply needs to know; used in `HTTP2Stream+Reply.swift`.
  var reply = HTTP2Response()

  init(id: Int32, _ multiplexer: HTTP2Multiplexer) {
    self.id = id
    self.multiplexer = multiplexer
    progressMilliseconds = multiplexer.server.loop.nowMilliseconds
    exchange = Exchange(multiplexer.server)
  }

  /// Whether the reply needs nothing more from the client, nor from elsewhere.
  var canFinishAlone: Bool {
    if case .whole = phase { !reply.isWaiting } else { false }
  }

  // MARK: - What the multiplexer reports

  /// A field has arrived.
  func received(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    head.add(name: name, value: value, multiplexer.server.configuration)
    let missing = head.bytes.count - HTTP2Limits.headBytesFree - headBytesCharged
    guard missing > 0 else { return }
    let bytes = max(missing, HTTP2Limits.headBytesFree)
    if multiplexer.server.pool.reserve(bytes) { headBytesCharged += bytes } else { head.refuse(.noMemory) }
  }

  /// All fields have arrived.
  func headEnded() {
    head.complete()
    exchange.begin(self, head.method)
    head.bytes.withUnsafeBytes { bytes in
      let target = UnsafeRawBufferPointer(rebasing: bytes[head.target])
      exchange.keepTarget(target)
      if multiplexer.server.isLogTurn() { exchange.logRequest(target, from: multiplexer.socket) }
    }
    if let refusal = head.refusal { return refuse(refusal) }
    let handler = multiplexer.server.handler
    let nothing = UnsafeRawBufferPointer(start: multiplexer.server.padding, count: 0)
    let sink = withRequest(body: nothing) { handler.openBody(of: $0, exchange) }
    if multiplexer.server.isDraining { exchange.announceShutdown() }
    if isClosed { return }
    if let sink {
      forgetRequest()
      phase = .passing(sink)
    } else {
      phase = exchange.isAwaitingResponse ? .gathering : .discarding
    }
  }

  /// Part of the body has arrived.
  func received(_ bytes: UnsafeRawBufferPointer) {
    progressMilliseconds = multiplexer.server.loop.nowMilliseconds
    switch phase {
    case .gathering:
      let configuration = multiplexer.server.configuration
      if body.count + bytes.count > configuration.bodyBytesMax {
        refuse(.bodyTooLarge)
      } else if !body.append(bytes, pool: multiplexer.server.pool) {
        refuse(.noMemory)
      }
    case .passing(let sink):
      if !exchange.isComplete { sink.received(bytes) }
    case .head, .discarding, .whole:
      break
    }
    if isBodyPaused && !isClosed {
      withheldBytes += bytes.count
      multiplexer.consume(bytes.count, of: nil)
    } else {
      multiplexer.consume(bytes.count, of: self)
    }
  }

  /// The client has sent all of the request.
  func requestEnded() {
    let ended = phase
    phase = .whole
    switch ended {
    case .gathering: multiplexer.begin(self)
    case .passing(let sink): if !exchange.isComplete { sink.ended() }
    case .head, .discarding, .whole: break
    }
  }

  /// Gives the whole request to the handler.
  func dispatch() {
    guard !isClosed else { return }
    let gathered = body.bytes(padding: multiplexer.server.padding)
    if head.coding == .gzip {
      do throws(GzipError) {
        let limit = multiplexer.server.configuration.bodyBytesMax
        let decoded = try multiplexer.server.decompressor.decompress(gathered, bodyBytesMax: limit)
        body.release(to: multiplexer.server.pool)
        decoded.withUnsafeBytes { handle(UnsafeRawBufferPointer(rebasing: $0.dropLast(InputBuffer.paddingBytes))) }
      } catch {
        refuse(Refusal(error))
      }
    } else {
      handle(gathered)
    }
    forgetRequest()
  }

  /// The stream is over, well or not.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    phase = .discarding
    forgetRequest()
    forgetResponse()
    exchange.close()
  }

  /// Answers in the handler's stead.
  func refuse(_ refusal: Refusal) {
    if case .whole = phase {} else { phase = .discarding }
    let isGRPC = head.isGRPC
    forgetRequest()
    exchange.refuse(refusal, isGRPC: isGRPC, multiplexer.server.configuration)
  }

  private func forgetRequest() {
    head.forget()
    body.release(to: multiplexer.server.pool)
    multiplexer.server.pool.release(headBytesCharged)
    headBytesCharged = 0
  }

  private func handle(_ body: UnsafeRawBufferPointer) {
    let handler = multiplexer.server.handler
    withRequest(body: body) { handler.handle($0, exchange) }
  }

  private func withRequest<Result>(
    body: UnsafeRawBufferPointer, _ use: (borrowing HTTPRequest) -> Result
  ) -> Result {
    // The handler may reply, and a reply forgets nothing of the request until the call returns.
    let head = head
    return head.bytes.withUnsafeBytes { bytes in
      head.fields.withUnsafeBufferPointer { fields in
        use(
          HTTPRequest(
            version: .http2, method: head.method, target: UnsafeRawBufferPointer(rebasing: bytes[head.target]),
            body: body, message: bytes.baseAddress ?? multiplexer.server.padding, fields: fields,
            socket: multiplexer.socket))
      }
    }
  }

  // MARK: - What the exchange asks for

  func pauseBody() {
    isBodyPaused = true
  }

  func resumeBody() {
    isBodyPaused = false
    let bytes = withheldBytes
    withheldBytes = 0
    if bytes > 0 && !isClosed { multiplexer.widen(self, by: bytes) }
  }
}
