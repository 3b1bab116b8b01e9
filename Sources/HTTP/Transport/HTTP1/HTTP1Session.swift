import Glibc

/// An HTTP/1.x session on one connection: one request at a time, responses in the order of the requests.
final class HTTP1Session: ConnectionSession, ResponseSink {
  /// Pipelined responses are sent together once they reach this many bytes.
  private static let collectedBytesMax = 64 * 1024
  /// The most slices sent in one turn of the loop, so that one fast client does not delay the others.
  private static let slicesPerTurn = 8

  private let server: LoopServer
  private let parser: HTTP1Parser
  /// Functions that use it often do so through a local constant, because each use of `unowned` counts references.
  private unowned let connection: Connection
  private var exchange: Exchange
  /// Whether the handler has a request whose response is not complete.
  private var isInFlight = false
  /// Whether the current request is the connection's last one.
  private var isEnding = false
  private var isProcessing = false
  /// Whether the session waits for its turn on the loop, because the others need time too.
  private var awaitsTurn = false
  private var saidContinue = false
  private var timed = Timed.nothing

  private enum Timed: Equatable { case nothing, idle, head, body(bytes: Int) }

  // Properties of the current request that its response depends on.
  private var method = HTTPMethod.other
  private var isHTTP10 = false
  private var acceptsGzip = false
  private var keepsAlive = false

  // The request's body, if a `BodySink` receives it piece by piece.
  /// The route that the handler found when it saw the head of the current request.
  private var headMatch = RouteMatch()
  /// The handler that `openBody` chose for the request.
  private var headChosen: (any RequestHandler)?
  private var bodySink: (any BodySink)?
  private var isBodyPaused = false
  private var passedBytes = 0

  // The streamed response.
  private var source: (any BodySource)?
  /// The source as a file, if the kernel can send it.
  private var file: FileBody?
  private var isWaiting = false
  /// The number of body bytes still to send, if the head announced a length.
  private var remainingBytes: Int?

  init(_ connection: Connection) {
    self.connection = connection
    server = connection.server
    let configuration = server.configuration
    parser = HTTP1Parser(
      limits: HTTP1Parser.Limits(
        headerBytesMax: configuration.headerBytesMax, headerFieldsMax: configuration.headerFieldsMax,
        targetBytesMax: configuration.targetBytesMax, bodyBytesMax: configuration.bodyBytesMax))
    exchange = Exchange(server)
  }

  // MARK: - Events of the connection

  var expectedBytes: Int? { isInFlight ? nil : parser.expectedBytes }

  var isIdle: Bool { !isInFlight && !isEnding && !awaitsTurn && bodySink == nil && parser.phase != .body }

  func received() { process() }
  func outputDrained() { process() }

  func peerEnded() {
    // A client may end its sending side and still wait for the response. A client that reads a live stream has
    // disconnected.
    if isInFlight && source == nil && bodySink == nil {
      connection.deadline = server.loop.nowMilliseconds + server.configuration.halfCloseSeconds * 1000
    } else {
      process()
    }
  }

  /// While a whole request is in flight, its response makes room for the next one.
  var canAwaitMemory: Bool { !isEnding && (!isInFlight || bodySink != nil) }

  func inputRefused() {
    guard canAwaitMemory else { return connection.stopReading() }
    refuseBody(.noMemory)
    settle()
  }

  func deadlinePassed() {
    if isInFlight || parser.phase == .idle {
      connection.close()
    } else {
      refuse(.timedOut)
      settle()
    }
  }

  func drain() {
    if isInFlight {
      exchange.announceShutdown()
    } else if connection.isWritePending || connection.outputBytes > 0 {
      connection.finish()
    } else if parser.phase == .idle && connection.input.isEmpty {
      connection.close()
    }
  }

  func cancelRequests(where isCanceled: (any RequestHandler) -> Bool) {
    guard let chosen = exchange.chosen ?? headChosen, isCanceled(chosen) else { return }
    connection.close()
  }

  func closed() {
    source = nil
    file = nil
    bodySink = nil
    isInFlight = false
    exchange.close()
  }

  // MARK: - Requests

