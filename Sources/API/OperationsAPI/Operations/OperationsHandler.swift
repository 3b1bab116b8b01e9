import GatewayCore
package import DatabaseService
import Dispatch
import Synchronization
package import Transport
import WireFormat

/// Serves the requests of operators and their tools.
///
/// - `GET /healthz`: `ok` while the event loops run
/// - `GET /readyz`: whether the server can serve clients; 503 if not
/// - `GET /metrics`: metrics in Prometheus's text format
///
/// Any caller may use the first two, and receives one word. The list of parts that are not ready and the metrics
/// are for administrators, for callers who are admitted in emulator mode, and for callers of the separate
/// operations address. Connections from loopback are not trusted for this: behind a proxy on this machine every
/// client connects from loopback. Scrapers need the separate address because they cannot renew an administrator's
/// token.
package final class OperationsHandler: Sendable {
  /// The request that a path names.
  package enum Call: Equatable { case health, readiness, metrics }

  private let operations: OperationsService
  private let metrics: MetricsReport
  /// Unauthenticated callers have their own queue, so that many of them cannot keep an operator waiting.
  private let untrusted = OperationsQueue("hearth.operations.public")
  private let trusted = OperationsQueue("hearth.operations")
  /// The last readiness sent to unauthenticated callers, which is reused for one second.
  private let lastReadiness = Mutex<(isReady: Bool, at: ContinuousClock.Instant)?>(nil)

  package init(_ operations: OperationsService, metrics: MetricsReport) {
    self.operations = operations
    self.metrics = metrics
  }

  /// Returns the request that a path names, or `nil` if the path belongs to another handler.
  package static func call(_ path: UnsafeRawBufferPointer) -> Call? {
    if path.elementsEqual("/healthz".utf8) { return .health }
    if path.elementsEqual("/readyz".utf8) { return .readiness }
    return path.elementsEqual("/metrics".utf8) ? .metrics : nil
  }

  /// Handles a request. `administrator` decides whether its caller may see details.
  package func handle(
    _ call: Call, _ request: borrowing HTTPRequest, _ exchange: Exchange,
    administrator: (borrowing HTTPRequest) -> Administrator?
  ) {
    exchange.setKind(.operations)
    guard request.method == .get || request.method == .head else {
      return Self.send(405, Self.plain, Array("Method Not Allowed\n".utf8), exchange)
    }
    switch call {
    case .health: Self.send(200, Self.plain, Array("ok\n".utf8), exchange)
    case .readiness:
      guard administrator(request) != nil else { return sendReadiness(exchange) }
      work(trusted, exchange) { [operations] in Self.readiness(operations.unready()) }
    case .metrics:
      guard let administrator = administrator(request) else {
        let status = Status(.permissionDenied, "Metrics require an administrator's token, or --metrics-address.")
        return Self.send(403, Self.json, ErrorJSON.encode(status, httpStatus: 403), exchange)
      }
      work(trusted, exchange) { [metrics] in (200, Self.metricsText, metrics.text(as: administrator)) }
    }
  }

  /// Sends the readiness to a caller who is not trusted.
  private func sendReadiness(_ exchange: Exchange) {
    if let isReady = readinessWithin(.seconds(1)) { return Self.send(Self.readiness(isReady: isReady), exchange) }
    let isTaken = untrusted.work { [self] in
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
    // Too many callers wait for a disk check already. Send a slightly older result if there is one.
    if let isReady = readinessWithin(.seconds(5)) { return Self.send(Self.readiness(isReady: isReady), exchange) }
    Self.refuse(exchange)
  }

  private func readinessWithin(_ time: Duration) -> Bool? {
    lastReadiness.withLock { ready in ready.flatMap { $0.at.duration(to: .now) <= time ? $0.isReady : nil } }
  }

  private static let plain: StaticString = "text/plain; charset=utf-8"
  private static let json: StaticString = "application/json; charset=UTF-8"
  private static let metricsText: StaticString = "text/plain; version=0.0.4; charset=utf-8"

  private typealias Response = (status: Int, type: StaticString, body: [UInt8])

  /// Runs work that may wait for the disk on a queue, and sends its response.
  private func work(_ queue: OperationsQueue, _ exchange: Exchange, _ body: @escaping @Sendable () -> Response) {
    let isTaken = queue.work {
      let response = body()
      exchange.loop.execute { Self.send(response, exchange) }
    }
    if !isTaken { Self.refuse(exchange) }
  }

  private static func refuse(_ exchange: Exchange) {
    send(503, plain, Array("Too many requests. Try again later.\n".utf8), exchange)
  }

  private static func send(_ response: Response, _ exchange: Exchange) {
    send(response.status, response.type, response.body, exchange)
  }

  /// Sends a response without CORS headers: scripts of other origins must not read it.
  private static func send(_ status: Int, _ type: StaticString, _ body: [UInt8], _ exchange: Exchange) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", type)
        headers.add("Cache-Control", "no-store")
      },
      body: { $0.append(contentsOf: body) })
  }

  private static func readiness(isReady: Bool) -> Response { (isReady ? 200 : 503, json, text([], isReady: isReady)) }

  private static func readiness(_ unready: [String]) -> Response {
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

/// A serial queue for responses that may wait for the disk. It refuses work above ``waitingMax``, so that many
/// callers cannot take resources from clients.
private final class OperationsQueue: Sendable {
  private let queue: DispatchQueue
  private let waiting = Atomic(0)
  private static let waitingMax = 16

  init(_ label: String) { queue = DispatchQueue(label: label, qos: .utility) }

  /// Runs `body` when its turn comes. Returns `false` if too many are waiting.
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

/// Serves operators on a separate address, whose callers are all trusted.
package final class OperationsListener: RequestHandler {
  private let operations: OperationsHandler
  private let administrator: Administrator?

  /// Creates a listener that responds to every caller as a gateway does to an administrator.
  package init(_ operations: OperationsHandler, as administrator: Administrator?) {
    self.operations = operations
    self.administrator = administrator
  }

  /// Handles a request.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let path = request.target.pathAndQuery.path
    guard let call = OperationsHandler.call(path) else {
      return Responder(exchange, request).sendText(404, "Not Found\n")
    }
    operations.handle(call, request, exchange) { _ in administrator }
  }
}
