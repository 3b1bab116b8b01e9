/// The relay's part on one loop: the connections to peers, and the requests that wait for one.
final class LoopRelay {
  /// Milliseconds between tries to connect, after the first failures and after many.
  private static let retryMilliseconds = 100
  private static let retryMillisecondsMax = 1000
  /// Milliseconds after which requests leave the connection to a former owner for the next one. A handover takes less.
  private static let patienceMilliseconds = 250

  let loop: EventLoop
  let counters: RelayCounters
  private let context: TLSContext
  private let callbacks: PeerCallbacks
  private let buffers = PeerBuffers()
  private let target: @Sendable () -> RelayTarget
  /// The form of refusals.
  private let limits: TransportConfiguration
  /// See ``RelayConfiguration/lastWaitMilliseconds``.
  let lastWaitMilliseconds: Int
  /// The connection for new requests.
  private var current: PeerConnection?
  /// Whether it leads to a node that passes them on.
  private var isDetour = false
  /// Connections that finish their requests.
  private var older: [Retired] = []
  private var waiting: [RelayedExchange] = []
  private var failures = 0
  private var nextTryMilliseconds = Int.min
  private var isTicking = false
  private var isEnded = false

  /// A connection that takes no further requests.
  private struct Retired {
    let connection: PeerConnection
    /// The time on the loop's clock since when it takes none.
    let since: Int
    /// Whether its node passes the requests on to the owner, which may still be the same one.
    let isDetour: Bool
  }

  /// - Returns: `nil` if memory is exhausted.
  init?(
    _ loop: EventLoop, _ context: TLSContext, _ counters: RelayCounters, _ configuration: RelayConfiguration,
    target: @escaping @Sendable () -> RelayTarget
  ) {
    guard let callbacks = PeerCallbacks() else { return nil }
    self.loop = loop
    self.context = context
    self.counters = counters
    self.callbacks = callbacks
    self.target = target
    limits = configuration.limits
    lastWaitMilliseconds = configuration.lastWaitMilliseconds
    loop.beforeEnd { [self] in end() }
  }

  // MARK: - Requests

  /// Sends a request now, or has it wait.
  func begin(_ request: RelayedExchange) {
    // The end of a request without a body arrives right after its head.
    loop.atNextTurn { [self] in
      guard !request.isOver else { return }
      if !send(request) { self.await(request) }
    }
  }

  /// Begins a request of this node itself. Returns `nil` without a connection to a peer, and begins to make one.
  func open(
    _ path: String, receive: @escaping (UnsafeRawBufferPointer) -> Void, end: @escaping () -> Void
  ) -> LoopStream? {
    // On a detour, only requests of clients are passed on.
    guard case .node = target(), let connection = connectionForRequest(), connection.isOpen else { return nil }
    let stream = LoopStream(connection, receive: receive, end: end)
    return stream.start(path) ? stream : nil
  }

  /// Keeps a request until a peer takes it.
  func await(_ request: RelayedExchange) {
    guard !isEnded else { return request.waitedTooLong() }
    request.beginWaiting()
    guard request.waitIndex == nil else { return }
    request.waitIndex = waiting.count
    waiting.append(request)
    tickLater()
  }

  /// Removes a request from those that wait, in constant time.
  func forget(_ request: RelayedExchange) {
    guard let index = request.waitIndex else { return }
    request.waitIndex = nil
    let last = waiting.removeLast()
    guard last !== request else { return }
    waiting[index] = last
    last.waitIndex = index
  }

  /// Sends the requests that wait, as far as there is a peer for them.
  func targetChanged() {
    failures = 0
    nextTryMilliseconds = .min
    retire()
    sendWaiting()
  }

  func refuse(_ exchange: Exchange, _ refusal: Refusal, isGRPC: Bool) {
    exchange.refuse(refusal, isGRPC: isGRPC, limits)
  }

