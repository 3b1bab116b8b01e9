import Basics
import Glibc
import Synchronization

/// The objects that all exchanges of one loop share.
protocol LoopResources: AnyObject {
  var loop: EventLoop { get }
  /// Buffers for partly received requests.
  var pool: BufferPool { get }
  /// The line of large responses.
  var wholeResponses: WholeResponses { get }
  /// The loop's one compressor.
  var compressor: GzipCompressor { get }
  /// The loop's one decompressor.
  var decompressor: GzipDecompressor { get }
  /// The counters of the loop's requests.
  var counters: LoopCounters { get }
  /// The log of single requests, or `nil` if requests are not logged.
  var requestLog: RequestLog? { get }
  /// Called with failures of the server itself, or `nil` if they are not logged.
  var failureLog: (@Sendable (FailedRequest) -> Void)? { get }
}

extension LoopServer: LoopResources {
  var requestLog: RequestLog? { configuration.requestLog }
  var failureLog: (@Sendable (FailedRequest) -> Void)? { configuration.failureLog }
}

/// The shared objects of a loop without sockets. Belongs to the loop's thread.
final class LocalResources: LoopResources {
  let loop: EventLoop
  let pool = BufferPool(MemoryShare(bytesMax: TransportConfiguration().bufferedBytesMax))
  private(set) lazy var compressor = GzipCompressor()
  private(set) lazy var decompressor = GzipDecompressor()
  let counters = LoopCounters()
  let wholeResponses = WholeResponses()
  var requestLog: RequestLog? { nil }
  var failureLog: (@Sendable (FailedRequest) -> Void)? { nil }

  init(_ loop: EventLoop) { self.loop = loop }
}

/// An event loop of this process for requests that arrive without a socket. All ``LocalServer``s share at most one
/// loop per core. The first servers start the loops, which then run until the process ends, because a test makes
/// thousands of servers.
struct LocalLoop: Sendable {
  let loop: EventLoop
  let resources: LoopBound<LocalResources>

  private struct Started {
    var loops: [LocalLoop] = []
    var turn = 0
  }

  private static let started = Mutex(Started())

  /// Returns the next loop in round-robin order, starting it if necessary.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if no thread or descriptor is available.
  static func next() throws(TransportError) -> LocalLoop {
    let count = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    return try started.withLock { started throws(TransportError) in
      if started.loops.count < count { started.loops.append(try LocalLoop(number: started.loops.count)) }
      started.turn = (started.turn + 1) % started.loops.count
      return started.loops[started.turn]
    }
  }

  private init(number: Int) throws(TransportError) {
    let loop = try EventLoop(name: "hearth-local-\(number)")
    try loop.start()
    let made = Mutex<LoopBound<LocalResources>?>(nil)
    loop.executeAndWait { made.withLock { $0 = LoopBound(LocalResources(loop), to: loop) } }
    guard let resources = made.withLock({ $0 }) else {
      throw .resourceExhausted(what: "an event loop", reason: "the loop ended during its start")
    }
    self.loop = loop
    self.resources = resources
  }
}
