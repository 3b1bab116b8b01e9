import DatabaseService
import Dispatch
import Synchronization
package import Transport
import WireFormat

/// What operators and their tools ask a server.
///
/// - `GET /healthz`: `ok` while the loops answer
/// - `GET /readyz`: whether clients may be sent here; 503 where not
/// - `GET /metrics`: numbers in the text format of Prometheus
///
/// Everybody may ask the first two, for a word. What is not ready, and the metrics, are for administrators, for whoever
/// is admitted in emulator mode, and for those who reach the address that is set apart for it. An address of its own
/// rather than "loopback may": behind a proxy on this machine every stranger comes from loopback, and scrapers have no
/// way to renew an administrator's token.
final class OperationsHandler: Sendable {
  /// What a path asks for.
  enum Call: Equatable { case health, readiness, metrics }

  private let operations: OperationsService
  private let metrics: MetricsReport
  /// Strangers wait apart from those who are trusted, so that no crowd of them keeps an operator from asking.
  private let strangers = OperationsQueue("hearth.operations.public")
  private let trusted = OperationsQueue("hearth.operations")
  /// What strangers were told last, and when: they are told the same for a second.
  private let lastReadiness = Mutex<(isReady: Bool, at: ContinuousClock.Instant)?>(nil)

  init(_ operations: OperationsService, metrics: MetricsReport) {
    self.operations = operations
    self.metrics = metrics
  }

  /// What a path asks for; `nil` for the paths of others.
  static func call(_ path: UnsafeRawBufferPointer) -> Call? {
    if path.elementsEqual("/healthz".utf8) { return .health }
    if path.elementsEqual("/readyz".utf8) { return .readiness }
    return path.elementsEqual("/metrics".utf8) ? .metrics : nil
  }

  /// Answers a request. `caller` says who it is that asks, or throws.
  func handle(
    _ call: Call, _ request: borrowing HTTPRequest, _ exchange: Exchange, isTrusted: (borrowing HTTPRequest) -> Bool
  ) {
    exchange.claim(.operations)
    guard request.method == .get || request.method == .head else {
      return Self.send(405, Self.plain, Array("Method Not Allowed\n".utf8), exchange)
    }
    switch call {
    case .health: Self.send(200, Self.plain, Array("ok\n".utf8), exchange)
    case .readiness:
      guard isTrusted(request) else { return tellStranger(exchange) }
      work(trusted, exchange) { [operations] in Self.readiness(operations.unready()) }
    case .metrics:
      guard isTrusted(request) else {
        let status = Status(.permissionDenied, "Metrics are for administrators. Scrapers use --metrics-address.")
        return Self.send(403, Self.json, ErrorJSON.encode(status, httpStatus: 403), exchange)
      }
      work(trusted, exchange) { [metrics] in (200, Self.metricsText, metrics.text()) }
    }
  }

  /// Tells a stranger whether the server is ready.
  private func tellStranger(_ exchange: Exchange) {
    if let isReady = readinessWithin(.seconds(1)) { return Self.send(Self.readiness(isReady: isReady), exchange) }
    let isTaken = strangers.work { [self] in
      let isReady: Bool
      if let ready = readinessWithin(.seconds(1)) {
        isReady = ready
      } else {
        isReady = operations.unready().isEmpty
        lastReadiness.withLock { $0 = (isReady, .now) }
      }
      exchange.loop.execute { Self.send(Self.readiness(isReady: isReady), exchange) }
    }
    guard !isTaken else { return }
    // A crowd: the disk is being asked for others.
    if let isReady = readinessWithin(.seconds(5)) { return Self.send(Self.readiness(isReady: isReady), exchange) }
    Self.turnAway(exchange)
  }

  private func readinessWithin(_ time: Duration) -> Bool? {
    lastReadiness.withLock { ready in ready.flatMap { $0.at.duration(to: .now) <= time ? $0.isReady : nil } }
  }

  private static let plain: StaticString = "text/plain; charset=utf-8"
  private static let json: StaticString = "application/json; charset=UTF-8"
  private static let metricsText: StaticString = "text/plain; version=0.0.4; charset=utf-8"

  private typealias Answer = (status: Int, type: StaticString, body: [UInt8])

  /// Does what may wait for the disk away from the loop, and answers.
  private func work(_ queue: OperationsQueue, _ exchange: Exchange, _ body: @escaping @Sendable () -> Answer) {
    let isTaken = queue.work {
      let answer = body()
      exchange.loop.execute { Self.send(answer, exchange) }
    }
    if !isTaken { Self.turnAway(exchange) }
  }

  private static func turnAway(_ exchange: Exchange) {
    send(503, plain, Array("Too many ask at once.\n".utf8), exchange)
  }

  private static func send(_ answer: Answer, _ exchange: Exchange) {
    send(answer.status, answer.type, answer.body, exchange)
  }

  /// Scripts of other origins may not read any of it, so there are no fields that let them.
  private static func send(_ status: Int, _ type: StaticString, _ body: [UInt8], _ exchange: Exchange) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", type)
        headers.add("Cache-Control", "no-store")
      },
      body: { $0.append(contentsOf: body) })
  }

  private static func readiness(isReady: Bool) -> Answer { (isReady ? 200 : 503, json, text([], isReady: isReady)) }

  private static func readiness(_ unready: [String]) -> Answer {
    (unready.isEmpty ? 200 : 503, json, text(unready, isReady: unready.isEmpty))
  }

  private static func text(_ unready: [String], isReady: Bool) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("status")
    json.string(isReady ? "ready" : "unavailable")
    if !unready.isEmpty {
      json.key("unready")
      json.beginArray()
      for name in unready { json.string(name) }
      json.endArray()
    }
    json.endObject()
    return json.finish()
  }
}

/// Answers under way that may wait for the disk, one after the other; more are turned away, so that a crowd takes
/// nothing from clients.
private final class OperationsQueue: Sendable {
  private let queue: DispatchQueue
  private let waiting = Atomic(0)
  private static let waitingMax = 16

  init(_ label: String) { queue = DispatchQueue(label: label, qos: .utility) }

  /// Does `body` when its turn comes; `false` where too many wait.
  func work(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= Self.waitingMax else {
      waiting.wrappingSubtract(1, ordering: .relaxed)
      return false
    }
    queue.async { [self] in
      body()
      waiting.wrappingSubtract(1, ordering: .relaxed)
    }
    return true
  }
}

/// Answers operators on an address of its own, where everybody who reaches it is trusted.
package final class OperationsListener: RequestHandler {
  private let operations: OperationsHandler

  /// Answers what a gateway would answer its administrators.
  package init(_ gateway: HTTPGateway) { operations = gateway.operations }

  /// Answers one request.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let path = HTTPGateway.split(request.target).path
    guard let call = OperationsHandler.call(path) else { return Responder(exchange, request).sendText(404, "Not Found\n") }
    operations.handle(call, request, exchange) { _ in true }
  }
}
