import Testing
import TestSupport

@testable import Transport

/// A server on a free loopback port, with a clock that tests move.
final class TestServer: Sendable {
  let server: HTTPServer
  let clock: ManualClock
  let port: Int

  init(
    loops: Int = 1, configure: (inout TransportConfiguration) -> Void = { _ in }, handler: any RequestHandler
  ) throws {
    var configuration = TransportConfiguration()
    let clock = ManualClock()
    configuration.port = 0
    configuration.loops = loops
    configuration.clock = clock
    configure(&configuration)
    self.clock = clock
    server = try HTTPServer(configuration: configuration, handler: handler)
    port = try server.start().port
  }

  convenience init(
    loops: Int = 1, configure: (inout TransportConfiguration) -> Void,
    handle: @escaping @Sendable (borrowing HTTPRequest, Exchange) -> Void = TestServer.echo
  ) throws {
    try self.init(loops: loops, configure: configure, handler: ClosureHandler(handle))
  }

  convenience init(
    loops: Int = 1, handle: @escaping @Sendable (borrowing HTTPRequest, Exchange) -> Void = TestServer.echo
  ) throws {
    try self.init(loops: loops, configure: { _ in }, handle: handle)
  }

  deinit {
    server.stop(graceSeconds: 0)
  }

  /// Connects and waits until the server has accepted the connection, which may take time on a busy machine.
  func connect() throws -> RawClient {
    let before = server.openConnections
    let client = try RawClient(port: port)
    // A server that is full or stopping never counts the connection.
    for _ in 0..<500 where server.openConnections <= before { server.sweepDeadlines() }
    return client
  }

  /// Moves the clock and checks all deadlines. Readable sockets get a turn first.
  func advance(seconds: Int) {
    settle()
    clock.advance(milliseconds: seconds * 1000)
    server.sweepDeadlines()
  }

  /// Gives every loop enough turns to receive all bytes sent to it, even on a busy machine.
  func settle() {
    for _ in 0..<50 { server.sweepDeadlines() }
  }

  /// Waits until a handler begins to count, then gives the loops turns until the counter stops changing: the server
  /// waits until its client reads.
  func settle(_ counter: Observed<Int>) {
    _ = counter.wait { $0 > 0 }
    var (stable, last) = (0, -1)
    while stable < 100 {
      settle()
      stable = counter.value == last ? stable + 1 : 0
      last = counter.value
    }
  }

  /// Gives the loops turns until a condition on the server's counters holds, for at most two minutes. For values that
  /// handlers change, use ``Observed/wait(secondsMax:until:)``.
  func wait(until condition: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + .seconds(120)
    while !condition(), ContinuousClock.now < deadline { server.sweepDeadlines() }
    return condition()
  }

  /// Responds with the method, the target and the body as text.
  @Sendable static func echo(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let method = "\(request.method)"
    let target = Array(request.target)
    let body = Array(request.body)
    exchange.respond(status: 200, headers: { $0.add("Content-Type", "text/plain") }) { out in
      out.append(contentsOf: Array("\(method) ".utf8) + target + Array("|".utf8) + body)
    }
  }
}

final class ClosureHandler: RequestHandler {
  private let action: @Sendable (borrowing HTTPRequest, Exchange) -> Void

  init(_ action: @escaping @Sendable (borrowing HTTPRequest, Exchange) -> Void) {
    self.action = action
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    action(request, exchange)
  }
}
