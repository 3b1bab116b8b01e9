import Basics
import Glibc
import Synchronization

/// The settings of a ``Relay``.
package struct RelayConfiguration: Sendable {
  /// The form of refusals: ``TransportConfiguration/errorBody``.
  package var limits: TransportConfiguration
  /// Returns how a request, which is not GET or HEAD, is repeated after a break. Called with the head of the request on its
  /// loop.
  package var repetition: @Sendable (borrowing HTTPRequest) -> RequestRepetition = { _ in .never }
  /// Milliseconds for which a request that can be repeated waits for a node after this one has begun to stop: time for a
  /// handover. It must be less than the time that the server has to stop. With 0, such requests are refused at once.
  package var lastWaitMilliseconds = 2_000
  /// Whether the requests come from the address of the console. The peer learns it: ``HTTPRequest/isForConsole``.
  package var isForConsole = false

  /// Creates a configuration with the limits of the server whose requests are relayed.
  package init(limits: TransportConfiguration) { self.limits = limits }
}

/// Passes whole exchanges to another node: HTTP/1, HTTP/2 and gRPC, with bodies of any length in both directions and
/// trailers. docs/internals/cluster.md has the rules.
///
/// Each event loop has one connection to the peer, which is opened with the first request. Both directions wait for the
/// side that takes slower.
package final class Relay: RequestHandler {
  private let configuration: RelayConfiguration
  private let context: TLSContext
  private let counters = RelayCounters()
  private let target: @Sendable () -> RelayTarget
  private let loops = LoopParts<LoopRelay>()
  private let requestIDs = RequestIDs()

  /// Creates a relay. It connects with the first request.
  ///
  /// - Parameter target: returns the node that owns the project now. Called on the loops with each request, so it must
  ///   be fast.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if memory is exhausted.
  package init(
    key: NodeKey, configuration: RelayConfiguration, target: @escaping @Sendable () -> RelayTarget
  ) throws(TransportError) {
    context = try TLSContext(key, isClient: true)
    self.configuration = configuration
    self.target = target
  }

  /// The numbers since the start.
  package var counts: RelayCounts { counters.counts }

  /// Sends the requests that wait to the then current target. Call it after the value of `target` has changed. Any thread
  /// may call it.
  package func targetChanged() { loops.later { $0.targetChanged() } }

  /// Begins a request of this node itself to the current peer, with the method POST and a path. Returns `nil` if the loop has
  /// no connection to one now; it begins to make one then. Call it on the thread of the loop.
  ///
  /// `receive` gets the bytes of the response, if its status is 200, and `end` is called once, when the response or the
  /// connection has ended, or another node is the peer, but not before this returns. Both run on the loop.
  package func open(
    _ path: String, on loop: EventLoop, receive: @escaping (UnsafeRawBufferPointer) -> Void,
    end: @escaping () -> Void
  ) -> LoopStream? {
    part(of: loop)?.open(path, receive: receive, end: end)
  }

  /// Relays a complete request.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    _ = relay(request, exchange, isWhole: true)
  }

  /// Relays a request whose body follows.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    relay(request, exchange, isWhole: false)
  }

  private func relay(_ request: borrowing HTTPRequest, _ exchange: Exchange, isWhole: Bool) -> RelayedExchange? {
    // A node that does not own the project would otherwise pass a request on and on.
    guard !request.isRelayed || request.mayPassOn else {
      exchange.refuseAsNotOwner()
      return nil
    }
    guard let part = part(of: exchange.loop) else {
      exchange.refuse(.noMemory, isGRPC: false, configuration.limits)
      return nil
    }
    let isSafe = request.method == .get || request.method == .head
    let repetition = isSafe ? .always : configuration.repetition(request)
    let client = RelayedClient(
      of: request, isForConsole: configuration.isForConsole || request.isForConsole,
      requestID: repetition == .always ? nil : request.relayedRequestID ?? requestID(on: exchange.loop))
    guard
      let relayed = RelayedExchange(
        request, exchange, part, client: client, isWhole: isWhole, repetition)
    else { return nil }
    counters.add(\.relayed)
    part.begin(relayed)
    return relayed
  }

  private func part(of loop: EventLoop) -> LoopRelay? {
    if let part = loops[loop] { return part }
    let made = LoopRelay(loop, context, counters, configuration, target: target)
    loops[loop] = made
    return made
  }

  private func requestID(on loop: EventLoop) -> [UInt8] {
    let nanoseconds = UInt64(loop.nowMilliseconds) * 1_000_000
    return requestIDs.next(at: nanoseconds)
  }
}

/// The numbers of a ``Relay`` since its creation.
package struct RelayCounts: Sendable, Equatable {
  /// Requests taken from clients.
  package var relayed = 0
  /// Tries after the first one of a request.
  package var repeated = 0
  /// Requests that a peer may have handled when the connection to it broke.
  package var broken = 0
  /// Requests refused by the relay itself: no peer took them in time, their outcome is unknown, or memory was short.
  package var failed = 0
  /// Connections to peers that are open or being opened.
  package var openConnections = 0

  /// The numbers of two relays together.
  package static func + (a: RelayCounts, b: RelayCounts) -> RelayCounts {
    RelayCounts(
      relayed: a.relayed + b.relayed, repeated: a.repeated + b.repeated, broken: a.broken + b.broken,
      failed: a.failed + b.failed, openConnections: a.openConnections + b.openConnections)
  }
}

/// The counters of a relay.
final class RelayCounters: Sendable {
  private let state = Mutex(RelayCounts())

  var counts: RelayCounts { state.withLock { $0 } }

  func add(_ counter: WritableKeyPath<RelayCounts, Int>, _ count: Int = 1) {
    state.withLock { $0[keyPath: counter] += count }
  }
}
