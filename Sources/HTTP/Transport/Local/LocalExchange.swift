/// One in-process request and its response. Belongs to its loop's thread.
///
/// The response is produced only as fast as the caller takes it: a body source is asked for a slice only while the
/// caller waits for one.
final class LocalExchange: ResponseSink {
  /// The most bytes passed to a `BodySink` in one call.
  private static let passedBytesMax = 64 << 10

  private let exchange: Exchange
  private let message: LocalMessage
  private let method: HTTPMethod
  private let limits: TransportConfiguration
  private let onEnd: () -> Void
  private var onHead: ((LocalResponseHead?) -> Void)?

  // The request's body, if a `BodySink` takes it piece by piece.
  private var sink: (any BodySink)?
  private var passedBytes = 0
  private var isBodyPaused = false
  private var isPassing = false

  // The response's body.
  private var pending: [UInt8] = []
  private var source: (any BodySource)?
  private var trailers: [UInt8] = []
  private var taker: ((LocalPiece) -> Void)?
  private var isWaiting = false
  private var isPulling = false
  private var isCut = false

  init(
    _ request: LocalRequest, _ resources: any LoopResources, _ limits: TransportConfiguration,
    _ onHead: @escaping (LocalResponseHead?) -> Void, onEnd: @escaping () -> Void
  ) {
    exchange = Exchange(resources)
    message = LocalMessage(request)
    method = request.method
    self.limits = limits
    self.onHead = onHead
    self.onEnd = onEnd
  }

  // MARK: - The request

  /// Passes the request to the handler.
  func start(_ handler: any RequestHandler) {
    exchange.begin(self, method)
    guard message.targetBytes <= limits.targetBytesMax, message.targetBytes > 0 else { return refuse(.headTooLarge) }
    let sink = message.withRequest(hasBody: false) { handler.openBody(of: $0, exchange) }
    if let sink {
      self.sink = sink
      passBody()
    } else if exchange.isAwaitingResponse {
      guard message.bodyCount <= limits.bodyBytesMax else { return refuse(.bodyTooLarge) }
      message.withRequest(hasBody: true) { handler.handle($0, exchange) }
    }
  }

  private func refuse(_ refusal: Refusal) { exchange.refuse(refusal, isGRPC: false, limits) }

  private func passBody() {
    guard !isPassing else { return }
    isPassing = true
    defer { isPassing = false }
    while let sink, !isBodyPaused, !exchange.isComplete {
      guard passedBytes < message.bodyCount else {
        self.sink = nil
        return sink.ended()
      }
      message.withBody(from: passedBytes, countMax: Self.passedBytesMax) { bytes in
        passedBytes += bytes.count
        sink.received(bytes)
      }
    }
  }

  func pauseBody() { isBodyPaused = true }

  func resumeBody() {
    isBodyPaused = false
    passBody()
  }

  // MARK: - The response

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) throws -> Void
  ) rethrows {
    try respond(status: status, headers: headers, body: body, trailers: { _ in })
  }

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) throws -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) rethrows {
    if Exchange.hasBody(status) {
      var made: [UInt8] = []
      try body(&made)
      if method != .head { pending = made }
    }
    self.trailers = Self.lines(trailers)
    begin(status, headers)
    finish()
  }

  func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int?, from source: any BodySource
  ) {
    guard hasBody(status) else {
      exchange.complete()
      begin(status, headers)
      return finish()
    }
    self.source = source
    begin(status, headers)
  }

  func resume() {
    isWaiting = false
    pull()
  }

  private func hasBody(_ status: Int) -> Bool { Exchange.hasBody(status) && method != .head }

  private func begin(_ status: Int, _ headers: (inout HeaderWriter) -> Void) {
    let receive = onHead
    onHead = nil
    receive?(LocalResponseHead(status: status, fields: Self.fields(Self.lines(headers))))
  }

  /// Marks the response as complete. The caller may still take pending bytes.
  private func finish() {
    source = nil
    sink = nil
    onEnd()
  }

  private static func lines(_ write: (inout HeaderWriter) -> Void) -> [UInt8] {
    var writer = HeaderWriter(bytes: [])
    write(&writer)
    return writer.bytes
  }

  private static func fields(_ lines: [UInt8]) -> [LocalRequest.Field] {
    lines.split(separator: UInt8(ascii: "\n")).compactMap { line in
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let value = line[(colon + 1)...].drop { $0 == 0x20 }
      return (
        String(decoding: line[..<colon], as: UTF8.self),
        String(decoding: value.last == 0x0d ? value.dropLast() : value, as: UTF8.self)
      )
    }
  }

  // MARK: - The caller

  /// Calls `receive` with the next piece, now or as soon as one is available.
  func take(_ receive: @escaping (LocalPiece) -> Void) {
    if !pending.isEmpty {
      var piece: [UInt8] = []
      swap(&piece, &pending)
      receive(.bytes(piece))
    } else if isCut {
      receive(.cut)
    } else if source == nil {
      receive(.end(trailers: Self.fields(trailers)))
    } else {
      taker = receive
      pull()
    }
  }

  /// Asks the source for slices while the caller waits.
  private func pull() {
    guard taker != nil, !isPulling else { return }
    isPulling = true
    while pending.isEmpty, !isWaiting, pullOnce() {}
    isPulling = false
    if let receive = taker, !pending.isEmpty || source == nil {
      taker = nil
      take(receive)
    }
  }

  /// Takes one slice. Returns `false` if the source has nothing more for now.
  private func pullOnce() -> Bool {
    guard let source else { return false }
    // Set this before the call, so that a source that resumes itself during the call is asked again.
    isWaiting = true
    let progress = source.nextSlice(into: &pending)
    guard self.source != nil else { return false }
    switch progress {
    case .more:
      isWaiting = false
      guard pending.isEmpty else { return true }
      // The source made progress but produced no bytes. Let other exchanges run before asking it again.
      isWaiting = true
      exchange.loop.atNextTurn { [exchange] in exchange.resume() }
    case .waiting: break
    case .finished:
      trailers = Self.lines { source.addTrailers(to: &$0) }
      exchange.complete()
      finish()
    case .failed: cut()
    }
    return false
  }

  // MARK: - The end

  /// Notifies the exchange that the server is about to stop.
  func end() {
    exchange.announceShutdown()
    guard source != nil else { return }
    // No caller waits for this body, so ask the source for its last slices now.
    isPulling = true
    isWaiting = false
    _ = pullOnce()
    isPulling = false
    if source != nil { cut() }
  }

  /// Ends the exchange before the response is complete. Does nothing if it is complete already.
  func cut() {
    guard onHead != nil || source != nil else { return }
    source = nil
    isCut = true
    exchange.close()
    if let receive = onHead {
      onHead = nil
      receive(nil)
    }
    finish()
    if let receive = taker, !isPulling {
      taker = nil
      take(receive)
    }
  }
}
