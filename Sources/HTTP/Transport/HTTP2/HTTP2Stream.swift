import CNGHTTP2

/// One request and its response among the streams of an HTTP/2 connection. This file receives the request.
/// `HTTP2Stream+Response.swift` sends the response.
final class HTTP2Stream: ResponseSink {
  /// The progress of the request.
  enum Phase {
    /// Its fields are arriving.
    case head
    /// Its body is collected, to be passed to the handler as a whole.
    case gathering
    /// A sink receives its body piece by piece.
    case passing(any BodySink)
    /// The server rejected it or responded early. Further input is discarded.
    case discarding
    /// It is complete.
    case whole
  }

  let id: Int32
  /// The position in the connection's list of streams.
  var index = 0
  /// The time on the loop's clock at which the client last sent or took part of it.
  var progressMilliseconds: Int
  private(set) var phase = Phase.head
  private(set) var isClosed = false
  private(set) var head = HTTP2RequestHead()
  /// The bytes of the head that are charged to the loop's budget.
  private var headBytesCharged = 0

  unowned let multiplexer: HTTP2Multiplexer
  let exchange: Exchange
  private var body = HTTP2RequestBody()
  private var isBodyPaused = false
  /// The bytes taken but not granted to the client again, because the body is paused.
  private var withheldBytes = 0

  /// The production of the response, while it waits for the client to take others.
  private var production: (() -> Void)?

  // The state of the response, used in `HTTP2Stream+Response.swift`.
  var reply = HTTP2Response()

  init(id: Int32, _ multiplexer: HTTP2Multiplexer) {
    self.id = id
    self.multiplexer = multiplexer
    progressMilliseconds = multiplexer.server.loop.nowMilliseconds
    exchange = Exchange(multiplexer.server)
  }

  /// Whether the response needs no further input from the client or from elsewhere.
  var canFinishAlone: Bool {
    if case .whole = phase { !reply.isWaiting } else { false }
  }

  /// Whether the request is a health check.
  var isUrgent: Bool {
    head.bytes.withUnsafeBytes { $0[head.target].elementsEqual(multiplexer.server.configuration.urgentTarget) }
  }

  // MARK: - Events of the multiplexer

  /// Called for each field.
  func received(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    head.add(name: name, value: value, multiplexer.server.configuration)
    let missing = head.bytes.count - HTTP2Limits.headBytesFree - headBytesCharged
    guard missing > 0 else { return }
    let bytes = max(missing, HTTP2Limits.headBytesFree)
    if multiplexer.server.pool.reserve(bytes) { headBytesCharged += bytes } else { head.refuse(.noMemory) }
  }

  /// Called when all fields have arrived.
  func headEnded() {
    head.complete()
    if multiplexer.server.isOfPeers { head.openEnvelope() }
    exchange.begin(self, head.method)
    head.bytes.withUnsafeBytes { bytes in
      let target = UnsafeRawBufferPointer(rebasing: bytes[head.target])
      exchange.keepTarget(target)
      if multiplexer.server.isLogTurn() { exchange.logRequest(target, from: multiplexer.socket, head.client) }
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

  /// Called for each part of the body.
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

  /// Called when the client has sent the complete request.
  func requestEnded() {
    let ended = phase
    phase = .whole
    switch ended {
    case .gathering: multiplexer.begin(self)
    case .passing(let sink): if !exchange.isComplete { sink.ended() }
    case .head, .discarding, .whole: break
    }
  }

  /// Passes the complete request to the handler.
  func dispatch() {
    guard !isClosed else { return }
    if let work = production {
      production = nil
      return work()
    }
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

  /// Called when the stream ends, successfully or not.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    phase = .discarding
    production = nil
    forgetRequest()
    forgetResponse()
    exchange.close()
  }

  /// Sends a refusal without calling the handler.
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
    // The handler may respond during the call, but the request's memory is freed only after it.
    let head = head
    return head.bytes.withUnsafeBytes { bytes in
      head.fields.withUnsafeBufferPointer { fields in
        use(
          HTTPRequest(
            version: head.client?.version ?? .http2, method: head.method,
            target: UnsafeRawBufferPointer(rebasing: bytes[head.target]), body: body,
            message: bytes.baseAddress ?? multiplexer.server.padding, fields: fields, socket: multiplexer.socket,
            isFromAdminSocket: head.client?.isFromAdminSocket ?? multiplexer.isFromAdminSocket,
            isFromProxy: head.client?.isFromProxy ?? multiplexer.isFromProxy, client: head.client))
      }
    }
  }

  // MARK: - Requests of the exchange

  var hasRoom: Bool { !multiplexer.isFull }

  func whenRoom(_ work: @escaping () -> Void) {
    if hasRoom { return work() }
    production = work
    multiplexer.awaitRoomToBegin(self)
  }

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
