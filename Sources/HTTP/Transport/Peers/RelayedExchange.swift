/// An exchange of a client that a peer handles. Passes the request to the peer and the response to the client, each only
/// as fast as it is taken. Belongs to the exchange's loop.
final class RelayedExchange: BodySink, BodySource, PeerStreamOwner {
  /// Milliseconds for which a request waits for a peer that takes it.
  static let waitMilliseconds = 10_000
  /// The most times that a request is sent to a peer that may have handled it and gives no response.
  private static let breaksMax = 3
  /// The most bytes of a response that are passed to the client's connection at once.
  private static let sliceBytes = 2 * Exchange.sliceBytes

  let head: RelayedHead
  private let exchange: Exchange
  private unowned let relay: LoopRelay
  private let method: HTTPMethod
  private let isGRPC: Bool
  private let repetition: RequestRepetition
  /// Whether another node passed the request to this one, on its way to the owner. Nobody passes it on again.
  private let isPassedOn: Bool
  private var upload = RelayedUpload()
  private var isPaused = false
  private var reservedBytes = 0
  private var stream: PeerStream?
  private weak var connection: PeerConnection?
  private var isBegun = false
  /// The start of a response that this node compresses.
  private var gathered: [UInt8] = []
  private var trailerLines: [UInt8] = []
  private var isFailed = false
  private(set) var isOver = false
  private var breaks = 0
  /// The time on the loop's clock at which the request is refused, while it waits.
  private(set) var waitDeadline: Int?
  /// Whether the server has begun to stop.
  private var isStopping = false
  /// The position among those that wait.
  var waitIndex: Int?

  /// Takes over an exchange. `body` is the complete body, or `nil` if it arrives through the sink.
  ///
  /// - Returns: `nil` if memory is short. The client then has a response.
  init?(
    _ request: borrowing HTTPRequest, _ exchange: Exchange, _ relay: LoopRelay, client: RelayedClient, isWhole: Bool,
    _ repetition: RequestRepetition
  ) {
    self.exchange = exchange
    self.relay = relay
    method = request.method
    let type = request.header("content-type")
    isGRPC = request.version == .http2 && type?.starts(with: "application/grpc".utf8) == true
    self.repetition = repetition
    isPassedOn = request.isRelayed
    head = RelayedHead(request, client: client, isWhole: isWhole)
    guard reserve(head.count + (isWhole ? request.body.count : 0)) else {
      isOver = true
      relay.refuse(exchange, .noMemory, isGRPC: isGRPC)
      return nil
    }
    if isWhole {
      _ = upload.append(request.body)
      upload.isComplete = true
    }
    exchange.onClose { [weak self] in self?.clientLeft() }
    exchange.onShutdown { [weak self] in self?.shutDown() }
  }

  var hasBody: Bool { !upload.isSent }