  /// Proceeds as far as input, output and the current request allow. Only this method advances the session. Nested
  /// calls return immediately.
  private func process() {
    guard !isProcessing else { return }
    isProcessing = true
    let connection = self.connection
    while connection.isOpen, !connection.isWritePending {
      if source != nil {
        guard !isWaiting, hasTurn(server.loop.hasTime, at: server.loop.atNextTurn), pull() else { break }
      } else if bodySink != nil {
        guard passBody() else { break }
      } else {
        guard !isInFlight, !isEnding, !connection.input.isEmpty,
          hasTurn(server.loop.hasTimeForRequest || isUrgent, at: server.loop.awaitRequestTurn), parseNext()
        else { break }
      }
      if connection.outputBytes >= Self.collectedBytesMax { connection.flush() }
    }
    isProcessing = false
    settle()
  }

  /// Whether the next request, as far as it has arrived, is a health check.
  private var isUrgent: Bool {
    guard !connection.input.isEmpty, let bytes = connection.input.bytes else { return false }
    let line = UnsafeRawBufferPointer(start: bytes, count: connection.input.count)
    guard line.starts(with: "GET ".utf8) else { return false }
    let target = line.dropFirst(4)
    return target.starts(with: server.configuration.urgentTarget)
      && target.dropFirst(server.configuration.urgentTarget.count).first == 0x20
  }

  /// Whether the session may proceed. Otherwise it waits for its turn.
  @inline(__always)
  private func hasTurn(_ hasTime: Bool, at turn: (@escaping () -> Void) -> Void) -> Bool {
    if awaitsTurn { return false }
    if hasTime { return true }
    awaitsTurn = true
    turn { [weak self] in
      guard let self else { return }
      awaitsTurn = false
      process()
    }
    return false
  }

  /// Handles one request of the input. Returns `false` if no complete request has arrived.
  private func parseNext() -> Bool {
    let connection = self.connection
    guard !connection.input.isEmpty, let message = connection.input.bytes else { return false }
    let available = connection.input.count
    var count = available
    let outcome = parser.parse(message, count: &count)
    if count < available { connection.input.truncate(to: count) }
    switch outcome {
    case .incomplete: return false
    case .head: openBody(message)
    case .request: dispatch(message)
    case .refused(let refusal): refuse(refusal)
    }
    return true
  }

  /// Asks the handler whether it wants the body piece by piece.
  private func openBody(_ message: UnsafeMutableRawPointer) {
    noteHead()
    // A response before the end of the body is the connection's last one.
    keepsAlive = false
    saidContinue = false
    let nothing = UnsafeRawBufferPointer(start: server.padding, count: 0)
    let sink = withRequest(message, messageBytes: parser.bodyStart, body: nothing) {
      server.handler.openBody(of: $0, exchange)
    }
    guard connection.isOpen, isInFlight else { return }
    if let sink {
      bodySink = sink
      isBodyPaused = false
      passedBytes = 0
      connection.input.consume(parser.bodyStart)
      parser.beginPassing()
      if server.isDraining { exchange.announceShutdown() }
    } else {
      isInFlight = false
      headMatch = exchange.match
      headChosen = exchange.chosen
      if parser.isBodyTooLarge { refuse(.bodyTooLarge) }
    }
  }

  /// Passes received body bytes to the sink. Returns `false` if none have arrived.
  private func passBody() -> Bool {
    guard let sink = bodySink, !isBodyPaused, !connection.input.isEmpty, let bytes = connection.input.bytes else {
      return false
    }
    do throws(Refusal) {
      let passed = try parser.pass(bytes, count: connection.input.count)
      passedBytes += passed.consumedCount
      if passed.bodyCount > 0 { sink.received(UnsafeRawBufferPointer(start: bytes, count: passed.bodyCount)) }
      guard connection.isOpen else { return false }
      connection.input.consume(passed.consumedCount)
      // The handler may have responded already.
      guard passed.isComplete, bodySink != nil else { return true }
      bodySink = nil
      keepsAlive = parser.keepsAlive
      parser.reset()
      timed = .nothing
      connection.deadline = .max
      sink.ended()
      return true
    } catch {
      refuseBody(error)
      return true
    }
  }

