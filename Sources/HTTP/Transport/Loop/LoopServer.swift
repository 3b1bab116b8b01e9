import CUV
import Glibc
import Synchronization

/// The part of a server that lives on one loop: its connections, and what they share.
final class LoopServer: @unchecked Sendable {
  // Sendable: the atomics are counters for other threads to read; all else is touched on the loop's thread only.

  /// Connections given to this loop and not yet closed; the acceptor counts up before the loop hears of one.
  let openConnections = Atomic<Int>(0)
  /// Replies completed. Written by the loop alone.
  let requestsServed = Atomic<Int>(0)

  let loop: EventLoop
  let counters: LoopCounters
  let configuration: TransportConfiguration
  let handler: any RequestHandler
  let pool: BufferPool
  /// What TLS connections present; `nil` where connections are plain.
  let credentials: TLSCredentials?
  let responseHead = ResponseHead()
  /// `nil` when there is no memory.
  private(set) lazy var http2 = HTTP2Callbacks()
  private(set) lazy var responseFields = HTTP2ResponseFields(responseHead)
  private(set) var isDraining = false
  private var requestsSinceLog = 0
  private(set) lazy var compressor = GzipCompressor()
  private(set) lazy var decompressor = GzipDecompressor()
  /// Output memory of whichever connection is being served; connections hold some only while they cannot send.
  var spareOutput: [UInt8] = []
  /// Memory of `scratch` kept from one reply to the next.
  static let scratchBytesKept = 256 * 1024

  /// Where a body is made that may be compressed.
  var scratch: [UInt8] = []

  /// What the empty bodies of requests point to: zeros, and never written.
  let padding: UnsafeRawPointer

  /// Where sockets are read to before TLS opens the bytes; used within one turn.
  private(set) lazy var sealedInput = UnsafeMutableRawBufferPointer.allocate(
    byteCount: BufferPool.bufferBytes, alignment: 16)
  /// Where TLS seals replies.
  var sealedOutput: [UInt8] = []

  private var connections: [Connection] = []
  private var onDrained: (() -> Void)?

  init(
    loop: EventLoop, configuration: TransportConfiguration, counters: LoopCounters, credentials: TLSCredentials?,
    handler: any RequestHandler
  ) {
    self.loop = loop
    self.counters = counters
    self.configuration = configuration
    self.handler = handler
    self.credentials = credentials
    pool = BufferPool(budget: configuration.bufferedBytesMax / configuration.loops)
    let zeros = UnsafeMutableRawPointer.allocate(byteCount: InputBuffer.paddingBytes, alignment: 8)
    memset(zeros, 0, InputBuffer.paddingBytes)
    padding = UnsafeRawPointer(zeros)
    loop.onSweep = { [unowned self] in sweep() }
  }

  deinit {
    padding.deallocate()
    if credentials != nil { sealedInput.deallocate() }
  }

  /// Takes over a connected socket. It was counted in `openConnections` before.
  func open(_ socket: Int32) {
    guard let connection = Connection(socket: socket, server: self) else {
      Glibc.close(socket)
      counters.add(1, to: counters.closed)
      openConnections.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    connection.index = connections.count
    connections.append(connection)
    connection.start()
  }

  /// Forgets a connection that closes, in constant time.
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

  /// Whether the log is to tell of the next request.
  @inline(__always)
  func isLogTurn() -> Bool {
    guard let log = configuration.requestLog else { return false }
    requestsSinceLog += 1
    guard requestsSinceLog >= log.interval else { return false }
    requestsSinceLog = 0
    return true
  }

  func countRequest() {
    // One writer: a plain load and store is enough, and cheaper than an atomic addition.
    requestsServed.store(requestsServed.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Closes what is idle, lets what is in flight finish within the grace, then calls `completion`.
  func drain(graceMilliseconds: Int, completion: @escaping () -> Void) {
    isDraining = true
    onDrained = completion
    for connection in connections { connection.session.drain() }
    if graceMilliseconds <= 0 { cutAll() }
    if !reportIfDrained() {
      loop.schedule(afterMilliseconds: graceMilliseconds) { [unowned self] in cutAll() }
    }
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

  private func sweep() {
    let now = loop.nowMilliseconds
    for connection in connections where connection.needsSweep(now) { connection.sweep(now) }
  }
}
