import Basics
package import DatabaseService
package import GatewayCore
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
package final class OperationsHandler: API {
  package let authenticator: Authenticator
  private let service: FirestoreService
  private let operations: OperationsService
  private let metrics: MetricsReport
  /// Unauthenticated callers have their own queue, so that many of them cannot keep an operator waiting.
  private let untrusted = BoundedWorkers(
    "operations-open", unfinishedMax: WorkerLimits.operationsUnfinishedMax)
  private let trusted = BoundedWorkers("operations", unfinishedMax: WorkerLimits.operationsUnfinishedMax)
  /// The last readiness sent to unauthenticated callers, which is reused for one second.
  private let lastReadiness = Mutex<(isReady: Bool, at: ContinuousClock.Instant)?>(nil)

  /// Creates a handler.
  package init(
    _ operations: OperationsService, metrics: MetricsReport, _ service: FirestoreService,
    _ authenticator: Authenticator
  ) {
    self.operations = operations
    self.metrics = metrics
    self.service = service
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<OperationsHandler>] {
    [
      Route([.get, .head], ["/healthz"], kind: .operations, access: .everyone) { _, _, call in
        send(200, plain, Array("ok\n".utf8), call.responder.exchange)
      },
      Route([.get, .head], ["/readyz"], kind: .operations, access: .caller) { $0.readiness($1, $2) },
      Route([.get, .head], ["/metrics"], kind: .operations, access: .caller) { $0.metrics($1, $2) },
    ]
  }

  /// Returns the caller of a request. A caller whose credentials are not valid is unauthenticated.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) -> Caller {
    (try? authenticator.caller(of: request)) ?? .unauthenticated
  }

  /// Responds that the method is not supported, or that the caller may not make the request.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    if let status = error as? Status, status.code == .permissionDenied {
      return Self.send(403, Self.json, ErrorJSON.encode(status, httpStatus: 403), responder.exchange)
    }
    Self.send(405, Self.plain, Array("Method Not Allowed\n".utf8), responder.exchange)
  }

  /// Returns the proof that a caller may see details, or `nil` if it may not. An emulator admits every caller, but not
  /// the pages of other sites.
  private func administrator(_ request: borrowing HTTPRequest, _ caller: Caller) -> Administrator? {
    if authenticator.isForEmulator, request.isFromForeignPage(hostName: authenticator.hostName) { return nil }
    return try? service.administrator(caller)
  }

  private func readiness(_ request: borrowing HTTPRequest, _ call: RoutedCall) {
    let exchange = call.responder.exchange
    guard administrator(request, call.caller) != nil else { return sendReadiness(exchange) }
    work(trusted, exchange) { [operations] in Self.readiness(operations.unready()) }
  }

  private func metrics(_ request: borrowing HTTPRequest, _ call: RoutedCall) {
    let exchange = call.responder.exchange
    guard let administrator = administrator(request, call.caller) else {
      let status = Status(
        .permissionDenied,
        authenticator.isForEmulator
          ? "A page of another site cannot read the metrics of this emulator. Use localhost, a numeric address, a name "
            + "without dots, or the name in --host."
          : "Metrics require an administrator's token, or --metrics-address.")
      return Self.send(403, Self.json, ErrorJSON.encode(status, httpStatus: 403), exchange)
    }
    work(trusted, exchange) { [metrics] in (200, Self.metricsText, metrics.text(as: administrator)) }
  }

  /// Sends the readiness to a caller who is not trusted.
  private func sendReadiness(_ exchange: Exchange) {
    if let isReady = readinessWithin(.seconds(1)) { return Self.send(Self.readiness(isReady: isReady), exchange) }
    let isTaken = untrusted.run { [self] in
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
  private func work(_ queue: BoundedWorkers, _ exchange: Exchange, _ body: @escaping @Sendable () -> Response) {
    let isTaken = queue.run {
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
