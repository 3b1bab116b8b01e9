import Synchronization

/// A server that passes in-process requests to a handler: no socket, no port, and the same responses.
///
/// A server lives on one of the process's few ``LocalLoop``s and has no thread or descriptor of its own.
package final class LocalServer: Sendable {
  private let local: LocalLoop
  private let handler: any RequestHandler
  private let limits: TransportConfiguration
  private let open = Mutex<[UInt64: LoopBound<LocalExchange>]>([:])
  private let made = Atomic<UInt64>(0)

  /// Creates a server for a handler, on the next local loop.
  ///
  /// - Parameter limits: the limits of requests and the form of refusals. The settings for sockets are ignored.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if a loop cannot be started.
  package init(handler: any RequestHandler, limits: TransportConfiguration) throws(TransportError) {
    local = try LocalLoop.next()
    self.handler = handler
    self.limits = limits
  }

  /// Passes a request to the handler. Calls `receive` once, on the loop, with the head of the response, or with
  /// `nil` if the call was canceled first.
  ///
  /// - Returns: the call, which delivers the body. Releasing it cancels the request.
  package func answer(
    _ request: LocalRequest, _ receive: @escaping @Sendable (LocalResponseHead?) -> Void
  ) -> LocalCall {
    let number = made.wrappingAdd(1, ordering: .relaxed).newValue
    let call = LocalCall()
    local.resources.later { [self, weak call] resources in
      let exchange = LocalExchange(request, resources, limits, receive) { [weak self] in self?.forget(number) }
      let bound = LoopBound(exchange, to: resources.loop)
      // The caller may have released or canceled the call meanwhile.
      guard let call, call.begin(bound) else { return receive(nil) }
      open.withLock { $0[number] = bound }
      exchange.start(handler)
    }
    return call
  }

  /// Tells endless responses to finish, and cuts those that do not. Requests without a response so far are still
  /// handled.
  package func close() {
    for exchange in open.withLock({ Array($0.values) }) { exchange.later { $0.end() } }
  }

  private func forget(_ number: UInt64) {
    let removed = open.withLock { $0.removeValue(forKey: number) }
    // The exchange is released here, outside the lock.
    _ = removed
  }
}

/// A running request, as its caller sees it. Releasing the call cancels the request.
package final class LocalCall: Sendable {
  private struct State {
    var exchange: LoopBound<LocalExchange>?
    var isCancelled = false
  }

  private let state = Mutex(State())

  init() {}

  deinit { cancel() }

  /// Attaches the exchange. Returns `false` if the call was canceled already.
  func begin(_ exchange: LoopBound<LocalExchange>) -> Bool {
    state.withLock { state in
      state.exchange = exchange
      return !state.isCancelled
    }
  }

  /// Requests the next piece of the body. Calls `receive` once, on the loop. Call this after the head has arrived,
  /// and not again before `receive` was called.
  package func next(_ receive: @escaping @Sendable (LocalPiece) -> Void) {
    guard let exchange = state.withLock({ $0.exchange }) else { return receive(.cut) }
    exchange.later { $0.take(receive) }
  }

  /// Cancels the request, as a client does by disconnecting.
  package func cancel() {
    let exchange = state.withLock { state in
      state.isCancelled = true
      return state.exchange
    }
    exchange?.later { $0.cut() }
  }
}