  private func refuseBody(_ refusal: Refusal) {
    bodySink = nil
    isInFlight = false
    exchange.close()
    refuse(refusal)
  }

  /// Saves the properties of the request that its response depends on.
  private func noteHead() {
    method = parser.method
    isHTTP10 = parser.isHTTP10
    acceptsGzip = parser.acceptsGzip
    keepsAlive = parser.keepsAlive
    timed = .nothing
    connection.deadline = .max
  }

  private func dispatch(_ message: UnsafeMutableRawPointer) {
    noteHead()
    saidContinue = false
    let body = UnsafeRawBufferPointer(start: message + parser.bodyStart, count: parser.bodyCount)
    switch parser.contentCoding {
    case .identity:
      handle(message, body: body)
    case .gzip:
      do throws(GzipError) {
        let limit = server.configuration.bodyBytesMax
        let decoded = try server.decompressor.decompress(body, bodyBytesMax: limit)
        decoded.withUnsafeBytes {
          handle(message, body: UnsafeRawBufferPointer(rebasing: $0.dropLast(InputBuffer.paddingBytes)))
        }
      } catch {
        refuse(Refusal(error))
        return
      }
    }
    connection.input.consume(parser.messageBytes)
    parser.reset()
  }

  private func handle(_ message: UnsafeMutableRawPointer, body: UnsafeRawBufferPointer) {
    withRequest(message, messageBytes: parser.messageBytes, body: body) { server.handler.handle($0, exchange) }
    server.loop.countRequest(since: exchange.begunMicroseconds)
    if isInFlight && server.isDraining { exchange.announceShutdown() }
  }

  /// Begins an exchange for the parsed request.
  @inline(__always)
  private func withRequest<Result>(
    _ message: UnsafeMutableRawPointer, messageBytes: Int, body: UnsafeRawBufferPointer,
    _ use: (borrowing HTTPRequest) -> Result
  ) -> Result {
    let target = UnsafeRawBufferPointer(start: message, count: messageBytes)[parser.target]
    let request = HTTPRequest(
      version: isHTTP10 ? .http10 : .http11, method: method, target: UnsafeRawBufferPointer(rebasing: target),
      body: body,
      message: UnsafeRawPointer(message), fields: parser.fields, socket: connection.socket,
      isFromAdminSocket: connection.isFromAdminSocket, isFromProxy: connection.isFromProxy)
    // A handler may still hold the last exchange, which must not become another request's.
    if !isKnownUniquelyReferenced(&exchange) { exchange = Exchange(server) }
    exchange.begin(self, method)
    exchange.match = headMatch
    headMatch = RouteMatch()
    exchange.chosen = headChosen
    headChosen = nil
    exchange.keepTarget(request.target)
    if server.isLogTurn() { exchange.logRequest(request.target, from: connection.socket) }
    isInFlight = true
    return use(request)
  }

  /// Adjusts reading, the deadline and the socket to the session's state.
  private func settle() {
    guard connection.isOpen else { return }
    if isEnding && !isInFlight {
      connection.finish()
      return
    }
    if parser.phase == .body && parser.expectsContinue && !saidContinue {
      saidContinue = true
      if parser.bodyCount == 0 { sendContinue() }
    }
    connection.flush()
    guard connection.isOpen else { return }
    connection.holds(source?.heldBytes ?? 0)
    let isPassing = bodySink != nil
    if connection.isPeerEnded && !connection.isWritePending && !awaitsTurn
      && (!isInFlight || isWaiting || isPassing && !isBodyPaused)
    {
      connection.close()
      return
    }
    let isBlocked = isInFlight || connection.isWritePending || awaitsTurn
    let isFull = connection.input.count >= server.configuration.pipelinedBytesMax
    if isPassing ? isBodyPaused : isBlocked && isFull {
      connection.stopReading()
    } else {
      connection.startReading()
    }
    connection.input.releaseIfEmpty(to: server.pool)
    if !isInFlight || isPassing { setDeadline() }
  }

  private func sendContinue() {
    var out = connection.takeOutput()
    out.append("HTTP/1.1 100 Continue\r\n\r\n")
    connection.returnOutput(out)
  }

