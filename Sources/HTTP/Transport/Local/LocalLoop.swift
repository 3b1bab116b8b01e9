import Glibc
import Synchronization

/// What the exchanges of one loop share.
protocol LoopResources: AnyObject {
  /// The loop.
  var loop: EventLoop { get }
  /// Memory of requests that are half received.
  var pool: BufferPool { get }
  /// The loop's one compressor.
  var compressor: GzipCompressor { get }
  /// The loop's one decompressor.
  var decompressor: GzipDecompressor { get }
  /// What counts its requests.
  var counters: LoopCounters { get }
  /// Where requests are told one by one, where they are.
  var requestLog: RequestLog? { get }
  /// Where failures of the server's own are told, where they are.
  var failureLog: (@Sendable (FailedRequest) -> Void)? { get }
}

extension LoopServer: LoopResources {
  var requestLog: RequestLog? { configuration.requestLog }
  var failureLog: (@Sendable (FailedRequest) -> Void)? { configuration.failureLog }
}

/// What exchanges share on a loop that has no sockets. Belongs to the loop's thread.
final class LocalResources: LoopResources {
  let loop: EventLoop
  let pool = BufferPool(budget: TransportConfiguration().bufferedBytesMax)
  private(set) lazy var compressor = GzipCompressor()
  private(set) lazy var decompressor = GzipDecompressor()
  let counters = LoopCounters()
  var requestLog: RequestLog? { nil }
  var failureLog: (@Sendable (FailedRequest) -> Void)? { nil }

  init(_ loop: EventLoop) { self.loop = loop }
}

/// A loop of this process for requests that come by no socket. There are as many as cores at most, shared by all
/// ``LocalServer``s, begun with the first of them, and left running: a test makes thousands of servers.
struct LocalLoop: Sendable {
  let loop: EventLoop
  let resources: LoopBound<LocalResources>

  private struct Started {
    var loops: [LocalLoop] = []
    var turn = 0
  }

  private static let started = Mutex(Started())

  /// The loop whose turn it is.
  /// - Throws: `.resourceExhausted` when no thread or no descriptor can be had.
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
      throw .resourceExhausted(what: "an event loop", reason: "it ended at once")
    }
    self.loop = loop
    self.resources = resources
  }
}
