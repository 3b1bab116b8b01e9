import Synchronization

/// Has a handler answer requests of this process: no socket, no port, and the same replies.
///
/// A server lives on one of the process's few ``LocalLoop``s, and takes no thread and no descriptor of its own.
package final class LocalServer: Sendable {
  private let local: LocalLoop
  private let handler: any RequestHandler
  private let limits: TransportConfiguration
  private let open = Mutex<[UInt64: LoopBound<LocalExchange>]>([:])
  private let made = Atomic<UInt64>(0)

  /// Puts a handler where requests reach it.
  ///
  /// - Parameter limits: the bounds of requests and the form of refusals; the rest of it is for sockets.
  /// - Throws: `.resourceExhausted` when the process's first loops cannot be started.
  package init(handler: any RequestHandler, limits: TransportConfiguration) throws(TransportError) {
    local = try LocalLoop.next()
    self.handler = handler
    self.limits = limits
  }

  /// Hands a request to the handler. `receive` is called once, on the loop: with the beginning of the reply, or with
  /// `nil` when the call was given up before there was one.
  ///
  /// - Returns: what asks for the body, and gives the call up when it goes away.
  package func answer(
    _ request: LocalRequest, _ receive: @escaping @Sendable (LocalResponseHead?) -> Void
  ) -> LocalCall {
    let number = made.wrappingAdd(1, ordering: .relaxed).newValue
    let call = LocalCall()
    local.resources.later { [self, weak call] resources in
      let exchange = LocalExchange(request, resources, limits, receive) { [weak self] in self?.forget(number) }
      let bound = LoopBound(exchange, to: resources.loop)
      // Nobody may wait any more.
      guard let call, call.begin(bound) else { return receive(nil) }
      open.withLock { $0[number] = bound }
      exchange.start(handler)
    }
    return call
  }

  /// Ends the replies that have no end of their own, and cuts those that do not end then. Requests whose reply has not
  /// begun are still answered.
  package func close() {
    for exchange in open.withLock({ Array($0.values) }) { exchange.later { $0.end() } }
  }

  private func forget(_ number: UInt64) {
    let removed = open.withLock { $0.removeValue(forKey: number) }
    // Released here, and not under the lock.
    _ = removed
  }
}

/// A request under way, from the side of who made it. When it goes away, the reply is given up.
package final class LocalCall: Sendable {
  private struct State {
    var exchange: LoopBound<LocalExchange>?
    var isCancelled = false
  }

  private let state = Mutex(State())

  init() {}

  deinit { cancel() }

  /// Says what answers it; `false` where it was given up before.
  func begin(_ exchange: LoopBound<LocalExchange>) -> Bool {
    state.withLock { state in
      state.exchange = exchange
      return !state.isCancelled
    }
  }

  /// Asks for more of the body; `receive` is called once, on the loop. One question at a time, and after the head came.
  package func next(_ receive: @escaping @Sendable (LocalPiece) -> Void) {
    guard let exchange = state.withLock({ $0.exchange }) else { return receive(.cut) }
    exchange.later { $0.take(receive) }
  }

  /// Gives the reply up, as a client does that goes away.
  package func cancel() {
    let exchange = state.withLock { state in
      state.isCancelled = true
      return state.exchange
    }
    exchange?.later { $0.cut() }
  }
}
