import CUV
import Glibc
import Synchronization

/// Listens on one address and answers HTTP requests on a fixed set of event loops. Runs once: `start`, then `stop`.
package final class HTTPServer: Sendable {
  private struct Running {
    let acceptor: Acceptor
    let parts: [LoopServer]
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
  /// What the loops count.
  private let counters: TransportCounters
  private let state = Mutex(State.made)
  /// Held while stopping, so that later callers wait. Apart from `state`, which requests in flight may ask meanwhile.
  private let stopping = Mutex(())

  /// Takes a configuration; nothing listens until `start`.
  ///
  /// - Throws: `.invalidConfiguration` when a bound is not positive, `.badCertificate` when TLS cannot be spoken.
  package init(configuration: TransportConfiguration, handler: any RequestHandler) throws(TransportError) {
    try configuration.validate()
    self.configuration = configuration
    self.handler = handler
    counters = configuration.counters ?? TransportCounters(loops: configuration.loops)
    precondition(counters.loops.count == configuration.loops, "counters for another number of loops")
    credentials = try Self.credentials(configuration)
  }

  /// Reads the certificate and its key again, for new connections; those that are open keep theirs. Without TLS it
  /// does nothing.
  ///
  /// - Throws: `.badCertificate`, and what was in use stays.
  package func reloadCertificate() throws(TransportError) {
    try credentials?.reload()
  }

  /// Takes the address, starts the loops and accepts connections.
  ///
  /// - Returns: the numeric address taken, with the port the system chose if 0 was asked for.
  /// - Throws: when the address cannot be taken, the process is out of resources, or the server was started before.
  package func start() throws(TransportError) -> (host: String, port: Int) {
    // A client that closes early must not end the process with SIGPIPE; libuv leaves that to the program.
    signal(SIGPIPE, SIG_IGN)
    return try state.withLock { state throws(TransportError) in
      guard case .made = state else { throw .alreadyStarted }
      let listening = try ListeningSocket.open(configuration)
      let parts: [LoopServer]
      do throws(TransportError) {
        parts = try makeParts()
      } catch {
        close(listening.descriptor)
        throw error
      }
      let connectionsMax = configuration.connectionsMax
      let isPlain = credentials == nil
      let acceptor = Acceptor(listening, on: parts[0].loop) { socket in
        Self.deal(socket, to: parts, connectionsMax: connectionsMax, isPlain: isPlain)
      }
      parts[0].loop.execute { acceptor.start() }
      state = .running(Running(acceptor: acceptor, parts: parts))
      return (listening.address.host, listening.address.port)
    }
  }

  /// Stops accepting, closes idle connections, lets requests in flight finish for up to `graceSeconds`, cuts what is
  /// left, and ends the loops. Blocks until all that is done; later calls wait for the first and then do nothing.
  /// Never call it on a loop.
  package func stop(graceSeconds: Int) {
    stopping.withLock { _ in
      let running = state.withLock { state -> Running? in
        guard case .running(let running) = state else { return nil }
        state = .stopped(running)
        return running
      }
      guard let running else { return }
      let parts = running.parts
      parts[0].loop.executeAndWait { running.acceptor.close() }
      let drained = Semaphore()
      for part in parts {
        part.loop.execute { part.drain(graceMilliseconds: graceSeconds * 1000) { drained.signal() } }
      }
      for _ in parts { drained.wait() }
      for part in parts { part.loop.stopAndJoin() }
    }
  }

  /// Whether every loop takes its turn within so long; `true` where none runs. Never call it on a loop.
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

  /// Connections open now.
  package var openConnections: Int {
    parts.reduce(0) { $0 + $1.openConnections.load(ordering: .relaxed) }
  }

  /// Replies completed since the start, the transport's own refusals not counted.
  package var requestsServed: Int {
    parts.reduce(0) { $0 + $1.requestsServed.load(ordering: .relaxed) }
  }

  /// Open connections of each loop, in the order of the loops.
  package var openConnectionsByLoop: [Int] {
    parts.map { $0.openConnections.load(ordering: .relaxed) }
  }

  /// Looks at every deadline and timer now, and waits until that is done. Loops do so by themselves every
  /// `EventLoop.sweepMilliseconds`; tests call it after moving their clock. Never call it on a loop.
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
    do throws(TransportError) {
      for index in 0..<configuration.loops {
        let loop = try EventLoop(name: "hearth-loop-\(index)", clock: configuration.clock)
        let part = LoopServer(
          loop: loop, configuration: configuration, counters: counters.loops[index], credentials: credentials,
          handler: handler)
        try loop.start()
        parts.append(part)
      }
    } catch {
      for part in parts { part.loop.stopAndJoin() }
      throw error
    }
    return parts
  }

  /// Gives a new connection to the loop that has fewest, so that few connections are spread evenly too.
  private static func deal(_ socket: Int32, to parts: [LoopServer], connectionsMax: Int, isPlain: Bool) {
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
    // The acceptor lives on the first loop, whose counters these are.
    let counters = parts[0].counters
    guard open < connectionsMax else {
      counters.add(1, to: counters.turnedAway)
      refuse(socket, isPlain: isPlain)
      return
    }
    counters.add(1, to: counters.accepted)
    chosen.openConnections.wrappingAdd(1, ordering: .relaxed)
    let part = chosen
    let isQueued = part.loop.execute { part.open(socket) }
    if !isQueued { close(socket) }
  }

  /// Tells a client that there is no room. A fresh socket takes so few bytes at once.
  private static func refuse(_ socket: Int32, isPlain: Bool) {
    defer { close(socket) }
    guard isPlain else { return }
    let reply: StaticString = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    send(socket, reply.utf8Start, reply.utf8CodeUnitCount, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
  }
}
