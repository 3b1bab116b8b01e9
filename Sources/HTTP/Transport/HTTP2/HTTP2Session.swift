import CNGHTTP2

/// An HTTP/2 session: moves bytes between a connection and its multiplexer, and ends both in an orderly way.
final class HTTP2Session: ConnectionSession {
  /// Output is sent once it reaches about this many bytes.
  private static let collectedBytesMax = 64 * 1024
  /// The most times that output is produced and sent in one turn of the loop.
  private static let roundsPerTurn = 8
  /// The interval between checks of deadlines while a stream is open.
  private static let tickMilliseconds = 1000

  private enum Stage { case open, noticed(atMilliseconds: Int), refusing }

  private let server: LoopServer
  private let multiplexer: HTTP2Multiplexer
  private unowned let connection: Connection
  private var stage = Stage.open
  private var isBusy = false
  /// Whether the session waits for its turn on the loop, because the others need time too.
  private var awaitsTurn = false
  private var wasPinged = false

  /// - Returns: `nil` if memory is exhausted.
  init?(_ connection: Connection) {
    let made = HTTP2Multiplexer(
      connection.server, socket: connection.socket, isFromAdminSocket: connection.isFromAdminSocket,
      isFromProxy: connection.isFromProxy)
    guard let multiplexer = made else { return nil }
    self.connection = connection
    self.multiplexer = multiplexer
    server = connection.server
    multiplexer.onOutput = { [unowned self] in advance() }
    multiplexer.onPingAnswered = { [unowned self] in pingAnswered() }
    connection.deadline = .max
  }

  // MARK: - Events of the connection

  var expectedBytes: Int? { nil }
  var isIdle: Bool { multiplexer.streams.isEmpty }

  func received() {
    wasPinged = false
    if let bytes = connection.input.bytes, !connection.input.isEmpty {
      // Keeps `advance` from running, which could close the connection and with it the input.
      isBusy = true
      multiplexer.receive(UnsafeRawBufferPointer(start: bytes, count: connection.input.count))
      isBusy = false
      connection.input.consume(connection.input.count)
    }
    advance(hasInput: true)
  }

  func outputDrained() {
    advance()
  }

  /// Cancels streams that need more input or wait for events. The others are completed.
  func peerEnded() {
    for stream in multiplexer.streams where !stream.canFinishAlone { multiplexer.reset(stream, NGHTTP2_CANCEL) }
    connection.deadline = server.loop.nowMilliseconds + server.configuration.halfCloseSeconds * 1000
    advance()
  }

  func inputRefused() {
    connection.close()
  }

  func deadlinePassed() {
    let now = server.loop.nowMilliseconds
    if connection.isPeerEnded || enforceTimeouts(now) { return connection.close() }
    advance()
  }

  func drain() {
    if multiplexer.streams.isEmpty {
      stage = .refusing
      multiplexer.end(NGHTTP2_NO_ERROR)
    } else {
      stage = .noticed(atMilliseconds: server.loop.nowMilliseconds)
      multiplexer.announceEnd()
      for stream in multiplexer.streams { stream.exchange.announceShutdown() }
    }
    advance()
  }

  func cancelRequests(where isCanceled: (any RequestHandler) -> Bool) {
    let canceled = multiplexer.streams.filter { $0.exchange.chosen.map(isCanceled) ?? false }
    guard !canceled.isEmpty else { return }
    for stream in canceled { multiplexer.reset(stream, NGHTTP2_CANCEL) }
    advance()
  }

  /// Does so on a connection of another node, which has the responses of many clients.
  func endSlowest(while isNeeded: () -> Bool) -> Bool {
    guard server.isOfPeers else { return false }
    let slowest = multiplexer.streams.filter { $0.reply.heldBytes > 0 }
      .sorted { $0.progressMilliseconds < $1.progressMilliseconds }
    var hasEnded = false
    for stream in slowest where isNeeded() {
      multiplexer.reset(stream, NGHTTP2_CANCEL)
      connection.holds(multiplexer.unsentBytes)
      hasEnded = true
    }
    if hasEnded { awaitTurn() }
    return hasEnded
  }

  func closed() {
    multiplexer.close()
  }

  // MARK: - Progress

