import CUV
import Glibc
import Synchronization

/// An HTTP server that listens on one address, and if configured on further ports, and runs a fixed set of event loops.
/// Runs once: `start`, then `stop`.
package final class HTTPServer: Sendable {
  private struct Running {
    let acceptors: [Acceptor]
    let parts: [LoopServer]
    let furtherPorts: [Result<Int, TransportError>]
  }

  private enum State {
    case made
    case running(Running)
    case stopped(Running)

    var running: Running? {
      switch self {
      case .made: nil
      case .running(let running), .stopped(let running): running
      }
    }
  }

  private let configuration: TransportConfiguration
  private let handler: any RequestHandler
  private let credentials: TLSCredentials?
  private let counters: TransportCounters
  private let state = Mutex(State.made)
  /// Held while stopping, so that later callers wait. Separate from `state`, which running requests may still read.
  private let stopping = Mutex(())

  /// Creates a server. It does not listen before `start`.
  ///
  /// - Throws: ``TransportError/invalidConfiguration(reason:)`` if a limit is out of range,
  ///   ``TransportError/badCertificate(file:reason:)`` if the certificate or key cannot be used.
  package convenience init(
    configuration: TransportConfiguration, handler: any RequestHandler
  ) throws(TransportError) {
    try self.init(
      configuration: configuration, handler: handler, credentials: try Self.credentials(configuration))
  }

  /// Creates a server with credentials of its own instead of the certificate of the configuration.
  ///
  /// - Throws: ``TransportError/invalidConfiguration(reason:)`` if a limit is out of range.
  init(
    configuration: TransportConfiguration, handler: any RequestHandler, credentials: TLSCredentials?
  ) throws(TransportError) {
    try configuration.validate()
    self.configuration = configuration
    self.handler = handler
    counters = configuration.counters ?? TransportCounters(loops: configuration.loops)
    precondition(
      counters.loops.count == configuration.loops, "the counters have another number of loops than the configuration")
    self.credentials = credentials
  }

  /// Reads the certificate and key again, for new connections. Open connections keep the old ones. Does nothing
  /// without TLS.
  ///
  /// - Throws: ``TransportError/badCertificate(file:reason:)`` if the files cannot be used. The old certificate then
  ///   stays in use.
  package func reloadCertificate() throws(TransportError) {
    try credentials?.reload()
  }

  /// Binds the addresses, starts the loops and accepts connections.
  ///
  /// - Parameter adminSocket: a Unix socket that listens. The server serves it without TLS, to processes of its own user
  ///   and of root. It closes the socket when it stops, but not if this function throws an error.
  /// - Returns: the numeric address, with the port that the system chose if the configuration has port 0.
  /// - Throws: ``TransportError`` if the address or a required further port cannot be bound, the process is out of
  ///   resources, or the server was started before.
  package func start(adminSocket: Int32? = nil) throws(TransportError) -> (host: String, port: Int) {
    // Writing to a connection that the client closed must not end the process with SIGPIPE. libuv does not prevent
    // that.
    signal(SIGPIPE, SIG_IGN)
    return try state.withLock { state throws(TransportError) in
      guard case .made = state else { throw .alreadyStarted }
      let listening = try ListeningSocket.open(configuration)
      var further: [Result<ListeningSocket, TransportError>] = []
      let parts: [LoopServer]
      do throws(TransportError) {
        further = try ListeningSocket.openFurther(configuration)
        parts = try makeParts()
      } catch {
        close(listening.descriptor)
        for case .success(let socket) in further { close(socket.descriptor) }
        throw error
      }
      let connectionsMax = Self.connectionsMax(configuration)
      let isPlain = credentials == nil
      let network = ([listening] + further.compactMap { try? $0.get() }).map { socket in
        Acceptor(socket, on: parts[0].loop) { connection in
          Self.deal(connection, to: parts, connectionsMax: connectionsMax, isPlain: isPlain)
        }
      }
      let admin = adminSocket.map { socket in
        Acceptor(.unix(socket), on: parts[0].loop) { connection in
          guard AdminPeer.isAdmitted(connection) else { return Self.refuse(connection, with: AdminPeer.refusal) }
          Self.deal(
            connection, to: parts, connectionsMax: connectionsMax + AdminPeer.extraConnectionsMax, isPlain: true,
            isFromAdminSocket: true)
        }
      }
      let acceptors = network + (admin.map { [$0] } ?? [])
      parts[0].loop.execute { for acceptor in acceptors { acceptor.start() } }
      state = .running(
        Running(acceptors: acceptors, parts: parts, furtherPorts: further.map { $0.map(\.address.port) }))
      return (listening.address.host, listening.address.port)
    }
  }

  /// The further ports on which the server listens, in the order of the configuration, or the reason why it does not.
  /// Empty before `start`.
  package var furtherPorts: [Result<Int, TransportError>] { state.withLock { $0.running?.furtherPorts ?? [] } }

  /// Stops the server: accepts no more connections, closes idle ones, lets running requests finish for up to
  /// `graceSeconds`, cuts the rest, and ends the loops. Blocks until this is done. A later call waits for the first
  /// one to finish, and does nothing else. Never call it on a loop.
  package func stop(graceSeconds: Int) {
    stopping.withLock { _ in
      let running = state.withLock { state -> Running? in
        guard case .running(let running) = state else { return nil }
        state = .stopped(running)
        return running
      }
      guard let running else { return }
      let parts = running.parts
      parts[0].loop.executeAndWait { for acceptor in running.acceptors { acceptor.close() } }
      let drained = Semaphore()
      for part in parts {
        part.loop.execute { part.drain(graceMilliseconds: graceSeconds * 1000) { drained.signal() } }
      }
      for _ in parts { drained.wait() }
      for part in parts { part.loop.stopAndJoin() }
    }
  }

  /// Ends the running requests whose ``Exchange/chosen`` handler matches: closes their HTTP/1.1 connections, and resets
  /// their HTTP/2 streams. Returns at once; each loop does its part. Cost: linear in the number of connections.
  package func cancelRequests(where isCanceled: @escaping @Sendable (any RequestHandler) -> Bool) {
    for part in parts { part.loop.execute { part.cancelRequests(where: isCanceled) } }
  }

  /// Whether every loop takes its next turn within this time. `true` if no loop runs. Never call it on a loop.
  package func loopsRespond(withinMilliseconds milliseconds: Int) -> Bool {
    let done = Semaphore()
    let count = parts.count { part in part.loop.execute { done.signal() } }
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    let nanoseconds = deadline.tv_nsec + milliseconds % 1000 * 1_000_000
    deadline.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    deadline.tv_nsec = nanoseconds % 1_000_000_000
    return (0..<count).allSatisfy { _ in done.wait(until: deadline) }
  }

  /// The number of open connections.
  package var openConnections: Int {
    parts.reduce(0) { $0 + $1.openConnections.load(ordering: .relaxed) }
  }

  /// The number of responses completed since the start, without refusals by the transport itself.
  package var requestsServed: Int {
    parts.reduce(0) { $0 + $1.requestsServed.load(ordering: .relaxed) }
  }

  /// The number of open connections of each loop, in the order of the loops.
  package var openConnectionsByLoop: [Int] {
    parts.map { $0.openConnections.load(ordering: .relaxed) }
  }

  /// Checks all deadlines and timers now, and waits until that is done. Loops do this every
  /// `EventLoop.sweepMilliseconds`. Tests call it after moving their clock. Never call it on a loop.
  package func sweepDeadlines() {
    for part in parts { part.loop.executeAndWait { part.loop.sweep() } }
  }

  private static func credentials(_ configuration: TransportConfiguration) throws(TransportError) -> TLSCredentials? {
    guard let tls = configuration.tls else { return nil }
    return try TLSCredentials(tls)
  }

  private var parts: [LoopServer] {
    state.withLock { $0.running?.parts ?? [] }
  }

  private func makeParts() throws(TransportError) -> [LoopServer] {
    var parts: [LoopServer] = []
    let memory = ServerMemory(configuration)
    do throws(TransportError) {
      for index in 0..<configuration.loops {
        let loop = try EventLoop(name: "hearth-loop-\(index)", clock: configuration.clock)
        let part = LoopServer(
          loop: loop, configuration: configuration, counters: counters.loops[index], credentials: credentials,
          memory: memory, handler: handler)
        try loop.start()
        parts.append(part)
      }
    } catch {
      for part in parts { part.loop.stopAndJoin() }
      throw error
    }
    return parts
  }

  /// Gives a new connection to the loop with the fewest, so that even a few connections are spread evenly.
  private static func deal(
    _ socket: Int32, to parts: [LoopServer], connectionsMax: Int, isPlain: Bool, isFromAdminSocket: Bool = false
  ) {
    var open = 0
    var chosen = parts[0]
    var fewest = Int.max
    for part in parts {
      let count = part.openConnections.load(ordering: .relaxed)
      open += count
      if count < fewest {
        fewest = count
        chosen = part
      }
    }
    // The acceptor runs on the first loop, so it must use that loop's counters.
    let counters = parts[0].counters
    let roomMin = connectionsMax / LoopServer.evictedPart
    if roomMin > 0 && open >= connectionsMax - roomMin { makeRoom(parts) }
    guard open < connectionsMax else {
      counters.add(1, to: counters.turnedAway)
      // A client that expects TLS cannot read it.
      refuse(socket, with: isPlain ? full : "")
      return
    }
    counters.add(1, to: counters.accepted)
    chosen.openConnections.wrappingAdd(1, ordering: .relaxed)
    let part = chosen
    let isQueued = part.loop.execute { part.open(socket, isFromAdminSocket: isFromAdminSocket) }
    if !isQueued { close(socket) }
  }

  /// Asks each loop to close connections without a running request, unless it was asked already.
  private static func makeRoom(_ parts: [LoopServer]) {
    for part in parts where !part.isEvictionDue.exchange(true, ordering: .relaxed) {
      part.loop.execute { part.evict() }
    }
  }

  /// The most open connections: as configured, or as many as the process may open files, except for some that the
  /// databases and uploads need.
  private static func connectionsMax(_ configuration: TransportConfiguration) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return configuration.connectionsMax
    }
    let files = Int(clamping: limit.rlim_cur)
    return min(configuration.connectionsMax, files - min(max(files / 8, 128), files / 2))
  }

  /// The response of a server that is full.
  private static let full: StaticString =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

  /// Sends a response, and closes the socket. A new socket has room for so few bytes.
  private static func refuse(_ socket: Int32, with reply: StaticString) {
    defer { close(socket) }
    send(socket, reply.utf8Start, reply.utf8CodeUnitCount, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
  }
}
