import Basics
import CUV
import Glibc
import Synchronization

/// The part of a server on one loop: its connections and the objects that they share.
final class LoopServer: @unchecked Sendable {
  // Sendable: other threads read the atomic counters only. All else is used on the loop's thread only.

  /// The open connections of this loop. The acceptor increments this before the loop receives the connection.
  let openConnections = Atomic<Int>(0)
  /// The number of completed responses. Only the loop writes it.
  let requestsServed = Atomic<Int>(0)

  let loop: EventLoop
  let counters: LoopCounters
  let configuration: TransportConfiguration
  let handler: any RequestHandler
  let pool: BufferPool
  /// The certificate for TLS connections, or `nil` if connections are plain.
  let credentials: TLSCredentials?
  /// Whether the clients are other nodes of the cluster, which pass the requests of theirs. Only the handshake with the
  /// cluster's key makes a connection one of these.
  let isOfPeers: Bool
  let responseHead = ResponseHead()
  let wholeResponses = WholeResponses()
  /// `nil` if memory is exhausted.
  private(set) lazy var http2 = HTTP2Callbacks()
  private(set) lazy var responseFields = HTTP2ResponseFields(responseHead)
  private(set) var isDraining = false
  private var requestsSinceLog = 0
  private(set) lazy var compressor = GzipCompressor()
  private(set) lazy var decompressor = GzipDecompressor()
  /// Output memory for the connection that is being served. Connections hold their own only while they cannot send.
  var spareOutput: [UInt8] = []
  /// The most memory of `scratch` kept from one response to the next.
  static let scratchBytesKept = 256 * 1024

  /// The buffer for a body that may be compressed.
  var scratch: [UInt8] = []

  /// Zeros that the empty bodies of requests point to. Never written.
  let padding: UnsafeRawPointer

  /// The buffer that sockets are read into before TLS decrypts the bytes, and for bytes that are discarded. Used within
  /// one turn.
  let sealedInput = UnsafeMutableRawBufferPointer.allocate(byteCount: BufferPool.bufferBytes, alignment: 16)
  /// The buffer that TLS encrypts responses into.
  var sealedOutput: [UInt8] = []

  /// The handshakes of the connections of this loop that use TLS.
  private(set) lazy var handshakes = Handshakes(self)

  /// The connections of this loop that wait for memory.
  private(set) lazy var memoryLine = MemoryLine(self)

  /// The bytes of responses that the connections of this loop hold for their clients. ``memory`` has the sum.
  private var heldBytes = 0
  private let memory: ServerMemory
  /// Whether another thread has asked for ``evict(_:)``.
  let isEvictionDue = Atomic(false)
  private var connections: [Connection] = []
  private var onDrained: (() -> Void)?

  init(
    loop: EventLoop, configuration: TransportConfiguration, counters: LoopCounters, credentials: TLSCredentials?,
    memory: ServerMemory, handler: any RequestHandler
  ) {
    self.loop = loop
    self.counters = counters
    self.configuration = configuration
    self.handler = handler
    self.credentials = credentials
    isOfPeers = credentials?.isOfPeers ?? false
    self.memory = memory
    pool = BufferPool(memory.requests)
    let zeros = UnsafeMutableRawPointer.allocate(byteCount: InputBuffer.paddingBytes, alignment: 8)
    memset(zeros, 0, InputBuffer.paddingBytes)
    padding = UnsafeRawPointer(zeros)
    loop.onSweep = { [unowned self] in sweep() }
    loop.onTurnEnd = { [unowned self] in turnEnded() }
  }

  deinit {
    padding.deallocate()
    sealedInput.deallocate()
  }