  /// The limits for idle connections and for the head run from their start, the limit for a body from its last
  /// progress.
  private func setDeadline() {
    let configuration = server.configuration
    let seconds: Int
    let current: Timed
    switch parser.phase {
    case .idle:
      current = .idle
      seconds = configuration.idleSeconds
    case .head:
      current = .head
      seconds = configuration.headerSeconds
    case .body:
      current = isBodyPaused ? .nothing : .body(bytes: bodySink == nil ? parser.bodyCount : passedBytes)
      seconds = configuration.bodySeconds
    }
    guard current != timed else { return }
    timed = current
    // While the body is paused, the handler and not the client prevents progress.
    if current == .nothing { return connection.deadline = .max }
    connection.deadline = server.loop.nowMilliseconds + seconds * 1000
  }

  // MARK: - Responses

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) throws -> Void
  ) rethrows {
    let hasBody = Exchange.hasBody(status)
    if compressible && acceptsGzip && hasBody && method != .head {
      var made: [UInt8] = []
      swap(&made, &server.scratch)
      defer { keepScratch(&made) }
      try body(&made)
      let compressed = made.count >= GzipCompressor.bodyBytesMin ? server.compressor.compress(made) : nil
      write(status: status, headers: headers, isCompressed: compressed != nil, hasBody: true) { out in
        out.append(contentsOf: compressed ?? made)
      }
    } else {
      try write(status: status, headers: headers, isCompressed: false, hasBody: hasBody, body: body)
    }
    endResponse()
    process()
  }

  private func keepScratch(_ made: inout [UInt8]) {
    guard made.capacity <= LoopServer.scratchBytesKept else { return }
    made.removeAll(keepingCapacity: true)
    swap(&made, &server.scratch)
  }

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) throws -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) rethrows {
    try respond(status: status, headers: headers, compressible: false, body: body)
  }

  /// Writes a response. If `body` throws, the output is as before.
  private func write(
    status: Int, headers: (inout HeaderWriter) -> Void, isCompressed: Bool, hasBody: Bool,
    body: (inout [UInt8]) throws -> Void
  ) rethrows {
    var out = connection.takeOutput()
    let start = out.count
    appendHead(status: status, headers: headers, to: &out)
    if isCompressed { out.append("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n") }
    if !hasBody {
      out.append("\r\n")
      connection.returnOutput(out)
      return
    }
    // The length precedes the body but is known only after it. Leave room, since blanks before a value are ignored.
    out.append("Content-Length: ")
    let lengthStart = out.count
    out.append("          \r\n\r\n")
    let bodyStart = out.count
    do {
      try body(&out)
    } catch {
      out.removeLast(out.count - start)
      connection.returnOutput(out)
      throw error
    }
    out.writeDecimal(out.count - bodyStart, at: lengthStart, width: 10)
    if method == .head { out.removeLast(out.count - bodyStart) }
    connection.returnOutput(out)
  }

  /// Appends the status line, the transport's fields and the caller's, without the blank line.
  private func appendHead(status: Int, headers: (inout HeaderWriter) -> Void, to out: inout [UInt8]) {
    if server.isDraining { keepsAlive = false }
    server.responseHead.append(status: status, to: &out)
    if !keepsAlive {
      out.append("Connection: close\r\n")
    } else if isHTTP10 {
      out.append("Connection: keep-alive\r\n")
    }
    var taken: [UInt8] = []
    swap(&taken, &out)
    var writer = HeaderWriter(bytes: taken)
    taken = []
    headers(&writer)
    out = writer.bytes
  }

  private func endResponse() {
    isInFlight = false
    bodySink = nil
    server.countRequest()
    // A streamed response may have announced a kept connection before the server began to stop.
    if !keepsAlive || server.isDraining { isEnding = true }
  }

  /// Sends a refusal without calling the handler, and closes the connection.
  private func refuse(_ refusal: Refusal) {
    isEnding = true
    keepsAlive = false
    isHTTP10 = false
    method = .other
    server.counters.countRefusal(status: refusal.status)
    let body = server.configuration.errorBody(refusal.status, refusal.text)
    write(
      status: refusal.status, headers: { $0.add("Content-Type", "application/json; charset=utf-8") },
      isCompressed: false, hasBody: true, body: { $0.append(contentsOf: body) })
  }

  // MARK: - Streams

  func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int?, from source: any BodySource
  ) {
    let hasBody = Exchange.hasBody(status) && method != .head
    if isHTTP10 && hasBody && contentLength == nil { keepsAlive = false }
    var out = connection.takeOutput()
    appendHead(status: status, headers: headers, to: &out)
    if let contentLength {
      out.append("Content-Length:                     \r\n\r\n")
      out.writeDecimal(contentLength, at: out.count - 23, width: 19)
    } else {
      out.append(isHTTP10 || !hasBody ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n")
    }
    connection.returnOutput(out)
    if hasBody {
      bodySink = nil
      self.source = source
      file = connection.isPlain ? source as? FileBody : nil
      remainingBytes = contentLength
      isWaiting = false
      process()
    } else {
      exchange.complete()
      endResponse()
      process()
    }
  }

  func resume() {
    isWaiting = false
    process()
  }

  func pauseBody() {
    isBodyPaused = true
  }

  func resumeBody() {
    guard isBodyPaused else { return }
    isBodyPaused = false
    process()
  }

  /// Sends slices while the socket takes them. Returns `true` if the response is complete.
  private func pull() -> Bool {
    slices: for _ in 0..<Self.slicesPerTurn {
      guard let source, !isWaiting, connection.isOpen, !connection.isWritePending else { return false }
      // Set this before the call, so that a source that resumes itself during the call is asked again.
      isWaiting = true
      let unsentBytes = connection.outputBytes
      let progress = file.map(send) ?? appendSlice(of: source)
      let isEmpty = connection.outputBytes == unsentBytes
      switch progress {
      case .waiting:
        connection.flush()
        continue
      case .more:
        isWaiting = false
        connection.flush()
        // The source made progress but has no bytes yet. Let other connections run first.
        if (isEmpty && file == nil) || !server.loop.hasTime { break slices }
      case .finished:
        isWaiting = false
        self.source = nil
        file = nil
        exchange.complete()
        endResponse()
        return true
      case .failed:
        connection.abort()
        return false
      }
    }
    if source != nil && !isWaiting && !connection.isWritePending {
      server.loop.atNextTurn { [exchange] in exchange.resume() }
    }
    return false
  }

  private func appendSlice(of source: any BodySource) -> BodyProgress {
    var out = connection.takeOutput()
    let isChunked = !isHTTP10 && remainingBytes == nil
    let frameStart = out.count
    if isChunked { out.append("00000000\r\n") }
    let start = out.count
    let progress = source.nextSlice(into: &out)
    if isChunked {
      if out.count > start {
        out.writeHexadecimal(out.count - start, at: frameStart, width: 8)
        out.append("\r\n")
      } else {
        // An empty chunk would end the body.
        out.removeLast(out.count - frameStart)
      }
      if case .finished = progress { out.append("0\r\n\r\n") }
    } else if let remaining = remainingBytes {
      let rest = remaining - (out.count - start)
      remainingBytes = rest
      connection.returnOutput(out)
      // With another length than announced, the client would take the surplus for the next response, or wait for
      // missing bytes.
      if case .finished = progress, rest != 0 { return .failed }
      return rest < 0 ? .failed : progress
    }
    connection.returnOutput(out)
    return progress
  }

  /// Has the kernel send the next part of a file. The output buffer takes bytes that the socket refuses, so that its
  /// event signals new room. A small file also goes there, to be sent together with the head.
  private func send(_ file: FileBody) -> BodyProgress {
    guard file.remainingBytes > FileBody.copiedBytesMax, let source else { return source.map(appendSlice) ?? .failed }
    connection.flush()
    guard connection.isOpen, !connection.isWritePending else { return .more }
    let count = min(file.remainingBytes, FileBody.windowBytes)
    guard file.isAtHand(count, exchange) else { return .waiting }
    guard let sent = connection.send(file: file.descriptor, from: file.offset, count: count) else { return .failed }
    file.advance(sent)
    remainingBytes = remainingBytes.map { $0 - sent }
    return sent == 0 ? appendSlice(of: source) : .more
  }
}
