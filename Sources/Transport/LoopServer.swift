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
  let configuration: TransportConfiguration
  let handler: any RequestHandler
  let pool: BufferPool
  let replyHead = ReplyHead()
  private(set) lazy var replyFields = HTTP2ReplyFields(replyHead)
  private(set) var isDraining = false
  private(set) lazy var compressor = GzipCompressor()
  private(set) lazy var decompressor = GzipDecompressor()
  /// Output memory of whichever connection is being served; connections hold some only while they cannot send.
  var spareOutput: [UInt8] = []
  /// Memory of `scratch` kept from one reply to the next.
  static let scratchBytesKept = 256 * 1024

  /// Where a body is made that may be compressed.
  var scratch: [UInt8] = []

  private var connections: [Connection] = []
  private var onDrained: (() -> Void)?

  init(loop: EventLoop, configuration: TransportConfiguration, handler: any RequestHandler) {
    self.loop = loop
    self.configuration = configuration
    self.handler = handler
    pool = BufferPool(budget: configuration.bufferedBytesMax / configuration.loops)
    loop.onSweep = { [unowned self] in sweep() }
  }

  /// Takes over a connected socket. It was counted in `openConnections` before.
  func open(_ socket: Int32) {
    guard let connection = Connection(socket: socket, server: self) else {
      Glibc.close(socket)
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
    if isDraining { reportIfDrained() }
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