  // MARK: - The client's request

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isOver else { return }
    guard reserve(bytes.count) else { return refuse(.noMemory) }
    release(upload.append(bytes))
    if upload.isFull && !isPaused {
      isPaused = true
      exchange.pauseBody()
    }
    resumeUpload()
  }

  func ended() {
    upload.isComplete = true
    resumeUpload()
  }

  private func resumeUpload() {
    guard let stream, let connection, stream.isDeferred else { return }
    connection.session.resumeUpload(stream)
    connection.sendSoon()
  }

  func nextUpload(into space: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
    let (count, released) = upload.take(into: space)
    release(released)
    if isPaused && upload.hasRoom {
      isPaused = false
      // Not now, since that can bring more bytes while the library asks for these.
      exchange.loop.atNextTurn { [weak self] in
        guard let self, !isPaused, !isOver else { return }
        exchange.resumeBody()
      }
    }
    return (count, upload.isSent)
  }

  // MARK: - Tries

  /// Sends the request on a connection, to the owner or to a node on a detour. Returns `false` if the connection takes none.
  func send(on connection: PeerConnection, isDetour: Bool) -> Bool {
    let session = connection.session
    guard
      let stream = session.submit(head, hasBody: hasBody, mayPassOn: isDetour && !isPassedOn, owner: self)
    else { return false }
    self.stream = stream
    self.connection = connection
    connection.sendSoon()
    return true
  }

  /// Begins to wait for a peer, or continues. All waiting together is limited.
  func beginWaiting() {
    if waitDeadline == nil { waitDeadline = exchange.loop.nowMilliseconds + longestWait }
  }

  /// The longest time that a wait takes which begins now, in milliseconds.
  private var longestWait: Int { isStopping ? relay.lastWaitMilliseconds : Self.waitMilliseconds }

  /// The refusal if a try may have had its effect. Of a request that may always be repeated, the client needs no outcome.
  private var unknown: Refusal { repetition == .always ? .noOwner : .outcomeUnknown }

  /// Called if no peer took the request in time.
  func waitedTooLong() { refuse(breaks > 0 ? unknown : .noOwner) }

  func streamFailed(_ stream: PeerStream, _ failure: PeerFailure) {
    guard stream === self.stream, !isOver else { return }
    if isBegun {
      isFailed = true
      return exchange.resume()
    }
    self.stream = nil
    gathered = []
    switch failure {
    case .notProcessed: tryAgain()
    case .mayHaveRun:
      relay.counters.add(\.broken)
      breaks += 1
      guard repetition != .never, upload.isKept, breaks < Self.breaksMax else { return refuse(unknown) }
      waitDeadline = nil
      tryAgain()
    }
  }

  /// Called if another node owns the project now. Sends the request to it if the former owner has not responded, and a second
  /// try has no effect twice: the former owner appends nothing any more, and the next one has what it has appended.
  func moveOn() {
    guard !isOver, !isBegun, upload.isKept, let stream else { return }
    if stream.isSent {
      guard repetition != .never, breaks + 1 < Self.breaksMax else { return }
      breaks += 1
    }
    connection?.session.cancel(stream)
    connection?.sendSoon()
    self.stream = nil
    gathered = []
    waitDeadline = nil
    upload.rewind()
    relay.counters.add(\.repeated)
    // At a node that stops, it may have no time to wait.
    relay.begin(self)
  }

  private func tryAgain() {
    stream = nil
    guard upload.isKept else { return refuse(.noOwner) }
    upload.rewind()
    relay.counters.add(\.repeated)
    relay.await(self)
  }

  // MARK: - The peer's response

  func responseAdvanced(_ stream: PeerStream) {
    guard stream === self.stream, !isOver else { return }
    if isBegun { return exchange.resume() }
    guard stream.hasHead, let status = stream.status else { return }
    if stream.isNotOwner {
      connection?.session.cancel(stream)
      connection?.sendSoon()
      return tryAgain()
    }
    if stream.isCompressible && !stream.isEnded && stream.contentLength ?? .max <= RelayedFields.compressibleBytesMax {
      // The window is smaller than such a response, so it must reopen.
      return gather(stream)
    }
    guard !isInDoubt(status, stream) else { return retryInDoubt() }
    begin(status, stream)
  }

  /// Whether a response says nothing about an earlier try, which may have had its effect: the owner refused this one before
  /// it looked for the id.
  private func isInDoubt(_ status: Int, _ stream: PeerStream) -> Bool {
    guard breaks > 0, repetition != .always else { return false }
    if status == 401 || status == 429 || status == 503 { return true }
    return isGRPC && RelayedFields.saysNothingOfEarlierTry(stream.headLines)
  }

  /// Tries again a little later, or tells the client that the outcome is unknown.
  private func retryInDoubt() {
    if let stream, let connection {
      connection.session.cancel(stream)
      connection.sendSoon()
    }
    stream = nil
    breaks += 1
    guard upload.isKept, breaks < Self.breaksMax else { return refuse(.outcomeUnknown) }
    tryAgain()
  }

  private func gather(_ stream: PeerStream) {
    guard reserve(stream.heldBytes) else { return refuse(.noMemory) }
    let count = stream.take(.max, into: &gathered)
    connection?.session.widen(stream, by: count)
    connection?.sendSoon()
  }

  private func begin(_ status: Int, _ stream: PeerStream) {
    isBegun = true
    release(upload.forgetKept())
    let lines = stream.headLines
    if stream.isCompressible && stream.isEnded {
      _ = stream.take(.max, into: &gathered)
      finish()
      exchange.respond(
        status: status, headers: { $0.bytes.append(contentsOf: lines) },
        body: { $0.append(contentsOf: gathered) })
      gathered = []
    } else if stream.isEnded && stream.heldBytes == 0 && stream.trailerLines.isEmpty && stream.contentLength == nil
      && method != .head
    {
      finish()
      exchange.respond(
        status: status, headers: { $0.bytes.append(contentsOf: lines) }, compressible: false, body: { _ in })
    } else {
      exchange.stream(
        status: status, headers: { $0.bytes.append(contentsOf: lines) }, contentLength: stream.contentLength,
        from: self)
      // Without a body, the response is complete now.
      if exchange.isComplete { return finish() }
      if isStopping, !isOver, let connection {
        connection.session.announceEnd(of: stream)
        connection.sendSoon()
      }
    }
  }

  var heldBytes: Int { stream?.heldBytes ?? 0 }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard let stream else { return .failed }
    let count = stream.take(Self.sliceBytes, into: &out)
    if count > 0, let connection {
      connection.session.widen(stream, by: count)
      connection.sendSoon()
    }
    if stream.heldBytes > 0 { return .more }
    if stream.isEnded {
      trailerLines = stream.trailerLines
      finish()
      return .finished
    }
    return isFailed ? .failed : .waiting
  }

  func addTrailers(to trailers: inout HeaderWriter) {
    trailers.bytes.append(contentsOf: trailerLines)
  }

  // MARK: - The end

  private func clientLeft() {
    guard !isOver else { return }
    finish()
  }

  /// The server begins to stop. An endless response should end. A request that waits and can be repeated may find the next
  /// owner.
  private func shutDown() {
    guard !isOver else { return }
    if let stream, let connection {
      connection.session.announceEnd(of: stream)
      connection.sendSoon()
    } else if !isBegun, repetition == .never || relay.lastWaitMilliseconds == 0 {
      return refuse(.noOwner)
    }
    isStopping = true
    guard waitIndex != nil else { return }
    waitDeadline = waitDeadline.map { min($0, exchange.loop.nowMilliseconds + longestWait) }
  }

  private func refuse(_ refusal: Refusal) {
    guard !isOver else { return }
    relay.counters.add(\.failed)
    let isAwaiting = exchange.isAwaitingResponse
    finish()
    if isAwaiting {
      relay.refuse(exchange, refusal, isGRPC: isGRPC)
    } else {
      exchange.resume()
    }
  }

  /// Releases what the exchange holds, and cancels the stream unless it is complete.
  private func finish() {
    isOver = true
    relay.forget(self)
    if let stream {
      if !stream.isClosed && !(stream.isEnded && upload.isSent) {
        connection?.session.cancel(stream)
        connection?.sendSoon()
      }
    }
    stream = nil
    exchange.release(reservedBytes)
    reservedBytes = 0
  }

  private func reserve(_ bytes: Int) -> Bool {
    guard exchange.reserve(bytes) else { return false }
    reservedBytes += bytes
    return true
  }

  private func release(_ bytes: Int) {
    guard bytes > 0, !isOver else { return }
    exchange.release(bytes)
    reservedBytes -= bytes
  }
}

extension Refusal {
  static let noOwner = Self(status: 503, message: "no node of the cluster can handle the request now; try again")
  // Not 503: clients repeat a request on their own then, which could do it twice.
  static let outcomeUnknown = Self(
    status: 500,
    message: """
      The node that handled the request did not respond. The request may have been done: read what it changes before you \
      repeat it.
      """)
}