  private func send(_ request: RelayedExchange) -> Bool {
    guard let connection = connectionForRequest() else { return false }
    guard request.send(on: connection, isDetour: isDetour) else { return false }
    forget(request)
    return true
  }

  private func sendWaiting() {
    // Requests that fail at once wait for the next time.
    for request in waiting where !request.isOver && request.waitIndex != nil {
      guard send(request) else { return }
    }
  }

  // MARK: - Connections

  private func connectionForRequest() -> PeerConnection? {
    guard !isEnded, let address = target().address else { return nil }
    if let current, current.address != address || !current.isUsable { retire() }
    isDetour = if case .detour = target() { true } else { false }
    if let current { return current }
    guard loop.nowMilliseconds >= nextTryMilliseconds else { return nil }
    guard let made = PeerConnection(to: address, on: loop, context, callbacks, buffers) else { return nil }
    current = made
    counters.add(\.openConnections)
    made.onOpen = { [unowned self] in failures = 0 }
    made.onEnd = { [unowned self, unowned made] wasOpen in ended(made, wasOpen: wasOpen) }
    tickLater()
    made.start()
    return current
  }

  private var connections: [PeerConnection] { older.map(\.connection) + (current.map { [$0] } ?? []) }

  /// Takes no further requests for the current connection if it is not that of the target. If it is not established yet, its
  /// requests go to the target.
  private func retire() {
    guard let connection = current else { return }
    if connection.isUsable, target().address == connection.address { return }
    current = nil
    older.append(Retired(connection: connection, since: loop.nowMilliseconds, isDetour: isDetour))
    for stream in Array(connection.session.streams.values) { (stream.owner as? LoopStream)?.close() }
    if !connection.isOpen { connection.close() }
  }

  /// Sends requests that a former owner does not answer to the next one. They happen once all the same.
  private func moveRequests() {
    guard case .node(let address) = target() else { return }
    let end = loop.nowMilliseconds - Self.patienceMilliseconds
    for former in older where former.since <= end && !former.isDetour && former.connection.address != address {
      for stream in Array(former.connection.session.streams.values) { (stream.owner as? RelayedExchange)?.moveOn() }
    }
  }

  private func ended(_ connection: PeerConnection, wasOpen: Bool) {
    counters.add(\.openConnections, -1)
    guard current === connection else {
      older.removeAll { $0.connection === connection }
      if !waiting.isEmpty { loop.atNextTurn { [self] in sendWaiting() } }
      return
    }
    current = nil
    failures += 1
    let pause = min(Self.retryMilliseconds << min(failures - 1, 8), Self.retryMillisecondsMax)
    // The first try after a lost connection begins at once.
    let isFirst = wasOpen && failures == 1
    nextTryMilliseconds = loop.nowMilliseconds + (isFirst ? 0 : pause)
    if isFirst && !waiting.isEmpty { loop.atNextTurn { [self] in sendWaiting() } }
  }

  // MARK: - Time and end

  private func tickLater() {
    guard !isTicking, !isEnded else { return }
    isTicking = true
    loop.schedule(afterMilliseconds: EventLoop.sweepMilliseconds) { [weak self] in
      guard let self else { return }
      isTicking = false
      tick()
    }
  }

  private func tick() {
    guard !isEnded else { return }
    retire()
    moveRequests()
    for connection in connections { connection.tick() }
    for former in older where former.connection.session.streams.isEmpty { former.connection.close() }
    let now = loop.nowMilliseconds
    for request in waiting.filter({ $0.waitDeadline.map { $0 <= now } ?? false }) where request.waitIndex != nil {
      request.waitedTooLong()
    }
    sendWaiting()
    if current != nil || !older.isEmpty || !waiting.isEmpty { tickLater() }
  }

  /// Closes everything, before the loop ends.
  private func end() {
    isEnded = true
    for request in waiting { request.waitedTooLong() }
    for connection in connections { connection.close() }
  }
}