  /// Takes ownership of a connected socket, which `openConnections` already counts.
  func open(_ socket: Int32, isFromAdminSocket: Bool = false) {
    let made = Connection(socket: socket, server: self, isFromAdminSocket: isFromAdminSocket)
    guard let connection = made else {
      Glibc.close(socket)
      counters.add(1, to: counters.closed)
      openConnections.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    connection.index = connections.count
    connections.append(connection)
    connection.start()
  }

  /// Removes a closing connection, in constant time.
  func remove(_ connection: Connection) {
    let last = connections.removeLast()
    if last !== connection {
      connections[connection.index] = last
      last.index = connection.index
    }
    openConnections.wrappingSubtract(1, ordering: .relaxed)
    counters.add(1, to: counters.closed)
    if isDraining { reportIfDrained() }
  }

  /// Whether to log the next request.
  @inline(__always)
  func isLogTurn() -> Bool {
    guard let log = configuration.requestLog else { return false }
    requestsSinceLog += 1
    guard requestsSinceLog >= log.interval else { return false }
    requestsSinceLog = 0
    return true
  }

  func countRequest() {
    // Only the loop writes this, so a plain load and store is enough and cheaper than an atomic addition.
    requestsServed.store(requestsServed.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Closes idle connections, lets running requests finish within the grace period, then calls `completion`.
  func drain(graceMilliseconds: Int, completion: @escaping () -> Void) {
    isDraining = true
    onDrained = completion
    for connection in connections { connection.session.drain() }
    if graceMilliseconds <= 0 { cutAll() }
    if !reportIfDrained() {
      loop.schedule(afterMilliseconds: graceMilliseconds) { [unowned self] in cutAll() }
    }
  }

  /// Ends the running requests whose chosen handler matches.
  func cancelRequests(where isCanceled: (any RequestHandler) -> Bool) {
    for connection in connections where connection.isOpen { connection.session.cancelRequests(where: isCanceled) }
  }

  private func cutAll() {
    for connection in connections { connection.close() }
  }

  @discardableResult
  private func reportIfDrained() -> Bool {
    guard connections.isEmpty else { return false }
    let completion = onDrained
    onDrained = nil
    completion?()
    return true
  }

  private func turnEnded() {
    shed()
    memoryLine.serve()
    if credentials != nil { handshakes.turnEnded() }
  }

  /// Counts bytes of responses that a connection holds, or no longer holds if the number is negative.
  func hold(_ bytes: Int) {
    guard bytes != 0 else { return }
    heldBytes += bytes
    memory.responses.change(by: bytes)
  }

  /// Makes room for other connections: closes a part of those without a running request, in the order in which they would
  /// time out. So the first ones have been idle or incomplete for the longest time.
  ///
  /// - Parameter isWanted: whether a connection may be closed.
  func evict(where isWanted: (Connection) -> Bool = { _ in true }) {
    isEvictionDue.store(false, ordering: .relaxed)
    var idle = connections.filter { $0.isOpen && $0.session.isIdle && isWanted($0) }
    idle.sort { $0.deadline < $1.deadline }
    for connection in idle.prefix(connections.count / Self.evictedPart + 1) { connection.close() }
  }

  /// Closes other connections with incomplete heads, because memory is short. Does nothing if it did so in the last
  /// sweep, since it examines all connections.
  func evictIncomplete(except kept: Connection) {
    let now = loop.nowMilliseconds
    guard now - memoryEvictionMilliseconds >= EventLoop.sweepMilliseconds else { return }
    memoryEvictionMilliseconds = now
    evict { $0 !== kept && !$0.input.isEmpty }
  }

  private var memoryEvictionMilliseconds = -EventLoop.sweepMilliseconds

  /// One of how many connections is closed to make room.
  static let evictedPart = 16

  /// While all loops together hold too much, and this one more than its part, disconnects the client that would take
  /// longest to read its responses. Of the clients of another node, only those lose their responses that read slowest.
  private func shed() {
    guard memory.responses.isExceeded else { return }
    let heldBytesMax = memory.responses.bytesMax / configuration.loops
    guard heldBytes > heldBytesMax else { return }
    let now = loop.nowMilliseconds
    var slowest = connections.filter { $0.held.count > 0 }.map { (time: $0.drainMilliseconds(now), connection: $0) }
    slowest.sort { $0.time < $1.time }
    while memory.responses.isExceeded, heldBytes > heldBytesMax, let (_, connection) = slowest.popLast() {
      counters.add(1, to: counters.shed)
      let isEnough = connection.session.endSlowest { memory.responses.isExceeded && heldBytes > heldBytesMax }
      if !isEnough { connection.abort() }
    }
  }

  private func sweep() {
    FreedMemory.sweep()
    let now = loop.nowMilliseconds
    if credentials != nil { handshakes.sweep() }
    for connection in connections where connection.needsSweep(now) { connection.sweep(now) }
  }
}