  /// Sends pending output as far as the socket takes it and the time of the loop allows. Only this method advances the
  /// session. Nested calls return immediately.
  ///
  /// - Parameter hasInput: whether the client has sent something, which is served while there is time for requests.
  private func advance(hasInput: Bool = false) {
    guard !isBusy else { return }
    let loop = server.loop
    guard hasInput ? loop.hasTimeForRequest : loop.hasTime else { return awaitTurn() }
    isBusy = true
    var rounds = 0
    var isAllSent = false
    while connection.isOpen, !connection.isWritePending, rounds < Self.roundsPerTurn, rounds == 0 || loop.hasTime {
      rounds += 1
      var out = connection.takeOutput()
      multiplexer.send(into: &out, bytesMax: Self.collectedBytesMax)
      connection.returnOutput(out)
      isAllSent = connection.outputBytes == 0
      if isAllSent { break }
      connection.flush()
    }
    isBusy = false
    if connection.isOpen, !connection.isWritePending,
      multiplexer.canProduce || (!isAllSent && multiplexer.wantsToSend)
    {
      awaitTurn()
    }
    settle()
  }

  /// Continues after other connections had their turn.
  private func awaitTurn() {
    guard !awaitsTurn else { return }
    awaitsTurn = true
    server.loop.atNextTurn { [weak self] in
      guard let self else { return }
      awaitsTurn = false
      advance()
    }
  }

  /// Adjusts reading, the deadline and the socket to the session's state.
  private func settle() {
    guard connection.isOpen else { return }
    if connection.isPeerEnded && !connection.isWritePending && !awaitsTurn && !multiplexer.wantsToSend {
      // The client can no longer open the windows for which these wait.
      if multiplexer.cancelBlocked() { awaitTurn() }
    }
    let isDone = connection.isPeerEnded || isRefusing ? multiplexer.streams.isEmpty : false
    if !multiplexer.isAlive || (isDone && !multiplexer.wantsToSend) { return connection.finish() }
    if connection.isWritePending && multiplexer.queuedFrames > HTTP2Limits.queuedFramesMax {
      connection.stopReading()
    } else {
      connection.startReading()
    }
    connection.input.releaseIfEmpty(to: server.pool)
    connection.holds(multiplexer.unsentBytes)
    setDeadline()
  }

  private var isRefusing: Bool {
    if case .refusing = stage { true } else { false }
  }

  private func pingAnswered() {
    if case .noticed = stage { refuseFurther() }
  }

  private func refuseFurther() {
    stage = .refusing
    multiplexer.refuseFurther()
  }

  // MARK: - Time

  private func setDeadline() {
    if connection.isPeerEnded { return }
    let now = server.loop.nowMilliseconds
    let next =
      multiplexer.streams.isEmpty
      ? multiplexer.idleSinceMilliseconds + server.configuration.http2IdleSeconds * 1000
      : now + Self.tickMilliseconds
    connection.deadline = min(connection.deadline, max(next, now + 1))
  }

  /// Ends requests and connections that exceeded a time limit. Returns `true` if the caller must close the
  /// connection without a GOAWAY.
  private func enforceTimeouts(_ now: Int) -> Bool {
    let configuration = server.configuration
    if case .noticed(let since) = stage, now - since >= HTTP2Limits.drainNoticeMilliseconds { refuseFurther() }
    if let since = multiplexer.headSinceMilliseconds, now - since >= configuration.headerSeconds * 1000 {
      multiplexer.end(NGHTTP2_ENHANCE_YOUR_CALM)
      return false
    }
    if multiplexer.streams.isEmpty {
      if now - multiplexer.idleSinceMilliseconds >= configuration.http2IdleSeconds * 1000 {
        multiplexer.end(NGHTTP2_NO_ERROR)
      }
      return false
    }
    let isCrowded = multiplexer.isCrowded
    for stream in multiplexer.streams where !stream.isClosed {
      let still = now - stream.progressMilliseconds
      if stream.isBlocked {
        let isInTheWay = isCrowded && stream.reply.heldBytes > 0
        let stallSeconds = isInTheWay ? HTTP2Limits.crowdedStallSeconds : configuration.streamStallSeconds
        if still >= stallSeconds * 1000 { multiplexer.reset(stream, NGHTTP2_CANCEL) }
      } else if case .gathering = stream.phase, still >= configuration.bodySeconds * 1000 {
        stream.refuse(.timedOut)
      }
    }
    let silent = now - multiplexer.receivedMilliseconds
    if silent >= (configuration.pingSeconds + configuration.pingTimeoutSeconds) * 1000 && wasPinged { return true }
    if silent >= configuration.pingSeconds * 1000 && !wasPinged {
      wasPinged = true
      multiplexer.ping()
    }
    return false
  }
}
