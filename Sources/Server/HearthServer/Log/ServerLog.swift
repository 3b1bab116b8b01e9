import Gateway
import GatewayCore
import Transport

extension HearthConfiguration {
  /// Reports an event to the log and the callbacks.
  func log(_ level: LogEvent.Level, _ name: StaticString, _ message: String, _ fields: [LogEvent.Field] = []) {
    log(LogEvent(level, name, message, fields))
  }

  /// Reports an event to the log and the callbacks.
  func log(_ event: LogEvent) {
    var event = event
    if isOneOfSeveral, let project { event.fields.append(("project", .text(project))) }
    log?.write(event)
    if event.level >= .warn { warn?(event.message) } else { report?(event.message) }
  }

  /// Whether any destination receives events of normal operation.
  var logsProgress: Bool { log?.takes(.info) ?? false || report != nil }

  /// The log for the transport's requests, or `nil` if requests are not logged.
  var requestLog: RequestLog? {
    guard let log, let interval = requestLogInterval, log.takes(.info) else { return nil }
    return RequestLog(interval: interval) { log.write(LogEvent($0)) }
  }

  /// The observer of requests that failed because of a fault of the server, or `nil` if failures are not logged.
  var failureLog: (@Sendable (FailedRequest) -> Void)? {
    guard log != nil || warn != nil else { return nil }
    let failures = FailureLog { message, fields in log(.error, "request.failed", message, fields) }
    return { failures.write($0) }
  }
}

extension LogEvent {
  /// Creates the event of a request, without its content.
  fileprivate init(_ record: RequestRecord) {
    let kind = RequestKind(rawValue: record.kind) ?? .none
    self.init(
      .info, "request", "",
      [
        ("client", .text(record.client)), ("method", .text("\(record.method)".uppercased())),
        ("path", .text(LoggedPath.text(record.path))), ("dialect", .text(kind.label)),
        ("status", .integer(record.status)), ("milliseconds", .decimal(Double(record.microseconds) / 1000)),
      ])
  }
}
